"""Availability of a provider at a location: the one function behind search, live read and booking.

All times are whole minutes since the Unix epoch. An instant is open if its local wall-clock time is within the
provider's hours, the location is not closed, and the provider is not off. A slot is open if every minute of it is; the
buffer after it only has to be free of other appointments. An hour that daylight saving skips therefore has no slots,
and an hour that occurs twice has slots in both occurrences.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import pairwise
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

# Enough for a whole booking horizon with several durations, a few hundred kilobytes at most.
_REMEMBERED_DAYS = 1000
_MIN_DAY_MINUTES = 23 * 60
_EPOCH_WEEKDAY = 3  # the epoch's date was a Thursday
_LONG_AGO, _NEVER = -(2**62), 2**62
_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - time off is naive local time
MAX_APPOINTMENT_MINUTES = 2 * DAY_MINUTES  # also of a hold, with the buffer after it; the tables have constraints
OVERRIDE_LANE = 1001  # the first lane of appointments that staff booked against the rules; above any capacity


@dataclass(frozen=True, slots=True)
class Busy:
    """One provider's appointments, sorted by start, as parallel sequences; ends include the buffer after each."""

    starts: Sequence[int]
    ends: Sequence[int]
    lanes: Sequence[int]  # 1..capacity, or those of overrides; others beyond the capacity are ignored

    def starting(self, begin: int, end: int) -> "Busy":
        """The appointments that start in begin <= t < end."""
        low, high = bisect_left(self.starts, begin), bisect_left(self.starts, end)
        return Busy(self.starts[low:high], self.ends[low:high], self.lanes[low:high])


Gap = tuple[int, int]  # a slot and its buffer fit wherever first <= start <= last


def free_gaps(busy: Busy, capacity: int, procedure: Procedure) -> Iterator[Gap]:
    """The gaps between one provider's appointments in which the procedure fits, ascending; the last one is unbounded.

    The gaps are the same at every location, and are computed lazily. An override takes no lane of the capacity, but one
    of its places: the time is full wherever appointments and overrides together reach the capacity.
    """
    taken = procedure.duration_minutes + procedure.buffer_after_minutes
    lanes = [_gaps(busy, lane, taken) for lane in range(1, capacity + 1)]
    free = lanes[0] if capacity == 1 else _merged_gaps(merge(*lanes))
    if max(busy.lanes, default=0) < OVERRIDE_LANE:
        return free
    return _outside_full_spans(free, _full_spans(busy, capacity), taken)


def max_taken(busy: Busy, capacity: int, begin: int, end: int) -> int:
    """The most places that are taken at the same time in begin <= t < end."""
    taken = [count for since, until, count in _counted(busy, capacity) if since < end and until > begin]
    return max(taken, default=0)


def first_full(busy: Busy, capacity: int, begin: int, end: int) -> int | None:
    """The first minute of begin <= t < end at which no place is free."""
    spans = (span for span in _full_spans(busy, capacity) if span[0] < end and span[1] > begin)
    return next((max(since, begin) for since, _ in spans), None)


class OpenTimes:
    """The opening times of one provider at one location; caches days, so keep it as long as its directory."""

    __slots__ = ("_capacity", "_days", "_horizon", "_hours", "_interval", "_location", "_notice", "_time_off", "_zone")

    def __init__(self, practice: Practice, provider: Provider, location: Location) -> None:
        self._interval = practice.slot_interval_minutes
        self._notice = practice.minimum_notice_minutes
        self._horizon = practice.booking_horizon_days
        self._capacity = provider.capacity
        here = [hours for hours in provider.hours if hours.location_id == location.id]
        self._hours = [[hours for hours in here if weekday in hours.days] for weekday in range(7)]
        self._location = location
        self._zone = location.time_zone
        self._time_off = tuple((off, time_away(off, self._zone)) for off in provider.time_off if off.starts < off.ends)
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
        """Bookable starts on the local dates first to last, ascending: at most `limit`, and later than `after`."""
        begin, end = self.reach(first, last, now)
        if after is not None:
            begin = max(begin, after + 1)
        return self.open_starts(
            procedure.duration_minutes, begin, end, free_gaps(busy, self._capacity, procedure), limit
        )

    def is_open(self, procedure: Procedure, start: int, now: float, busy: Busy) -> bool:
        begin, end = self.reach(None, None, now)
        if not begin <= start < end:
            return False
        free = free_gaps(busy, self._capacity, procedure)
        return self.open_starts(procedure.duration_minutes, start, start + 1, free, 1) == [start]

    def reach(self, first: date | None, last: date | None, now: float) -> tuple[int, int]:
        """The time from <= t < to in which slots may start on the local dates first to last, after the minimum notice
        and within the horizon. It is empty if to <= from, and the same for all providers in one time zone.

        A slot may end later, so busy times are needed for [from, to + duration + buffer).
        """
        # Whole seconds: a rounding error of a division must not change the minute.
        earliest = max(floor(now) // 60 + 1, -(-ceil(now) // 60) + self._notice)
        today = local_day_number(floor(now) // 60, self._zone)
        first_day = today if first is None else max(day_number(first), today)
        last_day = today + self._horizon
        if last is not None:
            last_day = min(last_day, day_number(last))
        if first_day > last_day:
            return earliest, earliest
        begin, end = self.window(date_of(first_day), date_of(last_day))
        return max(earliest, begin), end

    def window(self, first: date, last: date) -> tuple[int, int]:
        """The time from <= t < to of the local dates first to last."""
        return local_day_bounds(first, self._zone)[0], local_day_bounds(last, self._zone)[1]

    def open_spans(self, day: date) -> list[tuple[int, int]]:
        """The open time of one local date, regardless of appointments."""
        return merged(self._open_spans(day_number(day)))

    def covers(self, begin: int, end: int) -> bool:
        """Whether every minute begin <= t < end is open, regardless of appointments."""
        days = range(local_day_number(begin, self._zone), local_day_number(end - 1, self._zone) + 1)
        spans = merged([span for day in days for span in self._open_spans(day)])
        return any(opens <= begin and end <= closes for opens, closes in spans)

    def on_grid(self, duration: int, start: int) -> bool:
        """Whether a slot may start there, regardless of appointments."""
        return self.open_starts(duration, start, start + 1, [(_LONG_AGO, _NEVER)], 1) == [start]

    def time_off(self, begin: int, end: int) -> TimeOff | None:
        """The provider's first absence in begin <= t < end."""
        return next((off for off, (away, back) in self._time_off if away < end and back > begin), None)

    def open_starts(self, duration: int, begin: int, end: int, free: Iterable[Gap], limit: int | None) -> list[int]:
        """Starts begin <= t < end whose whole slot is open and free, ascending, at most `limit`."""
        found: list[int] = []
        if begin >= end:
            return found
        gaps = iter(free)
        first, last = next(gaps)
        for day in range(local_day_number(begin, self._zone), local_day_number(end - 1, self._zone) + 1):
            if not self._hours[(day + _EPOCH_WEEKDAY) % 7]:
                continue
            grid = self._days.get((day, duration))
            if grid is None:
                grid = self._remember(day, duration)
            if not grid or grid[-1] < begin:
                continue
            if grid[0] >= end:
                break
            while last < grid[0]:
                first, last = next(gaps)
            if first > grid[-1]:
                continue  # the day is full: the next gap is after its last start
            for start in grid[bisect_left(grid, begin) : bisect_left(grid, end)]:
                while last < start:
                    first, last = next(gaps)
                if first <= start:
                    found.append(start)
            if limit is not None and len(found) >= limit:
                return found[:limit]
        return found

    def _remember(self, day: int, duration: int) -> "array[int]":
        if len(self._days) >= _REMEMBERED_DAYS:
            self._days.clear()
        grid = self._days[day, duration] = array("i", self._grid(day, duration))
        return grid

    def _grid(self, day: int, duration: int) -> Sequence[int]:
        """The starts of one local date whose whole slot is open, regardless of appointments, ascending."""
        hours = self._hours_on(day)
        if not hours:
            return ()
        following = range(day, day + 2 + duration // _MIN_DAY_MINUTES)
        open_spans = merged([span for each in following for span in self._open_spans(each)])
        runs = []
        for span_start, span_end, offset in local_day_spans(day, self._zone):
            midnight = day * DAY_MINUTES - offset
            for entry in hours:
                opens, closes = midnight + entry.opens, midnight + entry.closes
                for open_start, open_end in open_spans:
                    low = max(opens, span_start, open_start)
                    high = min(closes, span_end, open_end - duration + 1)
                    if low < high:
                        steps = -(-(low - opens) // self._interval)
                        runs.append(range(opens + steps * self._interval, high, self._interval))
        return runs[0] if len(runs) == 1 else sorted({start for run in runs for start in run})

    def _open_spans(self, day: int) -> list[tuple[int, int]]:
        hours = self._hours_on(day)
        if not hours:
            return []
        spans = []
        for span_start, span_end, offset in local_day_spans(day, self._zone):
            midnight = day * DAY_MINUTES - offset
            for entry in hours:
                start, end = max(span_start, midnight + entry.opens), min(span_end, midnight + entry.closes)
                if start < end:
                    spans.append((start, end))
        for _, absence in self._time_off:
            spans = _without(spans, absence)
        return spans

    def _hours_on(self, day: int) -> list[OpeningHours]:
        usual = self._hours[(day + _EPOCH_WEEKDAY) % 7]
        if not usual:
            return usual
        on = date_of(day)
        if any(closure.first <= on <= closure.last for closure in self._location.closures):
            return []
        return [
            hours
            for hours in usual
            if (hours.effective_from is None or hours.effective_from <= on)
            and (hours.effective_to is None or on <= hours.effective_to)
        ]


def _gaps(busy: Busy, lane: int, taken: int) -> Iterator[Gap]:
    free = _LONG_AGO
    for start, end, held in zip(busy.starts, busy.ends, busy.lanes, strict=True):
        if held == lane:
            if start - free >= taken:
                yield free, start - taken
            if end > free:
                free = end
    yield free, _NEVER


def _merged_gaps(gaps: Iterator[Gap]) -> Iterator[Gap]:
    """Overlapping gaps merged; the input is sorted by start."""
    first, last = next(gaps)
    for start, end in gaps:
        if start <= last:
            last = max(last, end)
        else:
            yield first, last
            first, last = start, end
    yield first, last


def _outside_full_spans(gaps: Iterator[Gap], full: Sequence[tuple[int, int]], taken: int) -> Iterator[Gap]:
    """The gaps without the starts of slots that would overlap a full span."""
    for first, last in gaps:
        for since, until in full:
            if until <= first:
                continue
            if since - taken >= last:
                break
            if since - taken >= first:
                yield first, since - taken
            first = until
        if first <= last:
            yield first, last


def _full_spans(busy: Busy, capacity: int) -> list[tuple[int, int]]:
    return merged([(since, until) for since, until, count in _counted(busy, capacity) if count >= capacity])


def _counted(busy: Busy, capacity: int) -> Iterator[tuple[int, int, int]]:
    """The spans between the starts and ends of appointments, ascending, and how many lanes each takes."""
    lanes: dict[int, list[tuple[int, int]]] = {}
    for start, end, lane in zip(busy.starts, busy.ends, busy.lanes, strict=True):
        if lane <= capacity or lane >= OVERRIDE_LANE:
            lanes.setdefault(lane, []).append((start, end))
    steps: dict[int, int] = {}
    for spans in lanes.values():
        for start, end in merged(spans):
            steps[start] = steps.get(start, 0) + 1
            steps[end] = steps.get(end, 0) - 1
    edges, count = sorted(steps), 0
    for since, until in pairwise(edges):
        count += steps[since]
        yield since, until, count


def time_away(off: TimeOff, zone: str) -> tuple[int, int]:
    """Time off as an interval; an ambiguous local time is read so that the interval is longest."""
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


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order; those that touch or overlap are merged."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
