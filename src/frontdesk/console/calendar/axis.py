"""The time axis of a calendar page: rows of a few minutes of wall clock, shared by several days.

An hour that a clock change repeats has extra rows; on a day that skips an hour its rows are empty.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from frontdesk.console.times import SECOND
from frontdesk.domain.local_time import DAY_MINUTES, day_number, instant_at, local_day_spans, zone

STEP = 5  # minutes a row
HOUR = 60

_Cell = tuple[int, int]  # minute of the wall clock, and 1 for its repetition on that day


@dataclass(frozen=True, slots=True)
class GridPosition:
    """`rows` rows from row `at`, counted from 1."""

    at: int
    rows: int


@dataclass(frozen=True, slots=True)
class HourMark:
    """A full hour on the axis. `zone` is set for an hour that occurs twice."""

    place: GridPosition
    minute: int  # on the wall clock
    zone: str | None


class Axis:
    """The hours `opens` <= t < `closes` of the wall clock (minutes, whole hours) on some local dates of one zone."""

    def __init__(self, days: Sequence[date], time_zone: str, opens: int, closes: int) -> None:
        by_day = {day: _cells(day, time_zone) for day in days}
        repeated = {cell for cells in by_day.values() for _, cell in cells if cell[1]}
        # Repeated rows follow the last row that they repeat.
        last_repeated = max((wall for wall, _ in repeated), default=0)
        order = sorted(
            {cell for cells in by_day.values() for _, cell in cells if opens <= cell[0] < closes},
            key=lambda cell: (cell[0], 0, 0) if not cell[1] else (last_repeated, 1, cell[0]),
        )
        rows = {cell: number for number, cell in enumerate(order, 1)}
        self.rows = len(order)
        self.marks = self._marks(order, rows, repeated, by_day, time_zone)
        self._instants: dict[date, list[int]] = {}
        self._rows: dict[date, list[int]] = {}
        self._cells: dict[date, list[_Cell]] = {}
        for day, cells in by_day.items():
            shown = [(minute, rows[cell]) for minute, cell in cells if cell in rows]
            self._instants[day] = [minute for minute, _ in shown]
            self._rows[day] = [row for _, row in shown]
            self._cells[day] = [cell for _, cell in cells if cell in rows]

    def place(self, day: date, start: int, end: int) -> GridPosition | None:
        """The rows from start to end, in minutes since 1970; None if none of them is shown."""
        instants, rows = self._instants[day], self._rows[day]
        first = bisect_right(instants, start) - 1
        if first < 0 or instants[first] + STEP <= start:
            first += 1
        last = bisect_left(instants, end) - 1
        if last < first:
            return None
        return GridPosition(rows[first], rows[last] - rows[first] + 1)

    def instants(self, day: date) -> list[int]:
        """The start of each row of the day, ascending."""
        return self._instants[day]

    def begins(self, day: date) -> int | None:
        """The start of the first row, in minutes since 1970; None if the day's rows do not follow one another."""
        instants = self.instants(day)
        even = len(instants) == self.rows and instants == list(range(instants[0], instants[0] + STEP * self.rows, STEP))
        return instants[0] if even else None

    def clocks(self, day: date) -> list[str] | None:
        """The time of each row, as forms carry it, empty for rows that the day does not have; None if each row is a few
        minutes after the one above."""
        cells = dict(zip(self._rows[day], self._cells[day], strict=True))
        walls = [cell[0] for cell in cells.values()]
        if len(cells) == self.rows and walls == list(range(walls[0], walls[0] + STEP * self.rows, STEP)):
            return None
        return [_clock(*cells[row]) if row in cells else "" for row in range(1, self.rows + 1)]

    def missing(self, day: date) -> list[GridPosition]:
        """Rows of other days that this day does not have."""
        places = []
        have, at = set(self._rows[day]), 0
        for row in range(1, self.rows + 2):
            if row <= self.rows and row not in have:
                at = at or row
            elif at:
                places.append(GridPosition(at, row - at))
                at = 0
        return places

    def _marks(
        self,
        order: list[_Cell],
        rows: dict[_Cell, int],
        repeated: set[_Cell],
        by_day: dict[date, list[tuple[int, _Cell]]],
        time_zone: str,
    ) -> list[HourMark]:
        twice = {wall for wall, _ in repeated}
        marks = []
        for wall, again in order:
            if wall % HOUR:
                continue
            name = None
            if wall in twice:
                cells = next(cells for cells in by_day.values() if any(cell[1] for _, cell in cells))
                minute = next(minute for minute, cell in cells if cell == (wall, again))
                name = instant_at(minute).astimezone(zone(time_zone)).tzname()
            length = sum((wall + step, again) in rows for step in range(0, HOUR, STEP))
            marks.append(HourMark(GridPosition(rows[wall, again], length), wall, name))
        return marks


def _clock(wall: int, again: int) -> str:
    return f"{wall // HOUR:02}:{wall % HOUR:02}{SECOND if again else ''}"


def _cells(day: date, time_zone: str) -> list[tuple[int, _Cell]]:
    """The rows of one local date: the start, and what the wall clock shows."""
    midnight = day_number(day) * DAY_MINUTES
    seen: set[int] = set()
    cells = []
    for start, end, offset in local_day_spans(day_number(day), time_zone):
        for minute in range(start, end, STEP):
            wall = minute + offset - midnight
            cells.append((minute, (wall, int(wall in seen))))
            seen.add(wall)
    return cells
