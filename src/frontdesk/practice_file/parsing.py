"""Parses practice file text into domain objects."""

from datetime import date
from operator import attrgetter
from typing import Any

from frontdesk.domain.directory import (
    DAYS,
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
from frontdesk.practice_file.model import LocationPart, PracticePart, ProviderPart, VisitTypePart
from frontdesk.practice_file.part import Part
from frontdesk.practice_file.reading import read

_id = attrgetter("id")


def parse(text: str, known: Directory | None, today: date | None) -> PracticeFile:
    file = check(text, *read(text), known, today)
    practice = _practice(file.practice)
    return PracticeFile(
        directory=Directory(
            practice=practice,
            locations={part.id: _location(part, practice, known) for part in sorted(file.locations, key=_id)},
            providers={part.id: _provider(part) for part in sorted(file.providers, key=_id)},
            visit_types={part.id: _visit_type(part) for part in sorted(file.visit_types, key=_id)},
        ),
        patients=tuple(PatientRecord(**_values(part)) for part in file.patients),
    )


def _values(part: Part, **converted: object) -> dict[str, Any]:  # arguments of the record
    """The values of a part, which has the field names of its record; lists become tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in part} | converted


def _practice(part: PracticePart) -> Practice:
    system = {"kind": "native"} if part.scheduling_system is None else part.scheduling_system.model_dump()
    consent = {} if part.consent is None else part.consent.model_dump(exclude_none=True)
    features = {} if part.features is None else part.features.model_dump(mode="json", exclude_defaults=True)
    return Practice(**_values(part, scheduling_system=system, consent=consent, features=features))


def _location(part: LocationPart, practice: Practice, known: Directory | None) -> Location:
    return Location(
        **_values(
            part,
            time_zone=part.time_zone or _stored_zone(part.id, known) or practice.time_zone,
            address=None if part.address is None else part.address.model_dump(by_alias=True, exclude_none=True),
            closures=tuple(Closure(**_values(row)) for row in part.closures),
        )
    )


def _stored_zone(location_id: int, known: Directory | None) -> str | None:
    """The stored zone of a location; None if it follows the practice's zone."""
    if known is None or location_id not in known.locations:
        return None
    zone = known.locations[location_id].time_zone
    return None if zone == known.practice.time_zone else zone


def _provider(part: ProviderPart) -> Provider:
    hours = (_values(row, days=frozenset(DAYS.index(day) for day in row.days)) for row in part.hours)
    return Provider(
        **_values(
            part,
            procedure_ids=None if part.procedure_ids is None else frozenset(part.procedure_ids),
            hours=tuple(OpeningHours(**row) for row in hours),
            time_off=tuple(TimeOff(**_values(row)) for row in part.time_off),
        )
    )


def _visit_type(part: VisitTypePart) -> VisitType:
    return VisitType(**_values(part, procedures=tuple(Procedure(**_values(row)) for row in part.procedures)))
