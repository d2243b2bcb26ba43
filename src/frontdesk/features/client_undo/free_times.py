"""Whether the times that appointments get back are free."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from frontdesk.desk.appointment_history import Place
from frontdesk.domain.appointments import RECORDABLE, Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import PATIENT_OVERLAP
from frontdesk.domain.local_time import local_date, minute_of
from frontdesk.features.client_undo.plan import TAKEN, UndoEntry
from frontdesk.systems.port import AppointmentFilter, Capability, SchedulingSystem, appointment_pages

_DAY = timedelta(days=1)


async def without_taken_times(system: SchedulingSystem, entries: Sequence[UndoEntry]) -> list[UndoEntry]:
    """The same, but those whose time is taken are not undone. What the undo itself frees counts as free. The change
    checks the time again."""
    if Capability.LIST_APPOINTMENTS not in system.capabilities:
        return list(entries)
    freed = {each.appointment_id for each in entries if each.leaves_its_time}
    times = FreeTimes(system, await system.directory(), freed)
    return [replace(each, failure=each.failure or await times.obstacle(each)) for each in entries]


class FreeTimes:
    """The appointments that stay, read once per day."""

    def __init__(self, system: SchedulingSystem, directory: Directory, freed: set[str]) -> None:
        self._system = system
        self._directory = directory
        self._freed = freed
        self._read: dict[AppointmentFilter, list[Appointment]] = {}

    async def obstacle(self, entry: UndoEntry) -> str | None:
        """Why an appointment cannot get its time back; None if it can, or does not need to."""
        place = entry.place
        if place is None or not {"restore", "move_back"} & {*entry.changes}:
            return None
        time_zone = self._directory.locations[place.location_id].time_zone
        day = local_date(minute_of(place.starts_at), time_zone)
        # An appointment elsewhere may be on another day there.
        days = AppointmentFilter(first=day - _DAY, last=day + _DAY)
        at_the_time = await self._overlapping(replace(days, provider_id=place.provider_id), place)
        if len(at_the_time) >= self._directory.providers[place.provider_id].capacity:
            return TAKEN
        of_the_patient = await self._overlapping(replace(days, patient_id=entry.patient_id), place)
        return PATIENT_OVERLAP if of_the_patient else None

    async def _overlapping(self, wanted: AppointmentFilter, place: Place) -> list[Appointment]:
        if wanted not in self._read:
            found = [each async for page in appointment_pages(self._system, wanted) for each in page]
            self._read[wanted] = [
                each for each in found if each.status in RECORDABLE["arrived"] and each.id not in self._freed
            ]
        return [
            each for each in self._read[wanted] if each.starts_at < place.ends_at and place.starts_at < each.ends_at
        ]
