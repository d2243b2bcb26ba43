"""The records in answers: models for the schemas, and functions that build the data.

Answers are built as dictionaries because serializing models is many times slower. Tests check them against the models.
"""

from datetime import datetime
from functools import cache
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.ids import APPOINTMENT_FORM, PATIENT_FORM
from frontdesk.domain.local_time import iso_local, iso_utc, minute_of, weekday
from frontdesk.domain.slot_ids import SlotRef

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
PatientId = Annotated[str, Field(pattern=f"^{PATIENT_FORM}$")]
AppointmentId = Annotated[str, Field(pattern=f"^{APPOINTMENT_FORM}$")]
SlotId = Annotated[str, Field(pattern="^slt_", description="The slotId for get_slot and book_appointment.")]
Visit = Appointment | SlotRef
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


def record_body(model: type[Record], source: object) -> dict[str, object]:
    """The fields of the model, from the attributes of the same names."""
    values = ((member, getattr(source, name)) for name, member in _members(model))
    return {member: value for member, value in values if value is not None}


@cache
def _members(model: type[Record]) -> tuple[tuple[str, str], ...]:
    return tuple((name, to_camel(name)) for name in model.model_fields)


def visit_ids(visit: Visit) -> dict[str, object]:
    return {
        "providerId": visit.provider_id,
        "locationId": visit.location_id,
        "visitTypeId": visit.visit_type_id,
        "procedureId": visit.procedure_id,
    }


def visit_names(visit: Visit, directory: Directory) -> dict[str, str]:
    """The names that the ids stand for, and the time zone."""
    visit_type = directory.visit_types[visit.visit_type_id]
    procedure = visit_type.procedure(visit.procedure_id)
    assert procedure is not None
    location = directory.locations[visit.location_id]
    return {
        "providerName": directory.providers[visit.provider_id].name,
        "locationName": location.name,
        "visitTypeName": visit_type.name,
        "procedureName": procedure.name,
        "timeZone": location.time_zone,
    }


def visit_times(visit: Visit, directory: Directory) -> dict[str, object]:
    start, end = iso_local(_minutes(visit), directory.locations[visit.location_id].time_zone)
    return {"start": start, "end": end}


def visit_read_back(visit: Visit, directory: Directory) -> dict[str, object]:
    """What is read to the patient before a write."""
    names = visit_names(visit, directory)
    return {**visit_times(visit, directory), **names, "weekday": weekday(_minutes(visit)[0], names["timeZone"])}


def appointment_summary_body(appointment: Appointment, directory: Directory) -> dict[str, object]:
    return {
        "id": appointment.id,
        "status": appointment.status,
        **visit_times(appointment, directory),
        "patientId": appointment.patient_id,
        **visit_ids(appointment),
    }


def appointment_body(appointment: Appointment, directory: Directory) -> dict[str, object]:
    moved_from, zone = appointment.rescheduled_from, directory.locations[appointment.location_id].time_zone
    history = {
        "createdAt": iso_utc(appointment.created_at),
        "updatedAt": iso_utc(appointment.updated_at),
        "attendanceConfirmedAt": _utc(appointment.attendance_confirmed_at),
        "cancelledAt": _utc(appointment.cancelled_at),
        "cancellationReason": appointment.cancellation_reason,
        "rescheduledFrom": None if moved_from is None else iso_local([minute_of(moved_from)], zone)[0],
    }
    return {
        **appointment_summary_body(appointment, directory),
        **visit_names(appointment, directory),
        **{name: value for name, value in history.items() if value is not None},
    }


def _minutes(visit: Visit) -> tuple[int, int]:
    if isinstance(visit, SlotRef):
        return visit.start, visit.start + visit.duration_minutes
    return minute_of(visit.starts_at), minute_of(visit.ends_at)


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else iso_utc(moment)
