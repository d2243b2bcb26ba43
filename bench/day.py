"""A mixed day: conversations of agents that end in a booking, beside a console that follows the day live."""

import re
import time
from pathlib import Path

import console_pages
import httpx
import load
from floors import BookingFloor, memory_server
from measuring import Generators, Progress, Row, Sizes, median
from practices import VISIT_TYPE, Slots, always_open, first_day, patients_sql
from resources import growth_of
from service import SESSION_COOKIE, Service, accounted, resident_megabytes

AGENTS = 16
_SLOTS = Slots(providers=80, patients=load.PATIENTS)
_READS = 7  # of a conversation, before its booking
_METRICS_TOKEN = "bench-metrics-token-0123456789abcdef"
_LOOKUPS = re.compile(r'frontdesk_answer_cache_lookups_total\{operation="(\w+)",result="(\w+)"\} ([\d.e+]+)')
_SAMPLE_SECONDS = 0.5


def mixed_day(folder: Path, sizes: Sizes, generators: Generators, progress: Progress) -> list[Row]:
    """On a service of its own, which counts the hits of its cache."""
    service = Service(folder)
    service.environment["FRONTDESK_METRICS_TOKEN"] = _METRICS_TOKEN
    try:
        service.start()
        return _measured(service, folder, sizes, generators, progress)
    finally:
        service.stop()


def _measured(service: Service, folder: Path, sizes: Sizes, generators: Generators, progress: Progress) -> list[Row]:
    practice = service.import_practice(always_open("day", _SLOTS.providers))
    floor_practice = service.import_practice(always_open("day-floor", _SLOTS.providers))
    service.execute(patients_sql(practice, _SLOTS.patients), patients_sql(floor_practice, _SLOTS.patients))
    token = service.tokens(["day"])[0]
    day = first_day().date().isoformat()
    seconds = float(sizes.day_seconds)
    cookie = f"{SESSION_COOKIE}={service.staff_session('day')}"
    progress.at("the floors")
    paths = [*_paths(1, day), "/api/providers/1"]  # the slot of the seventh step differs in its bytes only
    with memory_server(service, paths, token, folder) as floor:
        wanted = [load.request("GET", path, token) for path in paths]
        read = accounted(
            lambda: floor.processes, lambda: generators.run(load.repeat, floor.port, wanted, AGENTS, sizes.seconds)
        )
    booking, before = BookingFloor(service, floor_practice, _SLOTS), service.spent_seconds()
    seconds_of_floor = 5 * sizes.pgbench_seconds  # connecting and planning count, too
    rate = booking.run(seconds_of_floor)
    booked = (service.spent_seconds()["database"] - before["database"]) / (rate * seconds_of_floor) * 1e6

    following = generators.start(
        console_pages.follow, service.port, cookie, f"/console/calendar/grid?date={day}", seconds
    )
    before = service.spent_seconds()
    talking = generators.start(load.converse, service.port, token, day, _SLOTS.providers, AGENTS, seconds)
    samples: list[float] = []
    while not talking.done():
        samples.append(max(map(resident_megabytes, service.worker_pids)))
        progress.at(f"{len(samples) * _SAMPLE_SECONDS:.0f} of {seconds:.0f} s")
        time.sleep(_SAMPLE_SECONDS)
    talk, refreshed = talking.result(), following.result()
    ended = max(1, talk.drained["ended"])
    costs = {who: (spent - before[who]) / ended * 1e6 for who, spent in service.spent_seconds().items()}
    floors = _READS * read.costs["service"] + booked
    return [
        Row(
            "mixed day",
            f"{AGENTS} agents' conversations beside a live console, {seconds:.0f} s: CPU against the sum of floors",
            sum(costs.values()) / floors,
            figures=f"{talk.drained['ended'] / seconds:,.1f} conversations/s, each p50 {talk.p50 * 1000:,.0f} ms, p99 "
            f"{talk.p99 * 1000:,.0f} ms; CPU per conversation service {costs['service']:,.0f} µs, database "
            f"{costs['database']:,.0f} µs, of {floors:,.0f} µs ({_READS} reads of floor (a), a booking of floor (b)); "
            f"the console refreshed {refreshed} times; hits of the answer cache: {_hit_rates(service)}",
            details={"cpu": costs, "floors": floors},
        ),
        Row(
            "mixed day, memory",
            "memory of a worker during the mixed day, last quarter against the second",
            growth_of(samples),
            figures=f"{median(samples[-4:]):.0f} MB at the end",
        ),
    ]


def _paths(provider: int, day: str) -> list[str]:
    """What a conversation reads by GET, up to its search."""
    return [*load.directory_paths(VISIT_TYPE), load.search_path(provider, day)]


def _hit_rates(service: Service) -> str:
    headers = {"Authorization": f"Bearer {_METRICS_TOKEN}"}
    text = httpx.get(f"http://127.0.0.1:{service.port}/metrics", headers=headers).text
    counts: dict[str, dict[str, float]] = {}
    for operation, result, count in _LOOKUPS.findall(text):
        counts.setdefault(operation, {})[result] = float(count)
    shares = {operation: found.get("hit", 0.0) / sum(found.values()) for operation, found in counts.items()}
    return ", ".join(f"{operation} {share:.0%}" for operation, share in sorted(shares.items()))
