"""Caches providers' appointments and the open starts between them; bookings never read this cache.

A provider's calendar counts its changes. Every search reads the count again, and an entry read under another count is
never used as it is: what changed since then is read first. One with holds is used until the first of them expires.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from frontdesk.cache import BoundedCache
from frontdesk.domain.availability import MAX_APPOINTMENT_MINUTES, Busy, OpenTimes, free_gaps
from frontdesk.domain.directory import Procedure
from frontdesk.domain.local_time import DAY_MINUTES
from frontdesk.store.calendar_versions import LastBooking
from frontdesk.store.rows import network_integers
from frontdesk.systems.native.opening_times import ProviderOffers

MAX_BYTES = 8_000_000  # over all practices
_OVERHEAD, _WEEK_OVERHEAD = 1000, 200  # bytes of a calendar without appointments, of a week without open starts
_WEEK_MINUTES = 7 * DAY_MINUTES


class CalendarRange(NamedTuple):
    """A part of a calendar: the appointments that overlap begin <= t < end."""

    begin: int
    end: int


class CalendarRow(NamedTuple):
    """A provider's calendar as it was read. Of each appointment its start, end and lane, of each hold also its expiry,
    as integers in network byte order."""

    changes: int
    mark: int | None  # of the last change; None: it is not on record
    since: int  # the appointments are those that start in since <= t < until; the others are known
    until: int
    appointments: bytes | None
    holds: bytes | None


@dataclass(slots=True, eq=False)
class OpenWeeks:
    """Open starts by week, as far as they have been computed from the opening times at some locations.

    Each start is multiplied by the number of locations, and the index of its location is added: they are in order of
    start and location."""

    times: tuple[OpenTimes, ...]
    starts: dict[int, "array[int]"] = field(default_factory=dict)
    none_from: int = 0  # in none_from <= t < none_until nothing is open: searches for the first start skip that
    none_until: int = 0

    @property
    def size(self) -> int:
        return sum(map(_week_size, self.starts.values()))

    def without(self, weeks: Set[int], begin: int) -> "OpenWeeks":
        """The open starts without those of `weeks` and of weeks before `begin`."""
        past, length = begin // _WEEK_MINUTES, len(self.times) * _WEEK_MINUTES
        starts = {week: starts for week, starts in self.starts.items() if week >= past and week not in weeks}
        cuts = [week * length for week in weeks if (week + 1) * length > self.none_from]
        return OpenWeeks(self.times, starts, self.none_from, min([self.none_until, *cuts]))


@dataclass(slots=True, eq=False)
class ProviderCalendar:
    """One provider's appointments that overlap begin <= t < end, and the starts that are open between them."""

    changes: int
    mark: int | None  # of the last change, if it is on record
    begin: int
    end: int
    appointments: Busy
    holds: Busy
    until: float  # when the first hold expires
    busy: Busy = field(init=False)  # appointments and holds
    open: dict[tuple[tuple[int, ...], int, int], OpenWeeks] = field(
        default_factory=dict
    )  # by locations, duration, buffer
    size: int = field(init=False)  # about as many bytes

    def __post_init__(self) -> None:
        self.busy = _merge_busy(self.appointments, self.holds) if self.has_holds else self.appointments
        self.size = _OVERHEAD + 12 * (len(self.appointments.starts) + len(self.holds.starts))
        if self.has_holds:
            self.size += 12 * len(self.busy.starts)

    @property
    def has_holds(self) -> bool:
        return len(self.holds.starts) > 0


class CalendarCache:
    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._cached: BoundedCache[tuple[int, int], ProviderCalendar] = BoundedCache(max_bytes)

    def clear(self) -> None:
        self._cached.clear()

    def cached(self, practice_id: int, provider_ids: Sequence[int]) -> dict[int, ProviderCalendar]:
        cached = ((provider_id, self._cached.get((practice_id, provider_id))) for provider_id in provider_ids)
        return {provider_id: calendar for provider_id, calendar in cached if calendar is not None}

    def update(
        self, practice_id: int, provider_id: int, span: CalendarRange, read: CalendarRow, known: ProviderCalendar | None
    ) -> ProviderCalendar:
        """Stores the calendar of that range: what was read, and the rest as it was `known`."""
        appointments = _appointments(span, read, known)
        held = network_integers("i", read.holds)
        holds, until = Busy(held[0::4], held[1::4], held[2::4]), min(held[3::4], default=inf)
        updated = ProviderCalendar(read.changes, read.mark, *span, appointments, holds, until)
        # A hold that is new since then is among what has changed.
        changed = () if known is None else ((read.since, read.until), *_spans(known.holds))
        return self._store(practice_id, provider_id, updated, known, changed)

    def add_booking(self, practice_id: int, known: ProviderCalendar, booking: LastBooking) -> ProviderCalendar | None:
        """Stores the calendar with a booking that is the only change since it was read; None if that is not certain."""
        if booking.changes != known.changes + 1 or booking.mark_before != known.mark:
            return None
        appointments = known.appointments
        if booking.start < known.end and booking.end > known.begin:
            appointments = _merge_busy(appointments, Busy((booking.start,), (booking.end,), (booking.lane,)))
        booked = ProviderCalendar(
            booking.changes, booking.mark, known.begin, known.end, appointments, known.holds, known.until
        )
        return self._store(practice_id, booking.provider_id, booked, known, ((booking.start, booking.end),))

    def _store(
        self,
        practice_id: int,
        provider_id: int,
        calendar: ProviderCalendar,
        known: ProviderCalendar | None,
        changed: Sequence[tuple[int, int]],
    ) -> ProviderCalendar:
        if known is not None:
            calendar.open = _open_as_before(known, calendar.begin, changed)
        calendar.size += sum(weeks.size for weeks in calendar.open.values())
        self._cached.put((practice_id, provider_id), calendar, weight=calendar.size)
        return calendar

    def open_starts(
        self,
        practice_id: int,
        calendars: Mapping[int, ProviderCalendar],
        procedure: Procedure | None,
        limit: int,
        offers: ProviderOffers,
        first: int,
        last: int,
    ) -> Sequence[int]:
        """The first open starts in first <= t < last, each with its location, as `OpenWeeks` has them. The provider's
        calendar must cover them."""
        assert procedure is not None, "there is an offer of it"
        calendar = calendars[offers.provider.id]
        key = (offers.location_ids, procedure.duration_minutes, procedure.buffer_after_minutes)
        weeks = calendar.open.get(key)
        if weeks is None or weeks.times != offers.times:
            weeks = calendar.open[key] = OpenWeeks(offers.times)
        none_from = first
        if weeks.none_from <= first < weeks.none_until:
            if last <= weeks.none_until:
                return ()
            none_from, first = weeks.none_from, weeks.none_until
        found: list[int] = []
        count, grown = len(offers.times), 0
        week, last_week = first // (count * _WEEK_MINUTES), (last - 1) // (count * _WEEK_MINUTES)
        while week <= last_week and len(found) < limit:
            starts = weeks.starts.get(week)
            if starts is None:
                starts = weeks.starts[week] = _open_in_week(procedure, offers, calendar, week)
                grown += _week_size(starts)
            if starts:
                found += starts[bisect_left(starts, first) : bisect_left(starts, last)]
            week += 1
        del found[limit:]
        weeks.none_from, weeks.none_until = none_from, found[0] if found else last
        if grown:
            calendar.size += grown
            if self._cached.get((practice_id, offers.provider.id)) is calendar:
                self._cached.put((practice_id, offers.provider.id), calendar, weight=calendar.size)
        return found


def _open_in_week(procedure: Procedure, offers: ProviderOffers, calendar: ProviderCalendar, week: int) -> "array[int]":
    """Past starts included, so that the result can be reused later."""
    begin, end = week * _WEEK_MINUTES, (week + 1) * _WEEK_MINUTES
    duration, buffer = procedure.duration_minutes, procedure.buffer_after_minutes
    busy = calendar.busy.starting(begin - MAX_APPOINTMENT_MINUTES, end + duration + buffer)
    gaps = list(free_gaps(busy, offers.provider.capacity, procedure))
    at_each = [times.open_starts(duration, begin, end, gaps, None) for times in offers.times]
    if len(at_each) == 1:
        return array("i", at_each[0])
    return array("q", sorted(start * len(at_each) + at for at, starts in enumerate(at_each) for start in starts))


def _week_size(starts: "array[int]") -> int:
    return _WEEK_OVERHEAD + starts.itemsize * len(starts)


def _appointments(span: CalendarRange, read: CalendarRow, known: ProviderCalendar | None) -> Busy:
    numbers = network_integers("i", read.appointments)
    found = Busy(numbers[0::3], numbers[1::3], numbers[2::3])
    if known is None:
        return found
    before = known.appointments.starting(span.begin - MAX_APPOINTMENT_MINUTES, read.since)
    after = known.appointments.starting(max(read.since, read.until), span.end)
    starts, ends, lanes = array("i"), array("i"), array("i")
    for part in (before, found, after):
        starts.extend(part.starts)
        ends.extend(part.ends)
        lanes.extend(part.lanes)
    return Busy(starts, ends, lanes)


def _merge_busy(many: Busy, few: Busy) -> Busy:
    starts, ends, lanes = array("i", many.starts), array("i", many.ends), array("i", many.lanes)
    for start, end, lane in zip(few.starts, few.ends, few.lanes, strict=True):
        at = bisect_left(starts, start)
        starts.insert(at, start)
        ends.insert(at, end)
        lanes.insert(at, lane)
    return Busy(starts, ends, lanes)


def _spans(busy: Busy) -> Iterable[tuple[int, int]]:
    return zip(busy.starts, busy.ends, strict=True)


def _open_as_before(
    known: ProviderCalendar, begin: int, changed: Sequence[tuple[int, int]]
) -> dict[tuple[tuple[int, ...], int, int], OpenWeeks]:
    """The open starts of the weeks from `begin` on in which nothing changed."""
    still_open = {}
    for (location_ids, duration, buffer), weeks in known.open.items():
        touched: set[int] = set()
        for since, until in changed:  # also a visit that starts before it might overlap it
            touched.update(range((since - duration - buffer) // _WEEK_MINUTES, (until - 1) // _WEEK_MINUTES + 1))
        unchanged = weeks.without(touched, begin)
        if unchanged.starts:
            still_open[location_ids, duration, buffer] = unchanged
    return still_open


def range_to_read(kept: ProviderCalendar | None, begin: int, end: int, now: int, horizon: int) -> CalendarRange:
    """The range to read so that begin <= t < end is cached: at least what is cached without the past, and twice as
    much if that is too short, so that searches for ever later dates do not read each time."""
    if kept is None:
        return CalendarRange(begin, end)
    first = min(begin, max(kept.begin, now))
    if covers(kept, begin, end):
        return CalendarRange(first, kept.end)
    twice = min(kept.end + (kept.end - kept.begin), horizon)
    return CalendarRange(first, max(end, kept.end, twice))


def covers(calendar: ProviderCalendar, begin: int, end: int) -> bool:
    return calendar.begin <= begin and end <= calendar.end
