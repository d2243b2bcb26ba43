"""The records in answers: models for the schemas, and functions that build the data.

Answers are built as dictionaries because serializing models is many times slower. Tests check them against the models.
"""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from frontdesk.domain import directory as domain
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.local_time import iso_local, iso_utc
from frontdesk.domain.patients import Patient

LocalTime = Annotated[
    str,
    Field(
        json_schema_extra={"format": "date-time"},
        description="With the UTC offset of the location's time zone.",
        examples=["2026-11-16T09:00:00-05:00"],
    ),
]
UtcTime = Annotated[
    str, Field(json_schema_extra={"format": "date-time"}, description="UTC.", examples=["2026-11-15T08:00:00Z"])
]
DirectoryId = Annotated[
    int, Field(ge=1, json_schema_extra={"format": "int32"}, description="For calls only, never shown to people.")
]
PatientId = Annotated[str, Field(pattern="^pat_[0-9A-Za-z]{22}$")]
AppointmentId = Annotated[str, Field(pattern="^apt_[0-9A-Za-z]{22}$")]
SlotId = Annotated[str, Field(pattern="^slt_", description="The slotId for get_slot and book_appointment.")]
T = TypeVar("T")
AppointmentStatus = Literal["booked", "confirmed", "cancelled", "arrived", "completed", "noShow"]


class Record(BaseModel):
    """Empty optional fields are left out; null never appears."""

    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, defer_build=True)


class DirectoryRecord(Record):
    id: DirectoryId
    name: str
    aliases: list[str]


class AddressRecord(Record):
    line1: str
    line2: str | None = None
    city: str
    state: str
    postal_code: str
    country: str


class LocationRecord(DirectoryRecord):
    time_zone: Annotated[str, Field(description="IANA time zone.")]
    phone: str | None = None
    address: AddressRecord | None = None


class ProviderRecord(DirectoryRecord):
    specialty: str | None = None
    location_ids: list[int]
    accepts_new_patients: bool


class VisitTypeRecord(DirectoryRecord):
    description: str | None = None
    patient_kind: Annotated[Literal["new", "existing", "any"], Field(description="For whom this visit type is.")]


class ProcedureRecord(DirectoryRecord):
    description: str | None = None
    duration_minutes: int


class NamesRecord(Record):
    """The names that the ids of a slot or an appointment stand for."""

    provider_name: str
    location_name: str
    visit_type_name: str
    procedure_name: str
    time_zone: str


class SlotRecord(Record):
    id: SlotId
    start: LocalTime
    end: LocalTime
    provider_id: DirectoryId
    location_id: DirectoryId
    visit_type_id: DirectoryId
    procedure_id: DirectoryId


class SlotDetailRecord(NamesRecord, SlotRecord):
    available: Annotated[bool, Field(description="Checked live by this very call.")]


class PatientRecord(Record):
    id: PatientId
    number: Annotated[int, Field(description="The practice's own patient number.")]
    first_name: str
    last_name: str
    dob: Annotated[str, Field(json_schema_extra={"format": "date"})]
    phone: str
    email: str | None = None
    patient_kind: Literal["new", "existing"]


class AppointmentSummaryRecord(Record):
    id: AppointmentId
    status: AppointmentStatus
    start: LocalTime
    end: LocalTime
    patient_id: PatientId
    provider_id: DirectoryId
    location_id: DirectoryId
    visit_type_id: DirectoryId
    procedure_id: DirectoryId


class AppointmentRecord(NamesRecord, AppointmentSummaryRecord):
    created_at: UtcTime
    updated_at: UtcTime
    attendance_confirmed_at: UtcTime | None = None
    cancelled_at: UtcTime | None = None
    cancellation_reason: str | None = None
    rescheduled_from: Annotated[LocalTime | None, Field(description="The previous start.")] = None


class AppointmentWritten(Record):
    """The answer of cancel, confirm and reschedule."""

    appointment_id: AppointmentId
    status: AppointmentStatus


class PatientWritten(Record):
    patient_id: PatientId


class Page(Record, Generic[T]):
    limit: int
    next_cursor: Annotated[str | None, Field(description="For the next page; absent on the last one.")] = None
    items: list[T]


def location_body(location: domain.Location) -> dict[str, Any]:
    return _without_none(
        id=location.id,
        name=location.name,
        aliases=list(location.aliases),
        timeZone=location.time_zone,
        phone=location.phone,
        address=None if location.address is None else {k: v for k, v in location.address.items() if v is not None},
    )


def provider_body(provider: domain.Provider) -> dict[str, Any]:
    return _without_none(
        id=provider.id,
        name=provider.name,
        aliases=list(provider.aliases),
        specialty=provider.specialty,
        locationIds=list(provider.location_ids),
        acceptsNewPatients=provider.accepts_new_patients,
    )


def visit_type_body(visit_type: domain.VisitType) -> dict[str, Any]:
    return _without_none(
        id=visit_type.id,
        name=visit_type.name,
        aliases=list(visit_type.aliases),
        description=visit_type.description,
        patientKind=visit_type.patient_kind,
    )


def procedure_body(procedure: domain.Procedure) -> dict[str, Any]:
    return _without_none(
        id=procedure.id,
        name=procedure.name,
        aliases=list(procedure.aliases),
        description=procedure.description,
        durationMinutes=procedure.duration_minutes,
    )


def patient_body(patient: Patient) -> dict[str, Any]:
    return _without_none(
        id=patient.id,
        number=patient.number,
        firstName=patient.first_name,
        lastName=patient.last_name,
        dob=patient.dob.isoformat(),
        phone=patient.phone,
        email=patient.email,
        patientKind=patient.kind,
    )


def appointment_summary_body(appointment: Appointment, directory: domain.Directory) -> dict[str, Any]:
    zone = directory.locations[appointment.location_id].time_zone
    start, end = _local([appointment.starts_at, appointment.ends_at], zone)
    return {
        "id": appointment.id,
        "status": appointment.status,
        "start": start,
        "end": end,
        "patientId": appointment.patient_id,
        "providerId": appointment.provider_id,
        "locationId": appointment.location_id,
        "visitTypeId": appointment.visit_type_id,
        "procedureId": appointment.procedure_id,
    }


def appointment_body(appointment: Appointment, directory: domain.Directory) -> dict[str, Any]:
    zone = directory.locations[appointment.location_id].time_zone
    return {
        **appointment_summary_body(appointment, directory),
        **appointment_names(appointment, directory),
        "createdAt": iso_utc(appointment.created_at),
        "updatedAt": iso_utc(appointment.updated_at),
        **_without_none(
            attendanceConfirmedAt=_utc(appointment.attendance_confirmed_at),
            cancelledAt=_utc(appointment.cancelled_at),
            cancellationReason=appointment.cancellation_reason,
            rescheduledFrom=(
                None if appointment.rescheduled_from is None else _local([appointment.rescheduled_from], zone)[0]
            ),
        ),
    }


def appointment_names(appointment: Appointment, directory: domain.Directory) -> dict[str, Any]:
    """The names that an appointment's ids stand for, and its time zone."""
    visit_type = directory.visit_types[appointment.visit_type_id]
    procedure = visit_type.procedure(appointment.procedure_id)
    assert procedure is not None
    location = directory.locations[appointment.location_id]
    return {
        "providerName": directory.providers[appointment.provider_id].name,
        "locationName": location.name,
        "visitTypeName": visit_type.name,
        "procedureName": procedure.name,
        "timeZone": location.time_zone,
    }


def _local(moments: list[datetime], zone: str) -> list[str]:
    return iso_local([int(moment.timestamp()) // 60 for moment in moments], zone)


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else iso_utc(moment)


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
