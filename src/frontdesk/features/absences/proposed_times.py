"""Free times for appointments whose provider is away: at another provider the same day, or later at the same one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk.desk.blocks import Block, overlaps
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory, Procedure
from frontdesk.domain.local_time import instant_at, local_date, minute_of, zone
from frontdesk.domain.slot_ids import SlotIds, SlotRef
from frontdesk.operations import booking_refusal
from frontdesk.systems.port import SchedulingSystem, SlotQuery

_MAX_PER_DAY = 1000
_MAX_AHEAD = 100
# How many of each kind a person chooses from.
_SAME_DAY, _SAME_PROVIDER, _ELSEWHERE, _LATER = 4, 3, 2, 2


@dataclass(frozen=True, slots=True)
class ProposedTime:
    slot_id: str
    provider: str
    start: datetime  # local
    location: str | None  # None: the appointment's own


class _Free(NamedTuple):
    start: int  # in minutes since 1970 UTC
    provider_id: int
    location_id: int
    time_zone: str


class ProposedTimes:
    """Proposes times for one appointment after another; no two get the same as their first choice."""

    def __init__(
        self,
        system: SchedulingSystem,
        slot_ids: SlotIds,
        directory: Directory,
        now: datetime,
        away: Block,
    ) -> None:
        self._system = system
        self._slot_ids = slot_ids
        self._directory = directory
        self._now = now
        self._away = away
        self._searched: dict[tuple[SlotQuery, int], list[_Free]] = {}
        self._promised: dict[int, list[tuple[int, int]]] = {}  # first choices of other appointments, by provider

    async def of(self, appointment: Appointment) -> list[ProposedTime]:
        """The best one first; empty if nothing is free. A search shows what is open to anybody, so whether this patient
        may have the best one is checked; a server of the practice's own is only asked when the choice is executed."""
        visit_type = self._directory.visit_types[appointment.visit_type_id]
        procedure = visit_type.procedure(appointment.procedure_id)
        if procedure is None:
            return []
        length = timedelta(minutes=procedure.duration_minutes + procedure.buffer_after_minutes)
        found = await self._ranked(appointment, length)
        while found and not await self._may_have(appointment, self._slot(appointment, procedure, found[0])):
            del found[0]
        if found:
            best = found[0]
            self._promised.setdefault(best.provider_id, []).append((best.start, best.start + _minutes(length)))
        return [self._proposed(appointment, procedure, each) for each in found]

    async def _ranked(self, appointment: Appointment, length: timedelta) -> list[_Free]:
        home = self._directory.locations[appointment.location_id]
        wanted = minute_of(appointment.starts_at)
        day = local_date(wanted, home.time_zone)
        visit = (appointment.visit_type_id, appointment.procedure_id)
        that_day = await self._free(SlotQuery(*visit, None, None, day, day), _MAX_PER_DAY, length)
        nearest = sorted(that_day, key=lambda each: (abs(each.start - wanted), each.start < wanted, each))
        here = [each for each in nearest if each.location_id == home.id][:_SAME_DAY]
        elsewhere = [each for each in nearest if each.location_id != home.id][:_ELSEWHERE]
        back = self._away.ends.date() if isinstance(self._away.ends, datetime) else self._away.ends
        own_later = SlotQuery(*visit, self._away.provider_id, None, max(day, back), None)
        own = (await self._free(own_later, _MAX_AHEAD, length))[:_SAME_PROVIDER]
        later: list[_Free] = []
        if len(here) + len(own) < _LATER:
            ahead = SlotQuery(*visit, None, None, day + timedelta(days=1), None)
            later = [each for each in await self._free(ahead, _MAX_AHEAD, length) if each not in own][:_LATER]
        return [*here, *own, *elsewhere, *later]

    async def _free(self, query: SlotQuery, limit: int, length: timedelta) -> list[_Free]:
        """Open times that are nobody's first choice yet, outside the absence, by start."""
        known = self._searched.get((query, limit))
        if known is None:
            found = await self._system.calendar.find_slots(query, self._now, limit=limit, after=None)
            known = sorted(
                _Free(start, slots.provider_id, slots.location_id, slots.time_zone)
                for slots in found.by_provider
                for start in slots.starts
            )
            self._searched[query, limit] = known
        return [each for each in known if not self._is_promised(each, length) and not self._is_away(each, length)]

    def _is_promised(self, free: _Free, length: timedelta) -> bool:
        """Also where the provider sees several patients at a time: a search does not tell how many more fit in."""
        promised, end = self._promised.get(free.provider_id, ()), free.start + _minutes(length)
        return any(free.start < last and first < end for first, last in promised)

    def _is_away(self, free: _Free, length: timedelta) -> bool:
        """Where time cannot be blocked, a search still offers the provider's own."""
        start = instant_at(free.start)
        return free.provider_id == self._away.provider_id and overlaps(
            self._away, start, start + length, free.time_zone
        )

    async def _may_have(self, appointment: Appointment, slot: SlotRef) -> bool:
        if self._system.remote:
            return True
        checked = await self._system.bookings.check_booking(slot, appointment.patient_id, self._now, appointment)
        return checked is not None and booking_refusal(slot, checked) is None

    def _slot(self, appointment: Appointment, procedure: Procedure, free: _Free) -> SlotRef:
        visit = (appointment.visit_type_id, procedure.id)
        return SlotRef(free.provider_id, free.location_id, *visit, free.start, procedure.duration_minutes)

    def _proposed(self, appointment: Appointment, procedure: Procedure, free: _Free) -> ProposedTime:
        return ProposedTime(
            slot_id=self._slot_ids.encode(self._slot(appointment, procedure, free)),
            provider=self._directory.providers[free.provider_id].name,
            start=instant_at(free.start).astimezone(zone(free.time_zone)),
            location=None
            if free.location_id == appointment.location_id
            else self._directory.locations[free.location_id].name,
        )


def _minutes(length: timedelta) -> int:
    return length // timedelta(minutes=1)
