"""Noisy neighbours: what a practice notices of another that never stops asking for searches never asked before."""

import itertools
from collections.abc import Iterator

import load
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import calendar_sql, office, office_queries, patients_sql, unheard
from reads import THIRD, Requests
from service import Service

_NOISY_CONNECTIONS = 32
_QUIET_CONNECTIONS = 8
_QUIET_RATE = 100.0  # searches a second: far from what the service can do
_WINDOWS = 10  # as long as so many rounds of other rows: a 99th percentile needs hundreds of answers
_CAP = 600  # calls a minute, the default cap; the neighbour spends that many in every window, one after the other


def noisy_neighbour(
    service: Service, requests: Requests, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """The same searches at the same rate, alone and beside the neighbour."""
    practice = service.import_practice(office("neighbour"))
    service.execute(patients_sql(practice, 100) + calendar_sql(practice, "08:00", 15, 40, THIRD, 60))
    token = service.tokens(["neighbour"])[0]
    never_asked: Iterator[bytes] = (load.request("GET", path, token) for path in unheard(office_queries()))
    seconds = _WINDOWS * sizes.seconds
    quiet = (service.port, requests.get(*requests.searches), _QUIET_CONNECTIONS, seconds, _QUIET_RATE)

    def alone() -> load.Measured:
        return generators.run(load.repeat, *quiet)

    def beside() -> load.Measured:
        wanted = list(itertools.islice(never_asked, _WINDOWS * _CAP))
        noise = generators.start(load.all_once, service.port, wanted, _NOISY_CONNECTIONS)
        found = generators.run(load.repeat, *quiet)
        noise.result()
        return found

    taken = interleaved({"alone": alone, "beside": beside}, max(2, sizes.rounds // _WINDOWS), progress)
    value, low, high = ratios([each.p99 for each in taken["beside"]], [each.p99 for each in taken["alone"]])
    times = {
        name: [median([getattr(each, part) for each in found]) * 1e3 for part in ("p50", "p99")]
        for name, found in taken.items()
    }
    return [
        Row(
            "noisy neighbour",
            f"search_slots, warm, p99 beside {_WINDOWS * _CAP:,} cold searches of another practice, against alone",
            value,
            low=low,
            high=high,
            figures=f"p50 {times['beside'][0]:.2f} of {times['alone'][0]:.2f} ms, "
            f"p99 {times['beside'][1]:.2f} of {times['alone'][1]:.2f} ms at {_QUIET_RATE:,.0f}/s",
            details=times,
        )
    ]
