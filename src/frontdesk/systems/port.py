"""The port that every scheduling system implements, in parts: not every system has all of them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from frontdesk.domain.appointments import CANCELLABLE, Appointment
from frontdesk.domain.booking_rules import BrokenRule
from frontdesk.domain.consent import Consent
from frontdesk.domain.directory import Directory, Procedure, VisitType
from frontdesk.domain.errors import Problem
from frontdesk.domain.holds import Hold
from frontdesk.domain.patients import Contact, Patient, PhoneMatch
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.systems.changes import Change
from frontdesk.texts import N_

PAGE_OF_APPOINTMENTS = 500
MISCONFIGURED_RETRY_SECONDS = 300  # until a caller may ask whether the operator has corrected the settings
KEEP_RESULTS = timedelta(hours=24)  # of writes, for their resends


class SystemUnavailable(Exception):
    """The system cannot be reached or cannot do it now. Nothing was executed."""

    detail: str | None = None  # what a caller is told; None: the usual text

    def __init__(self, retry_after: int = 2) -> None:
        super().__init__("the scheduling system is unavailable")
        self.retry_after = retry_after


class Misconfigured(SystemUnavailable):
    """The settings or our rights are wrong, and retrying soon does not help. `reason` tells the operator what to
    correct, without secrets and personal data."""

    detail = N_(
        "The practice's scheduling system refuses the requests of this service, or its settings are wrong. The request "
        "was not executed. Retrying does not help until the practice's operator has corrected this."
    )

    def __init__(self, reason: str) -> None:
        super().__init__(retry_after=MISCONFIGURED_RETRY_SECONDS)
        self.reason = reason


class Capability(Enum):
    """What some scheduling systems can do and others cannot."""

    FIND_SLOTS = "find open slots"
    MATCH_PATIENTS = "match patients by name, phone number and date of birth"
    SEARCH_PATIENTS = "search patients by fragments of a name, phone number or date of birth"
    READ_PATIENTS = "read patients"
    CREATE_PATIENTS = "create patients"
    UPDATE_PATIENTS = "update patients"
    LIST_APPOINTMENTS = "list appointments"
    READ_APPOINTMENTS = "read appointments"
    BOOK = "book appointments"
    HOLD = "hold open slots until they are booked"
    RESCHEDULE = "reschedule appointments"
    CHANGE_STATUS = "cancel and confirm appointments"
    RECORD_ATTENDANCE = "record that a patient arrived, was seen or did not come"
    BLOCK_TIME = "block the time of a provider or a location"
    OPENING_HOURS = "know when providers and locations are open"
    OVERRIDE = "book for staff what the booking rules refuse"


@dataclass(frozen=True, slots=True)
class PatientSearch:
    """Fragments of a patient's data. What is None or empty is not compared."""

    names: tuple[tuple[str, str], ...] = ()  # beginnings of first and last name, as alternatives
    phone_tail: str | None = None  # the last digits of the phone number, last one first
    dob: date | None = None


@dataclass(frozen=True, slots=True)
class SlotQuery:
    """Where and when to search. An id of None means any that fits."""

    visit_type_id: int
    procedure_id: int
    provider_id: int | None
    location_id: int | None
    first: date | None  # None: today at the location
    last: date | None  # None: up to the booking horizon


SlotPosition = tuple[int, int, int]  # start, provider, location: the order of slots


@dataclass(frozen=True, slots=True)
class OpenSlots:
    """Open starts of one provider at one location, ascending, in minutes since 1970 UTC."""

    provider_id: int
    location_id: int
    time_zone: str
    starts: Sequence[int]


@dataclass(frozen=True, slots=True)
class FoundSlots:
    visit_type_id: int
    procedure: Procedure | None  # None if the ids do not belong together; then there are no slots
    by_provider: Sequence[OpenSlots]


@dataclass(frozen=True, slots=True)
class SlotState:
    """The current state of a slot, and the directory that its names come from."""

    available: bool
    directory: Directory
    visit_type: VisitType
    procedure: Procedure
    version: int  # of the directory
    held: bool = False  # not available only because somebody holds it


@dataclass(frozen=True, slots=True)
class BookingCheck:
    """What a booking of a slot depends on. `patient_seen` is None if there is no such patient."""

    slot: SlotState
    patient_seen: bool | None
    patient_busy: bool


@dataclass(frozen=True, slots=True)
class OverrideCheck(BookingCheck):
    """What staff see before they book against the rules. Empty `broken`: nothing forbids it."""

    broken: Sequence[BrokenRule] = ()


@dataclass(frozen=True, slots=True)
class AppointmentFilter:
    patient_id: str | None = None
    provider_id: int | None = None
    location_id: int | None = None
    visit_type_id: int | None = None
    procedure_id: int | None = None
    first: date | None = None
    last: date | None = None
    earlier: timedelta = timedelta()  # how long before the first date they may start, too
    known_to: str | None = None  # a client: only patients that it has matched, created or booked


@dataclass(frozen=True, slots=True)
class ListingStart:
    """The moment a listing began, by which its pages recognise the appointments that were moved since."""

    snapshot: str  # of the database
    began_at: datetime  # by the database's clock


@dataclass(frozen=True, slots=True)
class AppointmentPosition:
    """A place in a listing: the start that the appointment had when the listing began, and its id."""

    starts_at: datetime
    id: str
    listing: ListingStart


@dataclass(frozen=True, slots=True)
class AppointmentPage:
    appointments: list[Appointment]
    last: AppointmentPosition | None  # of the last appointment; None if none follow


@dataclass(frozen=True, slots=True)
class Intent:
    """Identifies a write so that it executes once: the hash of a confirmation token or an Idempotency-Key."""

    id: bytes
    fingerprint: bytes
    is_key: bool


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """What is committed together with a change: who made it, how it was agreed to, and how long its result is kept."""

    actor: str
    operation: str
    request_id: str
    now: datetime
    keep_until: datetime
    intent: Intent | None
    consent: Consent | None = None  # None: nobody was asked
    traceparent: str | None = None
    limits: Mapping[str, int] | None = None  # of the client's writes, by name
    unchanged_since: datetime | None = None  # refuses an appointment that was changed at another time, if it can tell

    @property
    def members(self) -> dict[str, Any]:
        """What of this is stored with the change, as JSON."""
        given = {
            "consent": self.consent,
            "traceparent": self.traceparent,
            "limits": self.limits,
            "unchangedSince": self.unchanged_since,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ChallengeRecord:
    """What is stored of a challenge, and the limits of the client that it is checked against."""

    intent: Intent
    actor: str
    operation: str
    request_id: str
    now: datetime
    expires_at: datetime
    subjects: list[str]
    limits: Mapping[str, object]  # by name, with the patient whom the write books
    challenge: str  # what is read back and when, as JSON
    proposal: Mapping[str, object] | None = None  # what staff see who have to approve the write


@dataclass(frozen=True, slots=True)
class BookingSeen:
    """What the statement that refused a booking saw. `patient_seen` is None if there is no such patient."""

    available: bool
    patient_seen: bool | None
    patient_busy: bool


OutcomeKind = Literal[
    "executed",
    "unchanged",
    "replayed",
    "slot_unavailable",
    "conflict",
    "declined",
    "mismatch",
    "unrecognized",
    "expired",
    "stale",
    "incomplete",
    "rate_limited",
    "approval_pending",
    "approval_refused",
    "refused",
    "challenged",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a write or its challenge. `executed`, `unchanged` and `replayed` have a result, `rate_limited` the
    limit that was reached, `challenged` the one that it exceeds, `refused` what was seen."""

    kind: OutcomeKind
    reason: str | None = None
    result: Mapping[str, Any] | None = None  # JSON, or the row of a challenge
    seen: BookingSeen | None = None


class Versions(NamedTuple):
    """The versions that the reads of a call saw: those of its first read, since versions only grow."""

    directory: int
    calendars: Mapping[int, int] | None = None  # changes of the providers' calendars; None: no appointments were read


class Calendar(Protocol):
    @property
    def versions(self) -> Versions | None:
        """Versions of what this call has read so far: equal versions mean equal reads. None: the system has none."""

    async def find_slots(
        self, query: SlotQuery, now: datetime, *, limit: int, after: SlotPosition | None
    ) -> FoundSlots:
        """The earliest open slots, at most `limit` in all, after a position (start, provider, location)."""
        ...

    async def slot_state(self, slot: SlotRef, now: datetime) -> SlotState | None:
        """Reads a slot. None if the practice does not have what the slot id names."""
        ...


class OwnCalendar(Protocol):
    async def slot_by_hours(self, slot: SlotRef, now: datetime) -> SlotState | None:
        """The slot whether it is taken or not. None if the practice does not have it."""
        ...

    async def calendar_checksum(self, wanted: AppointmentFilter, now: datetime) -> int:
        """Changes with the appointments and holds of a provider, a location and some dates, and with their patients'
        contacts."""
        ...


class PatientMatching(Protocol):
    async def match_patients(
        self, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
    ) -> list[Patient]: ...


class PatientSearching(Protocol):
    async def search_patients(self, search: PatientSearch, *, limit: int) -> list[Patient]:
        """Finds patients by fragments, in order of last name, first name and number."""
        ...


class Patients(Protocol):
    async def get_patient(self, patient: str | int) -> Patient | None:
        """Reads a patient by `pat_` id or by the practice's own number; None if there is none."""
        ...

    async def contacts(self, patient_ids: Sequence[str]) -> dict[str, Contact]:
        """The contacts of patients by id, in a bounded number of queries. Unknown patients are left out."""
        ...


class Appointments(Protocol):
    async def get_appointment(self, appointment_id: str) -> Appointment | None: ...

    async def list_appointments(
        self, wanted: AppointmentFilter, *, limit: int, after: AppointmentPosition | None
    ) -> AppointmentPage:
        """Lists a page of appointments, in the order of the starts that they had when the listing began.

        One that is moved between two pages is therefore neither skipped nor repeated.
        """
        ...


class Bookings(Protocol):
    async def check_booking(
        self,
        slot: SlotRef,
        patient_id: str,
        now: datetime,
        moved: Appointment | None = None,
        hold_id: str | None = None,
    ) -> BookingCheck | None:
        """Checks what a booking depends on. The appointment that is `moved` and the hold that is booked do not take the
        time."""
        ...


class Overrides(Protocol):
    async def check_override(
        self, slot: SlotRef, patient_id: str, now: datetime, moved: Appointment | None = None
    ) -> OverrideCheck | None:
        """Like `check_booking`, with the rules that the booking would break. `available` says that the practice still
        has the visit, the provider and the location, not that the time is open."""
        ...


class Holds(Protocol):
    async def find_hold(self, hold_id: str, client_id: str, now: datetime) -> Hold | None:
        """A hold of the client, None once it has ended."""
        ...

    async def list_holds(self, first: datetime, last: datetime, now: datetime) -> list[Hold]:
        """The holds of all clients that start in first <= t < last and have not ended."""
        ...


class Changes(Protocol):
    async def perform(self, change: Change, record: WriteRecord) -> Outcome:
        """Executes a change exactly once. Raises SystemUnavailable only if nothing was executed."""
        ...

    async def challenge(self, change: Change, record: ChallengeRecord) -> Outcome:
        """Stores a challenge, of a booking only if it would succeed now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingSystem:
    """One practice's scheduling system for one call, in parts. Every method may raise SystemUnavailable."""

    kind: str
    remote: bool
    """Whether calls mostly wait for another server, whose connections are limited per practice."""
    capabilities: frozenset[Capability]
    directory: Callable[[], Awaitable[Directory]]
    calendar: Calendar
    matching: PatientMatching
    patients: Patients
    appointments: Appointments
    bookings: Bookings
    changes: Changes
    own_calendar: OwnCalendar | None = None  # None: the system has to read slots and appointments to judge by them
    searching: PatientSearching | None = None
    overrides: Overrides | None = None
    holds: Holds | None = None


T = TypeVar("T")


def needed(part: T | None) -> T:
    """A part that not every system has."""
    if part is None:
        raise Problem("capability_not_supported")
    return part


async def appointment_pages(system: SchedulingSystem, wanted: AppointmentFilter) -> AsyncIterator[list[Appointment]]:
    """Every appointment that matches, page by page in the order of their starts."""
    after: AppointmentPosition | None = None
    while True:
        page = await system.appointments.list_appointments(wanted, limit=PAGE_OF_APPOINTMENTS, after=after)
        yield page.appointments
        if page.last is None:
            return
        after = page.last


async def upcoming_pages(
    system: Callable[[], Awaitable[SchedulingSystem]], now: datetime
) -> AsyncIterator[list[Appointment]]:
    """The future appointments that patients still expect, page by page. Each page is a call of its own, because the
    time limit of a call does not grow with the length of the list."""
    wanted = AppointmentFilter(first=now.date() - timedelta(days=1))  # today's date in no zone is earlier
    after: AppointmentPosition | None = None
    while True:
        opened = await system()
        if Capability.LIST_APPOINTMENTS not in opened.capabilities:
            raise Misconfigured("it does not list appointments")
        page = await opened.appointments.list_appointments(wanted, limit=PAGE_OF_APPOINTMENTS, after=after)
        yield [each for each in page.appointments if each.status in CANCELLABLE and each.starts_at > now]
        if page.last is None:
            return
        after = page.last
