"""Future appointments that a change of the directory strands: without what they were booked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Directory
from frontdesk.domain.local_time import minute_of, zone

Loss = Literal["scheduling system", "provider", "location", "procedure", "hours"]


@dataclass(frozen=True, slots=True)
class Stranded:
    appointment_id: str
    starts_at: datetime
    time_zone: str
    loses: tuple[Loss, ...]

    @property
    def start(self) -> datetime:
        """The start in local time of the location."""
        return self.starts_at.astimezone(zone(self.time_zone))


def find_stranded(before: Directory, after: Directory, appointments: Iterable[Appointment]) -> list[Stranded]:
    """The appointments that lose something. It cannot lose what is missing already."""
    known, coming = _Offers(before, before), _Offers(after, before)
    found = []
    for each in appointments:
        missing = known.missing_of(each)
        loses = tuple(loss for loss in coming.missing_of(each) if loss not in missing)
        # Without a provider or a location there are no hours either.
        if len(loses) > 1:
            loses = tuple(loss for loss in loses if loss != "hours")
        if loses:
            found.append(Stranded(each.id, each.starts_at, before.locations[each.location_id].time_zone, loses))
    return found


def may_strand(before: Directory, after: Directory) -> bool:
    """Whether an appointment can lose anything but hours."""
    known, coming = _Offers(before, before), _Offers(after, before)
    return any(
        set(coming.missing_records(*ids)) - set(known.missing_records(*ids))
        for ids in (
            (provider_id, location_id, visit_type.id, procedure.id)
            for provider_id in before.providers
            for location_id in before.locations
            for visit_type in before.visit_types.values()
            for procedure in visit_type.procedures
        )
    )


class _Offers:
    """What one directory offers; opening times are computed once per provider and location."""

    def __init__(self, directory: Directory, booked_in: Directory) -> None:
        self._directory = directory
        self._booked_in = booked_in.practice.scheduling_system
        self._open: dict[tuple[int, int], OpenTimes] = {}

    def missing_of(self, appointment: Appointment) -> list[Loss]:
        missing = self.missing_records(
            appointment.provider_id, appointment.location_id, appointment.visit_type_id, appointment.procedure_id
        )
        return missing if self._is_open(appointment) else [*missing, "hours"]

    def missing_records(self, provider_id: int, location_id: int, visit_type_id: int, procedure_id: int) -> list[Loss]:
        practice = self._directory.practice
        provider, location = self._directory.providers[provider_id], self._directory.locations[location_id]
        visit_type = self._directory.visit_types[visit_type_id]
        procedure = visit_type.procedure(procedure_id)
        offered = visit_type.active and procedure is not None and procedure.active
        # A FHIR server keeps the hours; those of the file only say where a provider works.
        works_there = practice.keeps_own_calendar or location_id in provider.location_ids
        stays = _calendar(practice.scheduling_system) == _calendar(self._booked_in)
        is_known = _service(practice.scheduling_system, procedure_id) == _service(self._booked_in, procedure_id)
        present: dict[Loss, bool] = {
            "scheduling system": stays,
            "provider": provider.active,
            "location": location.active and works_there,
            "procedure": offered and (is_known or not stays) and provider.performs(procedure_id),
        }
        return [loss for loss, is_there in present.items() if not is_there]

    def _is_open(self, appointment: Appointment) -> bool:
        if not self._directory.practice.keeps_own_calendar:
            return True
        key = (appointment.provider_id, appointment.location_id)
        if key not in self._open:
            provider, location = self._directory.providers[key[0]], self._directory.locations[key[1]]
            self._open[key] = OpenTimes(self._directory.practice, provider, location)
        starts, ends = (minute_of(moment) for moment in (appointment.starts_at, appointment.ends_at))
        return self._open[key].covers(starts, ends)


def _calendar(system: Mapping[str, Any]) -> tuple[str, str]:
    return system["kind"], system.get("baseUrl", "").rstrip("/")


def _service(system: Mapping[str, Any], procedure_id: int) -> object:
    """How a FHIR server's appointments name the procedure."""
    given = (system.get("procedures") or {}).get(str(procedure_id))
    return (given["system"], given["code"]) if isinstance(given, Mapping) else given
