"""The directory of a practice: locations, providers, visit types and procedures, and the search by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, get_args

from frontdesk.domain.consent import Demands
from frontdesk.domain.names import word_parts
from frontdesk.domain.patients import PhoneMatch

PatientKind = Literal["new", "existing", "any"]
TimeFormat = Literal["24h", "12h"]
DateFormat = Literal["dayFirst", "monthFirst", "yearFirst"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)

_TITLES = frozenset({"dr", "doctor"})


@dataclass(frozen=True, slots=True)
class Closure:
    """Days on which a location is closed, in its zone; both ends are inclusive."""

    first: date
    last: date
    reason: str | None = None
    by: str | None = None  # the staff member who blocked the time; None: the practice file


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """Weekly hours of a provider at a location, as local wall-clock minutes of the day: opens <= t < closes."""

    location_id: int
    days: frozenset[int]  # Monday is 0, as in date.weekday()
    opens: int
    closes: int  # up to 1440
    effective_from: date | None = None
    effective_to: date | None = None  # included


@dataclass(frozen=True, slots=True)
class TimeOff:
    """A provider's absence in naive local time, interpreted in the zone of each location."""

    starts: datetime
    ends: datetime
    reason: str | None = None
    by: str | None = None  # the staff member who blocked the time; None: the practice file


@dataclass(frozen=True, slots=True)
class Location:
    id: int
    name: str
    time_zone: str
    aliases: tuple[str, ...] = ()
    phone: str | None = None
    address: Mapping[str, str] | None = None
    closures: tuple[Closure, ...] = ()
    active: bool = True


@dataclass(frozen=True, slots=True)
class Provider:
    id: int
    name: str
    aliases: tuple[str, ...] = ()
    specialty: str | None = None
    accepts_new_patients: bool = True
    capacity: int = 1
    procedure_ids: frozenset[int] | None = None  # None: all
    hours: tuple[OpeningHours, ...] = ()
    time_off: tuple[TimeOff, ...] = ()
    active: bool = True

    @property
    def location_ids(self) -> tuple[int, ...]:
        return tuple(sorted({h.location_id for h in self.hours}))

    def performs(self, procedure_id: int) -> bool:
        return self.procedure_ids is None or procedure_id in self.procedure_ids


@dataclass(frozen=True, slots=True)
class Procedure:
    id: int
    name: str
    duration_minutes: int
    aliases: tuple[str, ...] = ()
    description: str | None = None
    buffer_after_minutes: int = 0
    active: bool = True


@dataclass(frozen=True, slots=True)
class VisitType:
    id: int
    name: str
    patient_kind: PatientKind
    aliases: tuple[str, ...] = ()
    description: str | None = None
    procedures: tuple[Procedure, ...] = ()
    active: bool = True

    def procedure(self, procedure_id: int) -> Procedure | None:
        return next((p for p in self.procedures if p.id == procedure_id), None)


@dataclass(frozen=True, slots=True)
class Practice:
    slug: str
    name: str
    time_zone: str
    phone: str | None = None
    minimum_notice_minutes: int = 0
    booking_horizon_days: int = 90
    slot_interval_minutes: int = 15
    scheduling_system: Mapping[str, Any] = field(default_factory=lambda: {"kind": "native"})
    sandbox: bool = False
    patients_per_hour: int = 60  # that an agent may read; 0: unlimited
    patients_per_day: int = 400
    match_misses: int = 5  # of a client that asks for one person, until matching is locked; 0: unlimited
    known_patients_only: bool = False
    writes_per_hour: int = 200  # of each kind that an agent may make; 0: unlimited
    upcoming_per_patient: int = 20  # that an agent may have booked for one patient; 0: unlimited
    phone_match: PhoneMatch = "anywhere"  # of clients that ask for a patient
    consent: Demands = field(default_factory=dict)
    assistants: bool = True  # whether staff may connect any
    time_format: TimeFormat = "24h"  # of the console, as is the next
    date_format: DateFormat = "dayFirst"
    features: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # what it has set of them, by name

    @property
    def keeps_own_calendar(self) -> bool:
        """Whether frontdesk keeps the calendar and the patients, and not a FHIR server."""
        return bool(self.scheduling_system["kind"] == "native")


@dataclass(frozen=True, slots=True)
class Directory:
    """The directory of one practice, ordered by id. Pruned records stay, inactive: old records refer to them."""

    practice: Practice
    locations: Mapping[int, Location]
    providers: Mapping[int, Provider]
    visit_types: Mapping[int, VisitType]
    imported_at: datetime | None = field(default=None, compare=False)  # None: not from the database


def matches_name(wanted: str, name: str, aliases: Iterable[str]) -> bool:
    """Whether every wanted word is the beginning of a word of the name or of one alias, ignoring titles.

    Punctuation inside a word counts both as nothing and as a space. An empty filter matches everything.
    """
    asked = _untitled(wanted)
    return not asked or any(
        all(_begin_words(parts, candidate) for parts in asked)
        for candidate in ([*_beginnings(_untitled(each))] for each in (name, *aliases))
    )


def _untitled(text: str) -> list[list[str]]:
    return [kept for parts in word_parts(text) if (kept := [part for part in parts if part not in _TITLES])]


def _beginnings(words: list[list[str]]) -> Iterable[str]:
    """The rest of each word from each of its parts on: follow-up gives followup and up."""
    return ("".join(parts[at:]) for parts in words for at in range(len(parts)))


def _begin_words(parts: list[str], candidate: list[str]) -> bool:
    """Whether the parts, some of them joined, begin words of the candidate: o'brien begins Obrien and O Brien."""
    reached = {0}  # how many of the parts can be matched
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1) if start in reached else ():
            joined = "".join(parts[start:end])
            if not any(word.startswith(joined) for word in candidate):
                break
            reached.add(end)
    return len(parts) in reached
