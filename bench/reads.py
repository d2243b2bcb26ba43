"""Warm reads: throughput against the floors, time to answer at the same load, and MCP against REST."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import load
from floors import BARE, Floor, memory_server
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import calendar_sql, office, office_searches, patients_sql
from service import Service, accounted, exchange

CONNECTIONS = 16
THIRD = "s % 3 = 0 AND s NOT BETWEEN 16 AND 19"  # of the quarters of an hour, none at noon
_USUAL_FLOOR = 42.0  # microseconds of CPU that a call of floor (a) took where the targets were set
PACED = 0.5  # of what the service can do: the load at which times to answer are compared
_MCP_HEADERS = ("MCP-Protocol-Version: 2025-11-25",)


@dataclass(frozen=True)
class Requests:
    """What is asked of the office, each in rotation."""

    token: str
    practice: int
    searches: list[str]
    slots: list[str]
    directory: str = "/api/providers"

    def get(self, *paths: str) -> list[bytes]:
        return [load.request("GET", path, self.token) for path in paths]


def prepare(service: Service) -> Requests:
    """An office with a third of its calendar taken."""
    practice = service.import_practice(office("office"))
    service.execute(patients_sql(practice, 100) + calendar_sql(practice, "08:00", 15, 40, THIRD, 60))
    service.settle()
    token = service.tokens(["office"])[0]
    slots: list[str] = []
    for path in office_searches():
        status, _, body = exchange(service.port, "GET", path, headers={"Authorization": f"Bearer {token}"})
        assert status == 200, body
        items = json.loads(body)["items"]
        assert len(items) == 50, "every search must fill its page"
        slots.append(f"/api/slots/{items[len(slots) % 50]['id']}")
    return Requests(token, practice, office_searches(), slots)


def throughput(
    service: Service, requests: Requests, folder: Path, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """Everything that has floor (a), and the bare handler, in the same rounds."""
    searches, slots = requests.get(*requests.searches), requests.get(*requests.slots)
    directory = requests.get(requests.directory)

    paths = [*requests.searches, *requests.slots, requests.directory]

    def way(target: Service | Floor, wanted: Sequence[bytes]) -> Callable[[], load.Measured]:
        return lambda: measured(generators, target, load.repeat, wanted, CONNECTIONS, sizes.seconds)

    def ways(floor: Floor) -> dict[str, Callable[[], load.Measured]]:
        return {
            "bare": way(floor, requests.get(BARE)),
            "search": way(service, searches),
            "search from memory": way(floor, searches),
            "mcp": way(service, mcp_searches(requests)),
            "slot": way(service, slots),
            "slot from memory": way(floor, slots),
            "directory": way(service, directory),
            "directory from memory": way(floor, directory),
        }

    taken = on_several_processes(service, paths, requests.token, folder, ways, sizes, progress)
    with memory_server(service, paths, requests.token, folder) as floor:
        return [
            *_rates(taken, len(searches), len(slots)),
            _generator_room(taken, floor, requests, sizes, generators),
            _paced(service, floor, requests, taken, sizes, generators, progress),
        ]


def on_several_processes(
    service: Service,
    paths: list[str],
    token: str,
    folder: Path,
    ways: Callable[[Floor], dict[str, Callable[[], load.Measured]]],
    sizes: Sizes,
    progress: Progress,
) -> dict[str, list[load.Measured]]:
    """The rounds in as many parts as there are restarts, each with new processes of the service and of the floor."""
    taken: dict[str, list[load.Measured]] = {}
    for restart in range(sizes.restarts):
        if restart:
            service.restart()
        with memory_server(service, paths, token, folder) as floor:
            for name, found in interleaved(ways(floor), sizes.rounds // sizes.restarts, progress).items():
                taken.setdefault(name, []).extend(found)
    return taken


def measured(
    generators: Generators, target: Service | Floor, function: Callable[..., load.Measured], *arguments: Any
) -> load.Measured:
    """A load on the target, with the CPU time of its processes."""
    found: load.Measured = accounted(
        lambda: target.processes, lambda: generators.run(function, target.port, *arguments)
    )
    return found


def _rates(taken: dict[str, list[load.Measured]], searches: int, slots: int) -> list[Row]:
    warm = f"search_slots, 14 days, 50 items, {searches} searches in rotation, warm"
    return [
        against(taken, "search", "search from memory", warm),
        against(taken, "slot", "slot from memory", f"get_slot, {slots} in rotation"),
        against(taken, "directory", "directory from memory", "list_providers"),
        against(taken, "mcp", "search", "search_slots over MCP, against REST"),
    ]


def mcp_searches(requests: Requests) -> list[bytes]:
    return [_mcp_search(requests.token, path) for path in requests.searches]


def _mcp_search(token: str, path: str) -> bytes:
    pairs = parse_qsl(path.partition("?")[2])
    given = {name: int(value) if value.isdigit() else value for name, value in pairs}
    params = {"name": "search_slots", "arguments": given}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = "Accept: application/json, text/event-stream"
    return load.request("POST", "/mcp", token, call, _MCP_HEADERS).replace(
        b"Accept: application/json", accept.encode(), 1
    )


def against(
    taken: dict[str, list[load.Measured]],
    ours: str,
    floor: str,
    title: str,
    counted: str | None = None,
) -> Row:
    rates, floors = [each.rate(counted) for each in taken[ours]], [each.rate() for each in taken[floor]]
    value, low, high = ratios(rates, floors)
    spent = {name: [sum(each.costs.values()) for each in taken[name]] for name in (ours, floor)}
    costs = {name: median(values) for name, values in spent.items()}
    return Row(
        f"{ours}, {floor}",
        title,
        value,
        low=low,
        high=high,
        figures=f"{median(rates):,.0f}/s of {median(floors):,.0f}/s; CPU per call {costs[ours]:,.0f} µs "
        f"({_parts(taken[ours])}) of {costs[floor]:,.0f}",
        details={"rates": rates, "floor": floors, "cpu": _costs(taken[ours]), "cpuRatio": costs[floor] / costs[ours]},
    )


def scaled_costs(
    key: str,
    title: str,
    ours: Sequence[load.Measured],
    floor: Sequence[load.Measured],
    *,
    calls: int = 1,
) -> list[Row]:
    """The CPU time of so many calls, as it would be where a call of the floor takes the usual time."""
    rows = []
    for who in ("service", "database"):
        costs = [
            calls * each.costs[who] * _USUAL_FLOOR / beside.costs["service"]
            for each, beside in zip(ours, floor, strict=True)
        ]
        about = f"{title}: CPU of the {who} at {_USUAL_FLOOR:.0f} µs a call of the floor"
        rows.append(Row(f"{key}, {who}", about, median(costs), unit=" µs", low=min(costs), high=max(costs)))
    return rows


def _costs(measured: Sequence[load.Measured]) -> dict[str, float]:
    return {who: median([each.costs[who] for each in measured]) for who in measured[0].costs}


def _parts(measured: Sequence[load.Measured]) -> str:
    return ", ".join(f"{who} {cost:,.0f}" for who, cost in _costs(measured).items())


def _generator_room(
    taken: dict[str, list[load.Measured]], floor: Floor, requests: Requests, sizes: Sizes, generators: Generators
) -> Row:
    """How much faster than the fastest case the generator could still go: there it is busy for this share of the time,
    and what it is not busy with is waiting for the server."""
    busy = {name: median([each.generator for each in measured]) for name, measured in taken.items()}
    own = max(busy.values())
    halves = (floor.port, requests.get(BARE), CONNECTIONS // 2, sizes.seconds)
    two = sum(each.rate() for each in generators.together(load.repeat, [halves, halves]))
    one = median([each.rate() for each in taken["bare"]])
    names = ("bare", "directory from memory", "search from memory", "search", "mcp")
    return Row(
        "generator",
        "the generator's share of a core at its busiest",
        own,
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
    wanted = requests.get(*requests.searches)

    def way(port: int) -> Callable[[], load.Measured]:
        return lambda: generators.run(load.repeat, port, wanted, 4 * CONNECTIONS, sizes.seconds, rate)

    # Many short rounds: a moment in which the machine stood still decides the p99 of its own round only.
    paced = interleaved({"ours": way(service.port), "floor": way(floor.port)}, 2 * sizes.rounds, progress)
    ours, theirs = [each.p99 for each in paced["ours"]], [each.p99 for each in paced["floor"]]
    value, low, high = ratios(ours, theirs)
    middle = [median([each.p50 for each in paced[name]]) * 1e3 for name in ("ours", "floor")]
    return Row(
        "search p99",
        "search_slots, p99 against the floor's",
        value,
        low=low,
        high=high,
        figures=f"{median(ours) * 1e3:.2f} of {median(theirs) * 1e3:.2f} ms at {rate:,.0f}/s each; "
        f"p50 {middle[0]:.2f} of {middle[1]:.2f} ms",
        details={"rate": rate, "ours": ours, "floor": theirs},
    )
