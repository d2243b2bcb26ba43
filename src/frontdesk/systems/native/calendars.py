"""What has been read of providers' appointments, remembered for as long as they are certainly still the same.

A provider's calendar counts its changes. The count is read anew with every question, in the same statement as the
appointments: what was read under another count is never used. Owns that comparison, the open starts worked out between
the appointments, and the bound on memory. Refuses the database, and bookings: those look for themselves.
"""

import sys
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from frontdesk.domain.calendar import Busy, Gap, OpenTimes, room
from frontdesk.domain.directory import Procedure
from frontdesk.systems.native.opening import Offer

MOST_NUMBERS = 2_000_000  # of four bytes each, over all practices
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
    """By location, duration and buffer, and under which opening times they are open."""

    @property
    def numbers(self) -> int:
        return 3 * len(self.busy.starts) + sum(len(starts) for _, starts in self.open.values())


class Calendars:
    def __init__(self, most_numbers: int = MOST_NUMBERS) -> None:
        self._most_numbers = most_numbers
        self._numbers = 0
        self._kept: OrderedDict[tuple[int, int], ProviderCalendar] = OrderedDict()  # used longest ago first
        self._latest_gaps: tuple[tuple[ProviderCalendar, int, int, int] | None, list[Gap]] = (None, [])

    def known(self, practice_id: int, provider_ids: Sequence[int]) -> dict[int, ProviderCalendar]:
        kept = ((provider_id, self._kept.get((practice_id, provider_id))) for provider_id in provider_ids)
        return {provider_id: calendar for provider_id, calendar in kept if calendar is not None}

    def learn(
        self, practice_id: int, provider_id: int, changes: int, stretch: Stretch, appointments: bytes | None
    ) -> ProviderCalendar:
        """Takes in what was read: start, end and lane of each appointment, in network byte order."""
        numbers = array("i", appointments or b"")
        if sys.byteorder == "little":
            numbers.byteswap()
        busy = Busy(numbers[0::3], numbers[1::3], numbers[2::3])
        learnt = ProviderCalendar(changes, stretch.begin, stretch.end, busy)
        self._forget(practice_id, provider_id)
        self._kept[practice_id, provider_id] = learnt
        self._make_room_for(learnt.numbers)
        return learnt

    def all_open_starts(
        self, practice_id: int, procedure: Procedure, offer: Offer, calendar: ProviderCalendar
    ) -> "array[int]":
        """Of the calendar's stretch, whatever the time is now: worked out once, for questions about many providers, of
        which most are looked at in vain."""
        provider, location, times = offer
        key = (location.id, procedure.duration_minutes, procedure.buffer_after_minutes)
        known = calendar.open.get(key)
        if known is not None and known[0] is times:
            return known[1]
        end = calendar.end - procedure.duration_minutes - procedure.buffer_after_minutes + 1
        gaps = self._gaps(calendar, provider.capacity, procedure)
        found = array("i", times.fitting(procedure.duration_minutes, calendar.begin, end, gaps, None))
        before = calendar.numbers
        calendar.open[key] = (times, found)
        if self._kept.get((practice_id, provider.id)) is calendar:
            self._kept.move_to_end((practice_id, provider.id))
            self._make_room_for(calendar.numbers - before)
        return found

    def _gaps(self, calendar: ProviderCalendar, capacity: int, procedure: Procedure) -> list[Gap]:
        """A provider's locations are asked about one after the other."""
        before, found = self._latest_gaps
        wanted = (calendar, capacity, procedure.duration_minutes, procedure.buffer_after_minutes)
        if before != wanted:
            found = list(room(calendar.busy, capacity, procedure))
            self._latest_gaps = (wanted, found)
        return found

    def _make_room_for(self, numbers: int) -> None:
        self._numbers += numbers
        while self._numbers > self._most_numbers:
            self._forget(*next(iter(self._kept)))

    def _forget(self, practice_id: int, provider_id: int) -> None:
        forgotten = self._kept.pop((practice_id, provider_id), None)
        if forgotten is not None:
            self._numbers -= forgotten.numbers


def to_read(kept: ProviderCalendar | None, begin: int, end: int, now: int, horizon: int) -> Stretch:
    """What to ask for where begin <= t < end must be known: no less than is known already, but for the past, and twice
    as much where that is not enough. Whoever asks about ever later dates is not read for each time."""
    if kept is None:
        return Stretch(_NOTHING_KNOWN, begin, end)
    first = min(begin, max(kept.begin, now))
    if kept.begin <= begin and end <= kept.end:
        return Stretch(kept.changes, first, kept.end)
    twice = min(kept.end + (kept.end - kept.begin), horizon)
    return Stretch(_NOTHING_KNOWN, first, max(end, kept.end, twice))
