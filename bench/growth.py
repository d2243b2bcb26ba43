"""Growth: what a search and a booking cost on a database that grows, against one that stays small.

Both services run at the same time and are measured in turn, so that a round's ratio is one of sizes and not of moments.
The small one holds one practice and ten thousand appointments. The large one holds as much in its first practice, and a
tenth of it in each of the others; its load goes to practices all over the table.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import load
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import Slots, always_open, patients_sql, scattered_sql, search_path
from service import Service, accounted, running

TARGET = 1.25
SLOTS = Slots(providers=9, patients=20)
_SEARCHED = SLOTS.providers + 1  # a provider whom nobody books, so that searches cost the same from first to last
_AHEAD, _PAST = 100, 900  # appointments of a provider
_CONNECTIONS = 16
_BOOKERS = 8  # fewer than a practice has providers: nobody waits for another's commit, however few practices there are
_SPREAD = 16  # practices that the load goes to
_AT_ONCE = 100  # practices loaded by one statement
_MOST_BOOKINGS = 2000
_SECONDS = 1.0

_CLONE = """
INSERT INTO practice OVERRIDING SYSTEM VALUE
SELECT (jsonb_populate_record(p, jsonb_build_object('practice_id', n, 'slug', 'practice-' || n))).*
FROM practice p, generate_series({first}, {last}) n WHERE p.practice_id = 1;
"""
_CLONE_PART = """
INSERT INTO {table}
SELECT (jsonb_populate_record(t, jsonb_build_object('practice_id', p.practice_id))).*
FROM {table} t, practice p WHERE t.practice_id = 1 AND p.practice_id BETWEEN {first} AND {last};
"""
_PARTS = ("location", "provider", "visit_type", "procedure")


@dataclass(frozen=True)
class Point:
    practices: int
    appointments: int
    search: tuple[float, float, float]
    """The cost in that of the small database: median, lowest, highest."""
    booking: tuple[float, float, float]
    cpu: tuple[float, float]
    """The same by CPU time of service and database: of a search, of a booking."""
    searches_per_second: float
    bookings_per_second: float


class Site:
    """A service, and the practices that its load goes to."""

    def __init__(self, service: Service, generators: Generators) -> None:
        self.service, self._generators = service, generators
        assert service.import_practice(always_open("practice-1", _SEARCHED)) == 1
        service.execute(patients_sql(1, SLOTS.patients) + scattered_sql("1", _PAST, _AHEAD))
        service.settle()
        self._booked: dict[int, int] = {}
        self.aim(1)

    def aim(self, practices: int) -> None:
        """Spreads the load over the practices there are."""
        step = max(1, practices // _SPREAD)
        self._aims = list(range(1, practices + 1, step))[:_SPREAD]
        self._tokens = self.service.tokens([f"practice-{number}" for number in self._aims])
        self._ids = self.service.slot_ids(self._aims)

    def grow(self, before: int, practices: int, progress: Progress) -> None:
        for first in range(before + 1, practices + 1, 2 * _AT_ONCE):
            progress.at(f"loading practice {first:,} of {practices:,}")
            halves = ((first, first + _AT_ONCE - 1), (first + _AT_ONCE, first + 2 * _AT_ONCE - 1))
            self.service.execute(
                *(_load(start, min(end, practices)) for start, end in halves if start <= min(end, practices))
            )
        self.service.execute(
            "SELECT setval(pg_get_serial_sequence('practice', 'practice_id'), max(practice_id)) FROM practice"
        )
        progress.at("vacuuming")
        self.service.settle()
        self.aim(practices)

    def search(self) -> load.Measured:
        requests = [load.request("GET", search_path(_SEARCHED), token) for token in self._tokens]
        return self._accounted(load.repeat, self.service.port, requests, _CONNECTIONS, _SECONDS)

    def book(self) -> load.Measured:
        count = math.ceil(_MOST_BOOKINGS / len(self._aims))
        wanted = [
            SLOTS.bookings(token, ids, self._booked.get(practice, 0), count)
            for practice, token, ids in zip(self._aims, self._tokens, self._ids, strict=True)
        ]
        in_turn = list(chain.from_iterable(zip(*wanted, strict=True)))
        measured = self._accounted(load.book, self.service.port, in_turn, _BOOKERS, _SECONDS)
        used = math.ceil(measured.drained["booked"] / len(self._aims))
        for practice in self._aims:
            self._booked[practice] = self._booked.get(practice, 0) + used
        return measured

    def book_and_forget(self) -> load.Measured:
        """Bookings that are removed again: all go to one practice, whose days would otherwise fill up faster than those
        of many."""
        measured = self.book()
        self.service.execute("DELETE FROM appointment WHERE booked_by <> 'bench'")
        self.service.execute("VACUUM appointment")
        self._booked.clear()
        return measured

    def _accounted(self, work: Callable[..., load.Measured], *arguments: object) -> load.Measured:
        measured: load.Measured = accounted(
            lambda: self.service.processes, lambda: self._generators.run(work, *arguments)
        )
        return measured

    def appointments(self) -> int:
        found: int = self.service.query("SELECT count(*) FROM appointment WHERE booked_by = 'bench'")[0][0]
        return found


def _load(first: int, last: int) -> str:
    cloned = [_CLONE, *(_CLONE_PART.replace("{table}", table) for table in _PARTS)]
    numbers = ", ".join(map(str, range(first, last + 1)))
    return "".join(sql.format(first=first, last=last) for sql in cloned) + (
        patients_sql(numbers, SLOTS.patients) + scattered_sql(numbers, 0, _AHEAD)
    )


def grow(
    folder: Path, sizes: Sizes, generators: Generators, progress: Progress
) -> tuple[list[Row], list[Point], float]:
    """The rows, the curves, and the CPU seconds of the databases."""
    with running(folder / "small") as small_service, running(folder / "large") as large_service:
        small, large = Site(small_service, generators), Site(large_service, generators)
        points = list(_points(small, large, sizes, progress))
        cpu = small_service.database_cpu_seconds() + large_service.database_cpu_seconds()
        progress.at("starting on the largest database")
        large_service.stop()
        large_service.wait_for_database_to_end()
        seconds = large_service.start()
    last = points[-1]
    size = f"{last.practices:,} practices and {last.appointments:,} appointments"
    rows = [
        Row(
            f"growth of {name}",
            f"{title} with {size}, in that with 1 and 10,000",
            cost[0],
            TARGET,
            at_most=True,
            low=cost[1],
            high=cost[2],
            figures=f"{rate:,.0f}/s; by CPU time {cpu_cost:.2f}",
        )
        for name, title, cost, rate, cpu_cost in (
            ("searches", "cost of a search", last.search, last.searches_per_second, last.cpu[0]),
            ("bookings", "cost of a booking", last.booking, last.bookings_per_second, last.cpu[1]),
        )
    ]
    rows.append(Row("start-up when large", f"start-up with {last.practices:,} practices", seconds, unit=" s"))
    return rows, points, cpu


def _points(small: Site, large: Site, sizes: Sizes, progress: Progress) -> Iterator[Point]:
    before = 1
    for practices in sizes.growth:
        large.grow(before, practices, progress)
        before = practices
        ways = {
            "search, small": small.search,
            "search, large": large.search,
            "booking, small": small.book_and_forget,
            "booking, large": large.book,
        }
        taken = interleaved(ways, sizes.growth_rounds, progress)
        searches = {name: [each.rate() for each in taken[f"search, {name}"]] for name in ("small", "large")}
        booked = {name: [each.rate("booked") for each in taken[f"booking, {name}"]] for name in ("small", "large")}
        yield Point(
            practices,
            large.appointments(),
            ratios(searches["small"], searches["large"]),
            ratios(booked["small"], booked["large"]),
            (_cpu_ratio(taken, "search"), _cpu_ratio(taken, "booking")),
            median(searches["large"]),
            median(booked["large"]),
        )


def _cpu_ratio(taken: dict[str, list[load.Measured]], what: str) -> float:
    large, small = ([sum(each.costs.values()) for each in taken[f"{what}, {size}"]] for size in ("large", "small"))
    return ratios(large, small)[0]
