"""Future appointments that a change of the directory strands: without what they were booked for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Directory

Loss = Literal["scheduling system", "provider", "location", "procedure", "hours"]


@dataclass(frozen=True, slots=True)
class Stranded:
    appointment_id: str
    starts_at: datetime
    time_zone: str
    loses: tuple[Loss, ...]


def stranded(before: Directory, after: Directory, appointments: Iterable[Appointment]) -> list[Stranded]:
    """The appointments that lose something. What an appointment lacks already, it cannot lose."""
    known, coming = _Offers(before), _Offers(after)
    found = []
    for each in appointments:
        lacks = known.lacking(each)
        loses = tuple(loss for loss in coming.lacking(each) if loss not in lacks)
        # Without a provider or a location there are no hours either.
        if len(loses) > 1:
            loses = tuple(loss for loss in loses if loss != "hours")
        if loses:
            found.append(Stranded(each.id, each.starts_at, before.locations[each.location_id].time_zone, loses))
    return found


class _Offers:
    """What one directory offers; opening times are computed once per provider and location."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._open: dict[tuple[int, int], OpenTimes] = {}

    def lacking(self, appointment: Appointment) -> list[Loss]:
        provider = self._directory.providers[appointment.provider_id]
        location = self._directory.locations[appointment.location_id]
        visit_type = self._directory.visit_types[appointment.visit_type_id]
        procedure = visit_type.procedure(appointment.procedure_id)
        offered = visit_type.active and procedure is not None and procedure.active
        present: dict[Loss, bool] = {
            "scheduling system": self._directory.practice.keeps_own_calendar,
            "provider": provider.active,
            "location": location.active,
            "procedure": offered and provider.performs(appointment.procedure_id),
            "hours": self._is_open(appointment),
        }
        return [loss for loss, is_there in present.items() if not is_there]

    def _is_open(self, appointment: Appointment) -> bool:
        key = (appointment.provider_id, appointment.location_id)
        if key not in self._open:
            provider, location = self._directory.providers[key[0]], self._directory.locations[key[1]]
            self._open[key] = OpenTimes(self._directory.practice, provider, location)
        starts, ends = (int(moment.timestamp()) // 60 for moment in (appointment.starts_at, appointment.ends_at))
        return self._open[key].covers(starts, ends)
