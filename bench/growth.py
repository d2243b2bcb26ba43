"""Growth: what a search and a booking cost on a database that grows, against one that stays small.

Both services run at the same time and are measured in turn, so that a round's ratio is one of sizes and not of moments.
The small one holds one practice and ten thousand appointments. The large one holds as much in its first practice, and a
tenth of it in each of the others. Spread out means practices all over its tables and questions that nobody has asked
before; warm means few practices and few questions, over and over.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import load
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from resources import starts
from service import Service, resident_megabytes, running
from sites import Site


@dataclass(frozen=True)
class Point:
    """Costs are in those of the small database: median, lowest, highest."""

    practices: int
    appointments: int
    search: tuple[float, float, float]
    warm_search: tuple[float, float, float]
    booking: tuple[float, float, float]
    cpu: tuple[float, float, float]
    """The same by CPU time of service and database."""
    rates: tuple[float, float, float]
    """A second, on the large one."""


def grow(
    folder: Path, sizes: Sizes, generators: Generators, progress: Progress
) -> tuple[list[Row], list[Point], float]:
    """The rows, the curves, and the CPU seconds of the databases."""
    with running(folder / "small") as small_service, running(folder / "large") as large_service:
        small, large = (Site(each, generators, sizes) for each in (small_service, large_service))
        points = list(_points(small, large, sizes, progress))
        after = [*_first(large, points[-1]), _memory(large_service, points[-1])]
        after += _idle(large_service, points[-1], sizes, progress)
        cpu = small_service.database_cpu_seconds() + large_service.database_cpu_seconds()
    last = points[-1]
    size = f"{last.practices:,} practices and {last.appointments:,} appointments"
    costs = (
        ("searches", "cost of a search, spread out and never asked before,", last.search),
        ("warm searches", "cost of a search, warm,", last.warm_search),
        ("bookings", "cost of a booking, spread out,", last.booking),
    )
    rows = [
        Row(
            f"growth of {name}",
            f"{title} with {size}, in that with 1 and 10,000",
            cost[0],
            low=cost[1],
            high=cost[2],
            figures=f"{rate:,.0f}/s; by CPU time {cpu_cost:.2f}",
        )
        for (name, title, cost), rate, cpu_cost in zip(costs, last.rates, last.cpu, strict=True)
    ]
    progress.at("starting on the largest database")
    seconds = starts(folder / "large", sizes, progress)
    rows.append(
        Row(
            "start-up when large",
            f"start-up with {last.practices:,} practices",
            median(seconds),
            unit=" s",
            low=min(seconds),
            high=max(seconds),
        )
    )
    return rows + after, points, cpu


def _first(large: Site, last: Point) -> list[Row]:
    seconds = large.first_searches(last.practices)
    title = f"first search in a practice that the worker has not met, with {last.practices:,} practices"
    return [] if seconds is None else [Row("first search", title, 1e3 * seconds, unit=" ms", figures="one by one")]


def _memory(service: Service, last: Point) -> Row:
    return Row(
        "memory when large",
        f"memory of a worker after load on {last.practices:,} practices",
        max(map(resident_megabytes, service.worker_pids)),
        unit=" MB",
    )


def _idle(service: Service, last: Point, sizes: Sizes, progress: Progress) -> list[Row]:
    """What is used when nobody calls, over more than one minute. Some housekeeping is done every ten minutes only."""
    if not sizes.idle_seconds:
        return []
    service.settle()  # what has been written before is cleaned up before
    progress.at("doing nothing")
    before = service.spent_seconds()
    time.sleep(sizes.idle_seconds)
    used = {name: (seconds - before[name]) / sizes.idle_seconds for name, seconds in service.spent_seconds().items()}
    return [
        Row(
            "idle",
            f"share of a core used with {last.practices:,} practices when nobody calls",
            sum(used.values()),
            figures=f"over {sizes.idle_seconds} s: " + ", ".join(f"{name} {share:.4f}" for name, share in used.items()),
        )
    ]


def _points(small: Site, large: Site, sizes: Sizes, progress: Progress) -> Iterator[Point]:
    before = 1
    for practices in sizes.growth:
        large.grow(before, practices, progress)
        before = practices
        ways = {
            "search, small": small.search,
            "search, large": large.search,
            "warm search, small": small.warm_search,
            "warm search, large": large.warm_search,
            "booking, small": small.book_and_forget,
            "booking, large": large.book,
        }
        progress.at("getting to know the practices")
        small.get_known()
        large.get_known()
        taken = interleaved(ways, sizes.growth_rounds, progress)
        counted = {"search": None, "warm search": None, "booking": "booked"}
        costs = {
            what: ratios(
                [each.rate(name) for each in taken[f"{what}, small"]],
                [each.rate(name) for each in taken[f"{what}, large"]],
            )
            for what, name in counted.items()
        }
        yield Point(
            practices,
            large.appointments(),
            costs["search"],
            costs["warm search"],
            costs["booking"],
            (_cpu_ratio(taken, "search"), _cpu_ratio(taken, "warm search"), _cpu_ratio(taken, "booking")),
            (_rate(taken, "search"), _rate(taken, "warm search"), _rate(taken, "booking", "booked")),
        )


def _rate(taken: dict[str, list[load.Measured]], what: str, counted: str | None = None) -> float:
    return median([each.rate(counted) for each in taken[f"{what}, large"]])


def _cpu_ratio(taken: dict[str, list[load.Measured]], what: str) -> float:
    large, small = ([sum(each.costs.values()) for each in taken[f"{what}, {size}"]] for size in ("large", "small"))
    return ratios(large, small)[0]
