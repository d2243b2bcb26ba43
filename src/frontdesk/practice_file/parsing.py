"""Parses practice file text into domain objects."""

from datetime import date
from operator import attrgetter

from frontdesk.domain.directory import (
    Closure,
    Directory,
    Location,
    OpeningHours,
    Practice,
    Procedure,
    Provider,
    TimeOff,
    VisitType,
)
from frontdesk.practice_file.checking import check
from frontdesk.practice_file.contents import PatientRecord, PracticeFile
from frontdesk.practice_file.model import (
    DAYS,
    HoursPart,
    LocationPart,
    PatientPart,
    PracticePart,
    ProviderPart,
    VisitTypePart,
)
from frontdesk.practice_file.reading import read

_id = attrgetter("id")


def parse(text: str, known: Directory | None, today: date | None) -> PracticeFile:
    file = check(*read(text), known, today)
    practice = _practice(file.practice)
    return PracticeFile(
        directory=Directory(
            practice=practice,
            locations={part.id: _location(part, practice, known) for part in sorted(file.locations, key=_id)},
            providers={part.id: _provider(part) for part in sorted(file.providers, key=_id)},
            visit_types={part.id: _visit_type(part) for part in sorted(file.visit_types, key=_id)},
        ),
        patients=tuple(_patient(part) for part in file.patients),
    )


def _practice(part: PracticePart) -> Practice:
    system = part.scheduling_system
    return Practice(
        slug=part.slug,
        name=part.name,
        time_zone=part.time_zone,
        phone=part.phone,
        minimum_notice_minutes=part.minimum_notice_minutes,
        booking_horizon_days=part.booking_horizon_days,
        slot_interval_minutes=part.slot_interval_minutes,
        scheduling_system={"kind": "native"} if system is None else system.model_dump(),
        sandbox=part.sandbox,
    )


def _location(part: LocationPart, practice: Practice, known: Directory | None) -> Location:
    return Location(
        id=part.id,
        name=part.name,
        time_zone=part.time_zone or _stored_zone(part.id, known) or practice.time_zone,
        aliases=tuple(part.aliases),
        phone=part.phone,
        address=None if part.address is None else part.address.model_dump(by_alias=True, exclude_none=True),
        closures=tuple(Closure(row.first, row.last, row.reason) for row in part.closures),
    )


def _stored_zone(location_id: int, known: Directory | None) -> str | None:
    """The stored zone of a location; None if it follows the practice's zone."""
    if known is None or location_id not in known.locations:
        return None
    zone = known.locations[location_id].time_zone
    return None if zone == known.practice.time_zone else zone


def _provider(part: ProviderPart) -> Provider:
    return Provider(
        id=part.id,
        name=part.name,
        aliases=tuple(part.aliases),
        specialty=part.specialty,
        accepts_new_patients=part.accepts_new_patients,
        capacity=part.capacity,
        procedure_ids=None if part.procedures is None else frozenset(part.procedures),
        hours=tuple(_hours(row) for row in part.hours),
        time_off=tuple(TimeOff(row.starts, row.ends, row.reason) for row in part.time_off),
    )


def _hours(part: HoursPart) -> OpeningHours:
    return OpeningHours(
        location_id=part.location,
        days=frozenset(DAYS.index(day) for day in part.days),
        opens=part.opens,
        closes=part.closes,
        effective_from=part.effective_from,
        effective_to=part.effective_to,
    )


def _visit_type(part: VisitTypePart) -> VisitType:
    return VisitType(
        id=part.id,
        name=part.name,
        patient_kind=part.patient_kind,
        aliases=tuple(part.aliases),
        description=part.description,
        procedures=tuple(
            Procedure(
                id=row.id,
                name=row.name,
                duration_minutes=row.duration_minutes,
                aliases=tuple(row.aliases),
                description=row.description,
                buffer_after_minutes=row.buffer_after_minutes,
            )
            for row in part.procedures
        ),
    )


def _patient(part: PatientPart) -> PatientRecord:
    return PatientRecord(
        number=part.number,
        first_name=part.first_name,
        last_name=part.last_name,
        dob=part.dob,
        phone=part.phone,
        email=part.email,
        seen=part.seen,
    )
