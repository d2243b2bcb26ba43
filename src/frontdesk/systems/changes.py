"""The changes that a scheduling system can make, one class for each."""

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Booking:
    """The time that an appointment takes of a provider, and what for."""

    provider_id: int
    location_id: int
    visit_type_id: int
    procedure_id: int
    starts_at: datetime
    ends_at: datetime
    busy_until: datetime  # with the buffer after the appointment


@dataclass(frozen=True, slots=True)
class PatientDetails:
    first_name: str
    last_name: str
    dob: date
    phone: str
    email: str | None


@dataclass(frozen=True, slots=True)
class Override:
    """The rules that staff set aside for a booking, and why."""

    rules: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Book:
    kind: ClassVar[str] = "book"
    version: int  # of the directory it was judged by
    appointment_id: str
    patient_id: str
    booking: Booking
    patient_seen: bool | None = None  # what the visit type requires of the patient; None: either
    hold_id: str | None = None  # the client's hold of this time, which the booking ends
    override: Override | None = None


@dataclass(frozen=True, slots=True)
class HoldSlot:
    kind: ClassVar[str] = "hold"
    version: int  # of the directory it was judged by
    hold_id: str
    booking: Booking
    held_until: datetime
    max_holds: int  # holds of the client
    max_holds_per_hour: int


@dataclass(frozen=True, slots=True)
class ReleaseHold:
    kind: ClassVar[str] = "release"
    version: ClassVar[None] = None
    hold_id: str


@dataclass(frozen=True, slots=True)
class Reschedule:
    kind: ClassVar[str] = "reschedule"
    version: int  # of the directory it was judged by
    appointment_id: str
    patient_id: str
    from_provider_id: int
    from_states: tuple[str, ...]
    booking: Booking
    override: Override | None = None


@dataclass(frozen=True, slots=True)
class ChangeStatus:
    kind: ClassVar[str] = "status"
    version: ClassVar[None] = None
    appointment_id: str
    status: str
    from_states: tuple[str, ...]
    only_upcoming: bool
    reason: str | None = None
    starts_at: datetime | None = None  # as it was read; if it has been moved since, the outcome is stale


@dataclass(frozen=True, slots=True)
class CallIn:
    kind: ClassVar[str] = "call_in"
    version: ClassVar[None] = None
    appointment_id: str
    called: bool  # False: the patient waits again


@dataclass(frozen=True, slots=True)
class CreatePatient:
    kind: ClassVar[str] = "create_patient"
    version: ClassVar[None] = None
    patient_id: str
    details: PatientDetails


@dataclass(frozen=True, slots=True)
class UpdatePatient:
    kind: ClassVar[str] = "update_patient"
    version: ClassVar[None] = None
    patient_id: str
    before: PatientDetails  # as they were read; if they have changed since, the outcome is stale
    details: PatientDetails

    @property
    def affects_matching(self) -> bool:
        """Whether a field changes that patients are matched by. Otherwise duplicates on file do not matter."""
        return replace(self.details, email=self.before.email) != self.before


RecordChange = Book | Reschedule | ChangeStatus | CreatePatient | UpdatePatient
Change = RecordChange | HoldSlot | ReleaseHold | CallIn
