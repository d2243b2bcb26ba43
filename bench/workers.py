"""Two workers against one.

Where two workers, the database and the generator share two cores, twice the throughput cannot be seen: somebody has to
wait. So the row is judged by what cannot wait: how many searches the workers answer per second of their own CPU time.
Two workers that get in each other's way spend more on each; two that do not give twice the throughput as soon as they
have a core each. The measured throughput stands beside it, with who kept the cores busy.
"""

from collections.abc import Callable, Sequence

import load
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from reads import Requests
from service import Service, accounted, busy_seconds, running

_CONNECTIONS = 16  # of each worker: two have twice as many callers, so that each is as busy as the one alone


def two_workers(service: Service, requests: Requests, sizes: Sizes, generators: Generators, progress: Progress) -> Row:
    """A second server with two workers on the same database, in turn with the one that has one."""
    with running(service.folder, workers=2) as double:
        wanted = requests.get(*requests.searches)
        cores: dict[str, list[float]] = {"one": [], "two": []}

        def way(name: str, target: Service) -> Callable[[], load.Measured]:
            def work() -> load.Measured:
                before = busy_seconds()
                measured = accounted(
                    lambda: target.processes,
                    lambda: generators.run(
                        load.repeat, target.port, wanted, _CONNECTIONS * target.workers, sizes.seconds
                    ),
                )
                cores[name].append((busy_seconds() - before) / measured.seconds)
                return measured

            return work

        progress.at("warming up")
        for target in (service, double):  # until every connection of every worker's pool has planned its statements
            generators.run(load.repeat, target.port, wanted, 4 * _CONNECTIONS, 1.5 * sizes.seconds)
        taken = interleaved({"one": way("one", service), "two": way("two", double)}, sizes.rounds, progress)
    one, two = taken["one"], taken["two"]
    value, low, high = ratios([each.rate() for each in two], [each.rate() for each in one])
    kept, least, most = ratios([_per_core(each) for each in two], [_per_core(each) for each in one])
    return Row(
        "two workers",
        "two workers, searches per CPU second of the workers, times two",
        2 * kept,
        1.7,
        low=2 * least,
        high=2 * most,
        figures=f"measured {value:.2f} ({low:.2f} to {high:.2f}) with {median(cores['two']):.2f} cores busy in all, "
        f"workers {_busy(two):.2f}, database {_busy(two, 'database'):.2f}, "
        f"generator {median([each.generator for each in two]):.2f}; "
        f"one worker used {_busy(one):.2f}",
        details={"measured": value, "one": [e.rate() for e in one], "two": [e.rate() for e in two]},
    )


def _per_core(measured: load.Measured) -> float:
    return 1e6 / measured.costs["service"]


def _busy(measured: Sequence[load.Measured], who: str = "service") -> float:
    return median([each.rate() * each.costs[who] / 1e6 for each in measured])
