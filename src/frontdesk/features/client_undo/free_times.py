"""Whether the times that appointments get back are free."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from frontdesk.domain.appointments import RECORDABLE, Appointment
from frontdesk.domain.local_time import local_date, minute_of
from frontdesk.features.client_undo.plan import TAKEN, UndoEntry
from frontdesk.systems.port import AppointmentFilter, Capability, SchedulingSystem, appointment_pages

_DAY = timedelta(days=1)


async def without_taken_times(system: SchedulingSystem, entries: Sequence[UndoEntry]) -> list[UndoEntry]:
    """The same, but those whose time is taken are not undone. What the undo itself frees counts as free. The change
    checks the time again."""
    if Capability.LIST_APPOINTMENTS not in system.capabilities:
        return list(entries)
    directory = await system.directory()
    freed = {each.appointment_id for each in entries if each.frees_its_time}
    listed: dict[tuple[int, date], list[Appointment]] = {}
    checked = []
    for entry in entries:
        place = entry.place
        if place is None or not entry.is_pending or entry.changes[-1] not in ("restore", "move_back"):
            checked.append(entry)
            continue
        day = local_date(minute_of(place.starts_at), directory.locations[place.location_id].time_zone)
        if (place.provider_id, day) not in listed:
            # The provider may have an appointment elsewhere, where it is another day.
            wanted = AppointmentFilter(provider_id=place.provider_id, first=day - _DAY, last=day + _DAY)
            found = [each async for page in appointment_pages(system, wanted) for each in page]
            listed[place.provider_id, day] = [each for each in found if each.status in RECORDABLE["arrived"]]
        others = [
            each
            for each in listed[place.provider_id, day]
            if each.id not in freed and each.starts_at < place.ends_at and place.starts_at < each.ends_at
        ]
        is_taken = len(others) >= directory.providers[place.provider_id].capacity
        checked.append(replace(entry, failure=TAKEN) if is_taken else entry)
    return checked
