"""The view of a calendar page: days, provider columns, and their places on the time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from frontdesk.console.calendar.axis import GridPosition, HourMark
from frontdesk.desk.names import Actor
from frontdesk.domain.directory import Location
from frontdesk.domain.patients import Contact

ShadeKind = Literal["closed", "off", "closure", "missing"]


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An appointment or a held time in its column. `patient` is None for a held time, and if the scheduling system no
    longer has the patient."""

    id: str
    status: str
    start: datetime
    end: datetime
    place: GridPosition
    lane: int
    width: int  # in lanes
    patient_id: str
    patient: Contact | None
    hue: int  # of the visit type, from 1
    provider: str
    visit_type: str
    procedure: str
    location: str
    booked_by: Actor | None
    moved: bool
    held_until: datetime | None = None
    against_rules: str | None = None  # which rules staff set aside; None: booked by the rules


@dataclass(frozen=True, slots=True)
class Shade:
    kind: ShadeKind
    place: GridPosition
    label: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Column:
    provider_id: int
    provider: str
    capacity: int  # appointments at a time
    lanes: int
    open: Sequence[tuple[datetime, datetime]]
    shades: Sequence[Shade]
    entries: Sequence[CalendarEntry]
    tag: str = ""  # changes with what is shown


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    columns: Sequence[Column]
    closures: Sequence[str]  # reasons why the location is closed
    begins: int | None  # when the first row begins, minutes since 1970; None if a clock change is among the rows
    clocks: Sequence[str] | None  # the time of each row where a clock change is among them
    now: GridPosition | None


@dataclass(frozen=True, slots=True)
class CalendarView:
    days: Sequence[Day]
    zone: str
    rows: int
    shortest: int  # rows of the shortest appointment
    hours: Sequence[HourMark]
    locations: Sequence[Location]
    today: date
    hours_known: bool  # False: the hours are in the practice's own system
    is_complete: bool = True  # False: there are more appointments than a page can hold
    tag: str = ""  # changes with what is shown, not with the time of day
    unchanged: frozenset[str] = frozenset()  # tags of columns that the reader has already

    @property
    def patients(self) -> set[str]:
        """Those whose names a reader has not got yet."""
        columns = [column for day in self.days for column in day.columns if column.tag not in self.unchanged]
        return {entry.patient_id for column in columns for entry in column.entries}

    @property
    def first(self) -> date:
        return self.days[0].date
