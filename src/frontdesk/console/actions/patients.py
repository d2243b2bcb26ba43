"""Patients in the console: searched by fragments, and shown with their appointments."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from frontdesk.access.clients.caller import Caller
from frontdesk.console.actions.context import ActionContext
from frontdesk.console.names import names_of
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.ids import PATIENT_ID
from frontdesk.domain.local_time import zone
from frontdesk.domain.names import digits, words
from frontdesk.domain.patients import Patient
from frontdesk.operations import supported
from frontdesk.systems.port import AppointmentFilter, AppointmentPage, Capability, PatientSearch, SchedulingSystem

SHOWN = 25
LONGEST_TEXT = 200
_MOST_WORDS = 6
_FEWEST_DIGITS, _TAIL_DIGITS = 3, 7
_MOST_APPOINTMENTS = 200
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b", re.ASCII)
_US_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b", re.ASCII)
_PHONE = re.compile(r"[+(]?\d[\d\s().+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PatientHits:
    items: Sequence[Patient]
    more: bool


@dataclass(frozen=True, slots=True)
class PatientAppointment:
    appointment: Appointment
    start: datetime
    end: datetime
    provider: str
    location: str
    visit_type: str
    procedure: str


@dataclass(frozen=True, slots=True)
class PatientView:
    patient: Patient
    upcoming: Sequence[PatientAppointment]
    past: Sequence[PatientAppointment]  # newest first
    whole: bool
    supports: frozenset[str]


@dataclass(frozen=True, slots=True)
class Patients:
    systems: Callable[[Caller], Awaitable[SchedulingSystem]]

    async def searchable(self, context: ActionContext) -> bool:
        return Capability.SEARCH_PATIENTS in (await self.systems(context.staff.caller())).capabilities

    async def supports(self, context: ActionContext) -> frozenset[str]:
        return supported((await self.systems(context.staff.caller())).capabilities)

    async def search(self, context: ActionContext, text: str) -> PatientHits:
        system = await self.systems(context.staff.caller())
        if Capability.SEARCH_PATIENTS not in system.capabilities:
            raise Problem(
                "capability_not_supported", "The practice's own system finds patients by all four fields only."
            )
        if len(text) > LONGEST_TEXT:
            raise invalid([FieldError("search", "maxLength", f"search must be at most {LONGEST_TEXT} characters")])
        search = parse_search(text)
        if search == PatientSearch():
            message = "search needs the beginning of a name, the last digits of a phone number, or a date of birth"
            raise invalid([FieldError("search", "notBlank", message)])
        found = await system.search_patients(search, most=SHOWN + 1)
        shown = found[:SHOWN]
        await context.record("console.search_patients", *(each.id for each in shown), read=True)
        return PatientHits(shown, len(found) > SHOWN)

    async def read(self, context: ActionContext, patient_id: str) -> PatientView:
        system = await self.systems(context.staff.caller())
        patient = await system.get_patient(patient_id) if PATIENT_ID.match(patient_id) else None
        if patient is None:
            raise Problem("not_found", "There is no such patient.")
        found = AppointmentPage([], None)
        if Capability.LIST_APPOINTMENTS in system.capabilities:
            wanted = AppointmentFilter(patient_id=patient.id)
            found = await system.list_appointments(wanted, limit=_MOST_APPOINTMENTS, after=None)
        directory = await system.directory()
        await context.record("console.patient", patient.id, read=True)
        shown = [_shown(appointment, directory) for appointment in found.appointments]
        return PatientView(
            patient,
            [each for each in shown if each.appointment.ends_at > context.now],
            [each for each in reversed(shown) if each.appointment.ends_at <= context.now],
            found.last is None,
            supported(system.capabilities),
        )


def parse_search(text: str) -> PatientSearch:
    """Reads a date as the date of birth, digits as the end of the phone number, the rest as beginnings of names."""
    dob = None
    for pattern, order in ((_ISO_DATE, (1, 2, 3)), (_US_DATE, (3, 1, 2))):
        if dob is None and (found := pattern.search(text)) is not None:
            dob = _date(*(int(found.group(place)) for place in order))
            text = text[: found.start()] + " " + text[found.end() :]
    tail = None
    if (found := _PHONE.search(text)) is not None and len(digits(found.group())) >= _FEWEST_DIGITS:
        tail = digits(found.group())[-_TAIL_DIGITS:][::-1]
        text = text[: found.start()] + " " + text[found.end() :]
    return PatientSearch(_names(text), tail, dob)


def _names(text: str) -> tuple[tuple[str, str], ...]:
    """Every way to split the words into first and last name."""
    said = words(text)[:_MOST_WORDS]
    if not said:
        return ()
    readings = [("", "".join(said)), ("".join(said), "")]
    for cut in range(1, len(said)):
        one, other = "".join(said[:cut]), "".join(said[cut:])
        readings += [(one, other), (other, one)]
    return tuple(readings)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _shown(appointment: Appointment, directory: Directory) -> PatientAppointment:
    here = zone(directory.locations[appointment.location_id].time_zone)
    start, end = appointment.starts_at.astimezone(here), appointment.ends_at.astimezone(here)
    return PatientAppointment(appointment, start, end, **names_of(appointment, directory))
