"""Reads: throughput against the floors, time to answer at the same load, MCP against REST, and the wide search."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import load
from floors import BARE, Floor, memory_server
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import PROCEDURE, VISIT_TYPE, calendar_sql, group, office, patients_sql, search_path
from service import Service, accounted, exchange

CONNECTIONS = 16
_THIRD = "s % 3 = 0 AND s NOT BETWEEN 16 AND 19"  # of the quarters of an hour, none at noon
_WIDE_CALLS = 2
PACED = 0.5  # of what the service can do: the load at which times to answer are compared
_MCP_HEADERS = ("MCP-Protocol-Version: 2025-11-25",)


@dataclass(frozen=True)
class Requests:
    token: str
    search: str
    slot: str
    directory: str = "/api/providers"

    def get(self, path: str) -> bytes:
        return load.request("GET", path, self.token)


def prepare(service: Service) -> Requests:
    """An office with a third of its calendar taken."""
    practice = service.import_practice(office("office"))
    service.execute(patients_sql(practice, 100) + calendar_sql(practice, "08:00", 15, 40, _THIRD, 60))
    service.settle()
    token = service.tokens(["office"])[0]
    status, _, body = exchange(service.port, "GET", search_path(), headers={"Authorization": f"Bearer {token}"})
    assert status == 200, body
    items = json.loads(body)["items"]
    assert len(items) == 50, "the search must fill its page"
    return Requests(token, search_path(), f"/api/slots/{items[0]['id']}")


def throughput(
    service: Service, requests: Requests, folder: Path, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """Everything that has floor (a), and the bare handler, in the same rounds."""
    paths = [requests.search, requests.slot, requests.directory]
    with memory_server(service, paths, requests.token, folder) as floor:

        def way(target: Service | Floor, wanted: bytes) -> Callable[[], load.Measured]:
            arguments = (target.port, [wanted], CONNECTIONS, sizes.seconds)
            return lambda: accounted(lambda: target.processes, lambda: generators.run(load.repeat, *arguments))

        ways = {
            "bare": way(floor, requests.get(BARE)),
            "search": way(service, requests.get(requests.search)),
            "search from memory": way(floor, requests.get(requests.search)),
            "mcp": way(service, mcp_search(requests)),
            "slot": way(service, requests.get(requests.slot)),
            "slot from memory": way(floor, requests.get(requests.slot)),
            "directory": way(service, requests.get(requests.directory)),
            "directory from memory": way(floor, requests.get(requests.directory)),
        }
        taken = interleaved(ways, sizes.rounds, progress)
        rows = [
            _against(taken, "search", "search from memory", "search_slots, 14 days, 50 items", 0.35),
            _against(taken, "slot", "slot from memory", "get_slot", 0.4),
            _against(taken, "directory", "directory from memory", "list_providers", 0.7),
            _against(taken, "mcp", "search", "search_slots over MCP, against REST", 0.65),
        ]
        rows.append(_generator_room(taken, floor, requests, sizes, generators))
        rows.append(_paced(service, floor, requests, taken, sizes, generators, progress))
    return rows


def mcp_search(requests: Requests) -> bytes:
    pairs = parse_qsl(requests.search.partition("?")[2])
    given = {name: int(value) if value.isdigit() else value for name, value in pairs}
    params = {"name": "search_slots", "arguments": given}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = "Accept: application/json, text/event-stream"
    return load.request("POST", "/mcp", requests.token, call, _MCP_HEADERS).replace(
        b"Accept: application/json", accept.encode(), 1
    )


def _against(taken: dict[str, list[load.Measured]], ours: str, floor: str, title: str, target: float) -> Row:
    rates, floors = [each.rate() for each in taken[ours]], [each.rate() for each in taken[floor]]
    value, low, high = ratios(rates, floors)
    spent = {name: [sum(each.costs.values()) for each in taken[name]] for name in (ours, floor)}
    costs = {name: median(values) for name, values in spent.items()}
    return Row(
        ours,
        title,
        value,
        target,
        low=low,
        high=high,
        figures=f"{median(rates):,.0f}/s of {median(floors):,.0f}/s; CPU per call {costs[ours]:,.0f} µs "
        f"({_parts(taken[ours])}) of {costs[floor]:,.0f}",
        details={"rates": rates, "floor": floors, "cpu": taken[ours][-1].costs, "cpuRatio": costs[floor] / costs[ours]},
    )


def _parts(measured: Sequence[load.Measured]) -> str:
    return ", ".join(f"{who} {median([each.costs[who] for each in measured]):,.0f}" for who in measured[0].costs)


def _generator_room(
    taken: dict[str, list[load.Measured]], floor: Floor, requests: Requests, sizes: Sizes, generators: Generators
) -> Row:
    """How much faster than the fastest case the generator could still go: on the bare handler it is busy for this share
    of the time, and what it is not busy with is waiting for the server."""
    busy = {name: median([each.generator for each in measured]) for name, measured in taken.items()}
    own = max(busy.values())
    halves = (floor.port, [requests.get(BARE)], CONNECTIONS // 2, sizes.seconds)
    two = sum(each.rate() for each in generators.together(load.repeat, [halves, halves]))
    one = median([each.rate() for each in taken["bare"]])
    names = ("bare", "search from memory", "search", "mcp")
    return Row(
        "generator",
        "the generator's share of a core at its busiest",
        own,
        0.9,
        at_most=True,
        figures=", ".join(f"{name} {busy[name]:.0%}" for name in names)
        + f"; bare handler {one:,.0f}/s, with two generators {two:,.0f}/s",
        details={"busy": busy, "oneGenerator": one, "twoGenerators": two},
    )


def _paced(
    service: Service,
    floor: Floor,
    requests: Requests,
    taken: dict[str, list[load.Measured]],
    sizes: Sizes,
    generators: Generators,
    progress: Progress,
) -> Row:
    """The same number of searches a second on both, half of what the service can do."""
    rate = PACED * median([each.rate() for each in taken["search"]])
    wanted = [requests.get(requests.search)]
    seconds = 3 * sizes.seconds

    def way(port: int) -> Callable[[], load.Measured]:
        return lambda: generators.run(load.repeat, port, wanted, 4 * CONNECTIONS, seconds, rate)

    paced = interleaved({"ours": way(service.port), "floor": way(floor.port)}, max(3, sizes.rounds // 2), progress)
    ours, theirs = [each.p99 for each in paced["ours"]], [each.p99 for each in paced["floor"]]
    value, low, high = ratios(ours, theirs)
    middle = [median([each.p50 for each in paced[name]]) * 1e3 for name in ("ours", "floor")]
    return Row(
        "search p99",
        "search_slots, p99 against the floor's",
        value,
        3.0,
        at_most=True,
        low=low,
        high=high,
        figures=f"{median(ours) * 1e3:.2f} of {median(theirs) * 1e3:.2f} ms at {rate:,.0f}/s each; "
        f"p50 {middle[0]:.2f} of {middle[1]:.2f} ms",
        details={"rate": rate, "ours": ours, "floor": theirs},
    )


def first_available(
    service: Service, requests: Requests, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """Fifty providers, at another of five locations every weekday; once with room soon, once with none for 80 days."""
    path = "/api/slots/first-available?" + urlencode({"visitTypeId": VISIT_TYPE, "procedureId": PROCEDURE})
    tokens = {}
    for slug, taken_steps, days in (("group-with-room", "s % 3 = 0", 90), ("group-booked-out", "true", 80)):
        practice = service.import_practice(group(slug))
        service.execute(patients_sql(practice, 100) + calendar_sql(practice, "09:00", 30, 16, taken_steps, days))
        tokens[slug] = service.tokens([slug])[0]
    service.settle()

    def way(wanted: bytes, calls: int) -> Callable[[], float]:
        return lambda: generators.run(load.one_by_one, service.port, wanted, calls)

    ways = {"search": way(requests.get(requests.search), 20 * _WIDE_CALLS)}
    ways |= {slug: way(load.request("GET", path, token), _WIDE_CALLS) for slug, token in tokens.items()}
    taken = interleaved(ways, max(3, sizes.rounds // 2), progress)
    rows = []
    for slug, title in (("group-with-room", "room this week"), ("group-booked-out", "booked out for 80 days")):
        value, low, high = ratios(taken[slug], taken["search"])
        rows.append(
            Row(
                slug,
                f"find_first_available, 50 providers, 5 locations, 90 days, {title}, in search_slots",
                value,
                10.0,
                at_most=True,
                low=low,
                high=high,
                figures=f"{median(taken[slug]) * 1e3:.2f} of {median(taken['search']) * 1e3:.2f} ms, one by one",
                details={"seconds": taken[slug], "searches": taken["search"]},
            )
        )
    return rows
