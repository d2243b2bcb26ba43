"""What a worker needs: memory while it works for a long time, and the time it takes to start."""

import time
from collections.abc import Sequence
from pathlib import Path

import load
from measuring import Generators, Progress, Row, Sizes, median
from reads import Requests, mcp_searches
from service import Service, resident_megabytes
from writes import Booker

_BOOKING_REQUESTS_PER_SECOND = 40.0
_SAMPLE_SECONDS = 0.5


def soak(
    service: Service, requests: Requests, booker: Booker, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """Reads over both doors as fast as they go, and bookings beside them."""
    seconds = float(sizes.soak_seconds)
    directory = requests.get(requests.directory) * len(requests.searches)
    columns = (requests.get(*requests.searches), requests.get(*requests.slots), directory, mcp_searches(requests))
    mixed = [each for row in zip(*columns, strict=True) for each in row]
    reading = generators.start(load.repeat, service.port, mixed, 16, seconds)
    wanted = booker.take(int(seconds * _BOOKING_REQUESTS_PER_SECOND))
    booking = generators.start(load.book, service.port, wanted, 4, seconds, _BOOKING_REQUESTS_PER_SECOND)
    samples: list[float] = []
    while not reading.done():
        samples.append(max(map(resident_megabytes, service.worker_pids)))
        progress.at(f"{len(samples) * _SAMPLE_SECONDS:.0f} of {seconds:.0f} s, {samples[-1]:.0f} MB")
        time.sleep(_SAMPLE_SECONDS)
    calls = reading.result().answers + booking.result().answers
    growth = growth_of(samples)
    minutes = f"{seconds / 60:.1f} minutes"
    return [
        Row(
            "memory",
            f"memory of a worker at its largest, {minutes} of load",
            max(samples),
            unit=" MB",
            figures=f"{samples[0]:.0f} MB before, {samples[-1]:.0f} MB after {calls:,} calls",
            details={"samples": samples},
        ),
        Row(
            "memory growth",
            "memory of a worker, last quarter of the load against the second",
            growth,
            figures=minutes,
        ),
    ]


def growth_of(samples: Sequence[float]) -> float:
    quarter = max(1, len(samples) // 4)
    return median(samples[-quarter:]) / median(samples[quarter : 2 * quarter] or samples[:1])


def start_up(folder: Path, sizes: Sizes, progress: Progress) -> Row:
    seconds = starts(folder, sizes, progress)
    return Row(
        "start-up",
        "start-up with a warm data directory",
        median(seconds),
        unit=" s",
        low=min(seconds),
        high=max(seconds),
    )


def starts(folder: Path, sizes: Sizes, progress: Progress) -> list[float]:
    """Seconds from the command to the first answer, with a database that exists and does not run."""
    service = Service(folder)
    seconds = []
    for number in range(sizes.starts):
        service.wait_for_database_to_end()
        progress.at(f"{number + 1} of {sizes.starts}")
        try:
            seconds.append(service.start())
        finally:
            service.stop()
    return seconds
