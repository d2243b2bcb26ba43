"""Two workers against one.

A worker is not all that needs a core: the database and the generator work for every answer, too. Where one worker may
use the whole machine they run beside it, and where two do they run in their place, so that those two figures say more
about the number of cores than about the workers. Compared are therefore like with like: one worker with one core for
itself, its database and its generator, and two workers with two cores for everything and twice as many connections. The
generator has the same share of the cores on both sides, so it limits neither side more than the other. What one worker
does with all of these cores stands in a row of its own.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from pathlib import Path

import load
from floors import POOL
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from reads import Requests
from service import Service, accounted, running
from writes import SLOTS, Booker

_CONNECTIONS = 16  # for each worker
_COUNTED_SECONDS = 11.0  # after which PostgreSQL has counted what idle connections did
_TRANSACTIONS = "SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database WHERE datname IS NOT NULL"
_WAITS = """
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) FILTER (WHERE wait_event_type = 'LWLock')
FROM pg_stat_activity WHERE application_name = 'frontdesk'
"""


def two_workers(
    service: Service, requests: Requests, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """A second server with two workers on the same database, in turn with the one that has one."""
    everywhere = os.sched_getaffinity(0)
    both = set(sorted(everywhere)[:2])
    with running(service.folder, workers=2) as double:
        wanted = requests.get(*requests.searches)

        def way(target: Service, places: Iterator[set[int]]) -> Callable[[], load.Measured]:
            def work() -> load.Measured:
                cores = next(places)
                for processes in target.processes.values():
                    _confine(processes, cores)
                connections = _CONNECTIONS * target.workers
                found: load.Measured = accounted(
                    lambda: target.processes,
                    lambda: generators.run(_repeat_on, cores, target.port, wanted, connections, sizes.seconds),
                )
                return found

            return work

        progress.at("warming up")
        for target in (service, double):  # until every connection of every worker's pool has planned its statements
            generators.run(load.repeat, target.port, wanted, 4 * _CONNECTIONS, 1.5 * sizes.seconds)
        # One core may have busier neighbours than the other: two rounds on each, one forwards and one backwards.
        each_alone = cycle([{core} for core in sorted(both) for _ in range(2)])
        ways = {
            "one worker, one core": way(service, each_alone),
            "one worker, both cores": way(service, cycle([both])),
            "two workers, both cores": way(double, cycle([both])),
        }
        try:
            taken = interleaved(ways, sizes.rounds, progress)
        finally:
            for processes in service.processes.values():
                _confine(processes, everywhere)
        shared = _shared_work(double, sizes, generators, progress)
    alone, free, two = taken.values()
    return [
        _against(two, alone, "two workers", "two workers with two cores, against one with one: searches a second"),
        _against(two, free, "two workers, same cores", "the same, against one worker with both cores"),
        Row(
            "four workers",
            "cores that four busy workers, their database and their generators need",
            4 * sum(_used(free).values()) / _used(free)["service"],
            figures=f"one worker that may use both cores uses: {_cores(free)}",
        ),
        shared,
    ]


def _shared_work(service: Service, sizes: Sizes, generators: Generators, progress: Progress) -> Row:
    """What booking workers have in common: statements at one database, and the locks that they wait for."""
    booker = Booker(service, "workers", SLOTS, generators)
    seconds = 5.0 * sizes.pgbench_seconds
    progress.at("statements and locks")
    time.sleep(_COUNTED_SECONDS)
    before = service.query(_TRANSACTIONS)[0][0]
    measured, waits = service.sampled(_WAITS, lambda: booker.run(seconds))
    time.sleep(_COUNTED_SECONDS)
    transactions = service.query(_TRANSACTIONS)[0][0] - before - len(waits)
    locks, latches = (sum(row[at] for row in waits) / len(waits) for at in range(2))
    return Row(
        "statements",
        "statements of a two-phase booking with two workers, background work included",
        transactions / max(1, measured.drained["booked"]),
        figures=f"{measured.rate('booked'):,.0f} bookings/s; of {service.workers * POOL} connections on average "
        f"{locks:.2f} wait for a lock and {latches:.2f} for a latch",
    )


def _against(two: list[load.Measured], one: list[load.Measured], key: str, title: str) -> Row:
    rates, others = [each.rate() for each in two], [each.rate() for each in one]
    value, low, high = ratios(rates, others)
    return Row(
        key,
        title,
        value,
        low=low,
        high=high,
        figures=f"{median(rates):,.0f}/s of {median(others):,.0f}/s; cores used by two: {_cores(two)}; "
        f"by one: {_cores(one)}",
        details={"two": rates, "one": others},
    )


def _cores(measured: list[load.Measured]) -> str:
    return ", ".join(f"{who} {cores:.2f}" for who, cores in _used(measured).items())


def _used(measured: list[load.Measured]) -> dict[str, float]:
    """Cores, by who used them."""
    spent = {who: median([each.rate() * each.costs[who] / 1e6 for each in measured]) for who in measured[0].costs}
    return spent | {"generator": median([each.generator for each in measured])}


def _confine(processes: Iterable[int], cores: set[int]) -> None:
    """With every thread. One that has just ended needs no core."""
    for process in processes:
        for thread in Path(f"/proc/{process}/task").glob("*"):
            try:
                os.sched_setaffinity(int(thread.name), cores)
            except ProcessLookupError:
                continue


def _repeat_on(cores: set[int], port: int, requests: list[bytes], connections: int, seconds: float) -> load.Measured:
    """In the generator's process."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        return load.repeat(port, requests, connections, seconds)
    finally:
        os.sched_setaffinity(0, everywhere)
