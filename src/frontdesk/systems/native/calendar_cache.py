"""Caches providers' appointments and the open starts between them; bookings never read this cache.

A provider's calendar counts its changes. Every query reads the count again, and an entry read under another count is
never used.
"""

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from frontdesk.cache import BoundedCache
from frontdesk.domain.availability import Busy, Gap, OpenTimes, room
from frontdesk.domain.directory import Procedure
from frontdesk.systems.native.opening_times import Offer

MOST_BYTES = 8_000_000  # over all practices
_OVERHEAD = 1000  # bytes of a calendar without appointments
_NOTHING_KNOWN = -1


class Stretch(NamedTuple):
    """Appointments to read: those that overlap begin <= t < end, unless the count is still the known one."""

    known: int
    begin: int
    end: int


@dataclass(slots=True, eq=False)
class ProviderCalendar:
    """One provider's appointments that overlap begin <= t < end, and the starts that are open between them."""

    changes: int
    begin: int
    end: int
    busy: Busy
    open: dict[tuple[int, int, int], tuple[OpenTimes, "array[int]"]] = field(default_factory=dict)
    """Open starts and the opening times they were computed from, by location, duration and buffer."""

    @property
    def size(self) -> int:
        numbers = 3 * len(self.busy.starts) + sum(len(starts) for _, starts in self.open.values())
        return _OVERHEAD + 4 * numbers


class CalendarCache:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._cached: BoundedCache[tuple[int, int], ProviderCalendar] = BoundedCache(most_bytes)
        self._latest_gaps: tuple[tuple[ProviderCalendar, int, int, int] | None, list[Gap]] = (None, [])

    def known(self, practice_id: int, provider_ids: Sequence[int]) -> dict[int, ProviderCalendar]:
        cached = ((provider_id, self._cached.get((practice_id, provider_id))) for provider_id in provider_ids)
        return {provider_id: calendar for provider_id, calendar in cached if calendar is not None}

    def learn(
        self, practice_id: int, provider_id: int, changes: int, stretch: Stretch, appointments: bytes | None
    ) -> ProviderCalendar:
        """Stores what was read: start, end and lane of each appointment, in network byte order."""
        numbers = array("i", appointments or b"")
        if sys.byteorder == "little":
            numbers.byteswap()
        busy = Busy(numbers[0::3], numbers[1::3], numbers[2::3])
        learnt = ProviderCalendar(changes, stretch.begin, stretch.end, busy)
        self._cached.put((practice_id, provider_id), learnt, weight=learnt.size)
        return learnt

    def all_open_starts(
        self, practice_id: int, procedure: Procedure, offer: Offer, calendar: ProviderCalendar
    ) -> "array[int]":
        """The starts over the whole stretch, past ones included, so that the result can be reused later."""
        provider, location, times = offer
        key = (location.id, procedure.duration_minutes, procedure.buffer_after_minutes)
        known = calendar.open.get(key)
        if known is not None and known[0] is times:
            return known[1]
        end = calendar.end - procedure.duration_minutes - procedure.buffer_after_minutes + 1
        gaps = self._gaps(calendar, provider.capacity, procedure)
        found = array("i", times.fitting(procedure.duration_minutes, calendar.begin, end, gaps, None))
        calendar.open[key] = (times, found)
        if self._cached.get((practice_id, provider.id)) is calendar:
            self._cached.put((practice_id, provider.id), calendar, weight=calendar.size)
        return found

    def _gaps(self, calendar: ProviderCalendar, capacity: int, procedure: Procedure) -> list[Gap]:
        """Keeps the last result, because a provider's locations are searched one after the other."""
        before, found = self._latest_gaps
        wanted = (calendar, capacity, procedure.duration_minutes, procedure.buffer_after_minutes)
        if before != wanted:
            found = list(room(calendar.busy, capacity, procedure))
            self._latest_gaps = (wanted, found)
        return found


def to_read(kept: ProviderCalendar | None, begin: int, end: int, now: int, horizon: int) -> Stretch:
    """The stretch to read so that begin <= t < end is cached: at least what is cached without the past, and twice as
    much if that is too short, so that searches for ever later dates do not read each time."""
    if kept is None:
        return Stretch(_NOTHING_KNOWN, begin, end)
    first = min(begin, max(kept.begin, now))
    if kept.begin <= begin and end <= kept.end:
        return Stretch(kept.changes, first, kept.end)
    twice = min(kept.end + (kept.end - kept.begin), horizon)
    return Stretch(_NOTHING_KNOWN, first, max(end, kept.end, twice))
