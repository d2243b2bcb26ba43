"""When a provider can be booked at a location: the one answer for search, live read and booking.

Owns opening hours, closures, time off, notice, horizon, the start grid and lanes, all as whole minutes since the Unix
epoch. Refuses storage, text and any clock of its own: existing appointments and `now` are handed in.

An instant is open if the clock on the location's wall then lies in the provider's hours of that local date, the
location is not closed on it, and the provider is not off. A slot is open if every real minute of it is; the buffer
after it only has to be free of other appointments. Judging instants by their wall clock makes daylight saving a matter
of course: an hour that does not exist offers nothing, and one that occurs twice is offered once per real hour.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import ceil, floor

from frontdesk.domain.directory import Location, OpeningHours, Practice, Procedure, Provider, TimeOff
from frontdesk.domain.local_time import (
    DAY_MINUTES,
    date_of,
    day_number,
    first_instant,
    last_instant,
    local_day_bounds,
    local_day_number,
    local_day_spans,
)

# Enough for a whole booking horizon of several durations, a few hundred kilobytes at most.
_REMEMBERED_DAYS = 1000
_SHORTEST_DAY_MINUTES = 23 * 60
_LONG_AGO, _NEVER = -(2**62), 2**62
_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - time off is naive local time


@dataclass(frozen=True, slots=True)
class Busy:
    """One provider's appointments, sorted by start, as parallel sequences; ends include the buffer after each."""

    starts: Sequence[int]
    ends: Sequence[int]
    lanes: Sequence[int]  # 1..capacity; a lane past the capacity takes no room from the others


class OpenTimes:
    """One provider at one location. Keep it as long as the directory it was built from: it remembers days."""

    __slots__ = ("_absences", "_capacity", "_days", "_horizon", "_hours", "_interval", "_location", "_notice", "_zone")

    def __init__(self, practice: Practice, provider: Provider, location: Location) -> None:
        self._interval = practice.slot_interval_minutes
        self._notice = practice.minimum_notice_minutes
        self._horizon = practice.booking_horizon_days
        self._capacity = provider.capacity
        self._hours = tuple(hours for hours in provider.hours if hours.location_id == location.id)
        self._location = location
        self._zone = location.time_zone
        self._absences = tuple(_absence(off, self._zone) for off in provider.time_off if off.starts < off.ends)
        self._days: dict[tuple[int, int], array[int]] = {}

    def starts(
        self,
        procedure: Procedure,
        first: date,
        last: date,
        now: float,
        busy: Busy,
        limit: int | None = None,
        after: int | None = None,
    ) -> list[int]:
        """Every bookable start on the local dates first to last, ascending: at most `limit`, and past `after`."""
        return self._starts(procedure, day_number(first), day_number(last), now, busy, limit, after)

    def is_open(self, procedure: Procedure, start: int, now: float, busy: Busy) -> bool:
        day = local_day_number(start, self._zone)
        return self._starts(procedure, day, day, now, busy, limit=1, after=start - 1) == [start]

    def window(self, first: date, last: date) -> tuple[int, int]:
        """The real time from <= t < to of the local dates first to last: all starts on them lie in it.

        A slot begun in it may run past its end, so busy times are needed for [from, to + duration + buffer).
        """
        return local_day_bounds(first, self._zone)[0], local_day_bounds(last, self._zone)[1]

    def _starts(
        self, procedure: Procedure, first: int, last: int, now: float, busy: Busy, limit: int | None, after: int | None
    ) -> list[int]:
        # In whole seconds, so that no rounding of a division decides about the minute.
        earliest = max(floor(now) // 60 + 1, -(-ceil(now) // 60) + self._notice)
        if after is not None and after >= earliest:
            earliest = after + 1
        first = max(first, local_day_number(earliest, self._zone))
        last = min(last, local_day_number(floor(now) // 60, self._zone) + self._horizon)
        duration = procedure.duration_minutes
        taken = duration + procedure.buffer_after_minutes
        # Booking fills the smallest lane first, so the last one is the likeliest to be free.
        lanes = [_Lane(busy, lane, taken) for lane in range(self._capacity, 0, -1)]
        found: list[int] = []
        for day in range(first, last + 1):
            grid = self._days.get((day, duration))
            if grid is None:
                grid = self._remember(day, duration)
            if grid and grid[0] < earliest:
                grid = grid[bisect_left(grid, earliest) :]
            if not grid:
                continue
            free = lanes[0].fitting(grid)
            for lane in lanes[1:]:
                if len(free) < len(grid):
                    free = sorted({*free, *lane.fitting(grid)})
            found += free
            if limit is not None and len(found) >= limit:
                return found[:limit]
        return found

    def _remember(self, day: int, duration: int) -> "array[int]":
        if len(self._days) >= _REMEMBERED_DAYS:
            self._days.clear()
        grid = self._days[day, duration] = array("q", sorted(self._grid(day, duration)))
        return grid

    def _grid(self, day: int, duration: int) -> set[int]:
        """The starts of one local date whose whole slot is open, whatever is booked already."""
        hours = self._hours_on(day)
        if not hours:
            return set()
        following = range(day, day + 2 + duration // _SHORTEST_DAY_MINUTES)
        open_spans = _merged([span for each in following for span in self._open_spans(each)])
        grid: set[int] = set()
        for span_start, span_end, offset in local_day_spans(day, self._zone):
            midnight = day * DAY_MINUTES - offset
            for entry in hours:
                opens, closes = midnight + entry.opens, midnight + entry.closes
                for open_start, open_end in open_spans:
                    low = max(opens, span_start, open_start)
                    high = min(closes, span_end, open_end - duration + 1)
                    steps = -(-(low - opens) // self._interval)
                    grid.update(range(opens + steps * self._interval, high, self._interval))
        return grid

    def _open_spans(self, day: int) -> list[tuple[int, int]]:
        spans = []
        for span_start, span_end, offset in local_day_spans(day, self._zone):
            midnight = day * DAY_MINUTES - offset
            for entry in self._hours_on(day):
                start, end = max(span_start, midnight + entry.opens), min(span_end, midnight + entry.closes)
                if start < end:
                    spans.append((start, end))
        for absence in self._absences:
            spans = _without(spans, absence)
        return spans

    def _hours_on(self, day: int) -> list[OpeningHours]:
        on = date_of(day)
        if any(closure.first <= on <= closure.last for closure in self._location.closures):
            return []
        return [
            hours
            for hours in self._hours
            if on.weekday() in hours.days
            and (hours.effective_from is None or hours.effective_from <= on)
            and (hours.effective_to is None or on <= hours.effective_to)
        ]


def free_lane(busy: Busy, start: int, busy_until: int, capacity: int) -> int | None:
    """The smallest lane that is free for all of start <= t < busy_until."""
    held = {
        lane
        for lane, held_from, held_until in zip(busy.lanes, busy.starts, busy.ends, strict=True)
        if held_from < busy_until and held_until > start
    }
    return next((lane for lane in range(1, capacity + 1) if lane not in held), None)


class _Lane:
    """One lane's appointments, read once from left to right: the grids asked about must ascend."""

    __slots__ = ("_at", "_busy", "_fits_until", "_held_until", "_lane", "_taken")

    def __init__(self, busy: Busy, lane: int, taken: int) -> None:
        self._busy = busy
        self._lane = lane
        self._taken = taken
        self._at = -1
        self._fits_until = self._held_until = _LONG_AGO

    def fitting(self, grid: "array[int]") -> list[int]:
        """The starts on the grid from which the lane is free for as long as the slot and its buffer take."""
        starts, ends, lanes, lane, taken = self._busy.starts, self._busy.ends, self._busy.lanes, self._lane, self._taken
        known, at, fits_until, held_until = len(starts), self._at, self._fits_until, self._held_until
        found = []
        for start in grid:
            while held_until <= start:
                at += 1
                if at == known:
                    fits_until = held_until = _NEVER
                elif lanes[at] == lane:
                    fits_until, held_until = starts[at] - taken, ends[at]
            if start <= fits_until:
                found.append(start)
        self._at, self._fits_until, self._held_until = at, fits_until, held_until
        return found


def _absence(off: TimeOff, zone: str) -> tuple[int, int]:
    """Time off read as widely as the wall clock allows: a provider who is away is never offered."""
    starts = (off.starts - _WALL_EPOCH) // timedelta(minutes=1)
    ends = -((_WALL_EPOCH - off.ends) // timedelta(minutes=1))
    return first_instant(starts, zone), last_instant(ends, zone)


def _without(spans: list[tuple[int, int]], absence: tuple[int, int]) -> list[tuple[int, int]]:
    away, back = absence
    kept = []
    for start, end in spans:
        if start < away:
            kept.append((start, min(end, away)))
        if back < end:
            kept.append((max(start, back), end))
    return kept


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
