"""Patients in the console: searched by fragments, and shown with their appointments."""

import contextlib
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import names_of
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import DateFormat, Directory
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.ids import PATIENT_ID
from frontdesk.domain.local_time import zone
from frontdesk.domain.names import digits, words
from frontdesk.domain.patients import Patient
from frontdesk.engine.execute import Systems
from frontdesk.operations import supported
from frontdesk.store.database import Database
from frontdesk.systems.port import AppointmentFilter, Capability, PatientSearch, SchedulingSystem, appointment_pages
from frontdesk.texts import Text

MAX_SHOWN = 25
MAX_SEARCH_LENGTH = 200
_MAX_WORDS = 6
_FEWEST_DIGITS, _TAIL_DIGITS = 3, 7
_MAX_PAST = 200
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_OTHER_MONTHS = {
    "mär": "mar",
    "mai": "may",
    "okt": "oct",
    "dez": "dec",
    "ene": "jan",
    "abr": "apr",
    "ago": "aug",
    "dic": "dec",
}
_TOO_LONG = Text("%(field)s must be at most %(maximum)s characters", maximum=MAX_SEARCH_LENGTH)
_NEEDED = Text("%(field)s needs part of a name, the last digits of a phone number, a date of birth, or a number")
_MONTH = rf"(?:de\s+)?(?P<name>(?:{'|'.join((*_MONTHS, *_OTHER_MONTHS))})[a-z]*)\.?"
_DATES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b",
        r"\b(?P<one>\d{1,2})(?:/|[.-]\s?)(?P<other>\d{1,2})(?:/|[.-]\s?)(?P<year>\d{4})\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+{_MONTH},?\s+(?:de\s+)?(?P<year>\d{{4}})\b",
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})\b",
    )
)
_NUMBER = re.compile(r"#?\s*(\d{1,9})\s*\Z", re.ASCII)
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
    past: Sequence[PatientAppointment]  # and cancelled ones, newest first
    is_complete: bool  # False: there are older ones
    supports: frozenset[str]


@dataclass(frozen=True, slots=True)
class Patients:
    database: Database
    systems: Systems

    async def searchable(self, context: ActionContext) -> bool:
        return (await self.systems(context.staff.caller())).searching is not None

    async def supports(self, context: ActionContext) -> frozenset[str]:
        return supported((await self.systems(context.staff.caller())).capabilities)

    async def search(self, context: ActionContext, text: str) -> PatientHits:
        system = await self.systems(context.staff.caller())
        searching = system.searching
        if searching is None:
            raise Problem(
                "capability_not_supported", "The practice's own system finds patients by all four fields only."
            )
        if len(text) > MAX_SEARCH_LENGTH:
            raise invalid([FieldError("search", "maxLength", _TOO_LONG)])
        date_format = (await system.directory()).practice.date_format
        searches, number = parse_search(text, date_format), _NUMBER.match(text.strip())
        if searches == [PatientSearch()] and number is None:
            raise invalid([FieldError("search", "notBlank", _NEEDED)])
        numbered = None if number is None else await system.patients.get_patient(int(number[1]))
        found = [] if numbered is None else [numbered]
        for search in searches:
            if search != PatientSearch():
                found += [
                    each for each in await searching.search_patients(search, limit=MAX_SHOWN + 1) if each not in found
                ]
        shown = found[:MAX_SHOWN]
        await context.record("console.search_patients", *(each.id for each in shown), read=True)
        return PatientHits(shown, len(found) > MAX_SHOWN)

    async def read(self, context: ActionContext, patient_id: str) -> PatientView:
        system = await self.systems(context.staff.caller())
        patient = await system.patients.get_patient(patient_id) if PATIENT_ID.match(patient_id) else None
        if patient is None:
            raise Problem("not_found", "There is no such patient.")
        directory = await system.directory()
        await context.record("console.patient", patient.id, read=True)
        upcoming: list[PatientAppointment] = []
        past: deque[PatientAppointment] = deque(maxlen=_MAX_PAST)
        is_complete = True
        async for appointment in _appointments(system, patient.id):
            if appointment.ends_at > context.now and appointment.status != "cancelled":
                upcoming.append(_shown(appointment, directory))
            else:
                is_complete = is_complete and len(past) < _MAX_PAST
                past.append(_shown(appointment, directory))
        return PatientView(patient, upcoming, [*reversed(past)], is_complete, supported(system.capabilities))


async def _appointments(system: SchedulingSystem, patient_id: str) -> AsyncIterator[Appointment]:
    """All appointments of a patient, earliest first."""
    if Capability.LIST_APPOINTMENTS not in system.capabilities:
        return
    async for page in appointment_pages(system, AppointmentFilter(patient_id=patient_id)):
        for appointment in page:
            yield appointment


def parse_search(text: str, date_format: DateFormat) -> list[PatientSearch]:
    """Reads a date as the date of birth, digits as the end of the phone number, the rest as beginnings of names. A date
    that can be read in two orders is searched in both, first in that of the practice."""
    dobs: list[date] = []
    for pattern in _DATES:
        if not dobs and (found := pattern.search(text)) is not None:
            dobs = _dates(date_format, **found.groupdict())
            text = text[: found.start()] + " " + text[found.end() :]
    tail = None
    if (found := _PHONE.search(text)) is not None and len(digits(found.group())) >= _FEWEST_DIGITS:
        tail = digits(found.group())[-_TAIL_DIGITS:][::-1]
        text = text[: found.start()] + " " + text[found.end() :]
    names = _names(text)
    return [PatientSearch(names, tail, dob) for dob in dobs] or [PatientSearch(names, tail)]


def _names(text: str) -> tuple[tuple[str, str], ...]:
    """Every way to split the words into first and last name."""
    given = words(text)[:_MAX_WORDS]
    if not given:
        return ()
    readings = [("", "".join(given)), ("".join(given), "")]
    for cut in range(1, len(given)):
        one, other = "".join(given[:cut]), "".join(given[cut:])
        readings += [(one, other), (other, one)]
    return tuple(readings)


def _dates(
    date_format: DateFormat, year: str, day: str = "", month: str = "", name: str = "", one: str = "", other: str = ""
) -> list[date]:
    """The dates that this can mean: one, both orders of day and month, or none."""
    if one:
        orders = [(other, one), (one, other)] if date_format == "dayFirst" else [(one, other), (other, one)]
    else:
        short = name[:3].lower()
        orders = [(str(_MONTHS.index(_OTHER_MONTHS.get(short, short)) + 1) if name else month, day)]
    found = []
    for number, of_month in orders:
        with contextlib.suppress(ValueError):
            found.append(date(int(year), int(number), int(of_month)))
    return list(dict.fromkeys(found))


def _shown(appointment: Appointment, directory: Directory) -> PatientAppointment:
    time_zone = zone(directory.locations[appointment.location_id].time_zone)
    start, end = appointment.starts_at.astimezone(time_zone), appointment.ends_at.astimezone(time_zone)
    return PatientAppointment(appointment, start, end, **names_of(appointment, directory))
