"""Pydantic models of the practice file: keys, rules and defaults. Ids of other parts come in the validation context."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from functools import cache
from operator import le, lt
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

from frontdesk.domain.consent import Consent
from frontdesk.domain.directory import PatientKind
from frontdesk.practice_file import fields
from frontdesk.practice_file.fields import broken, rule

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class ValidationContext:
    """The validation context: ids that other parts may refer to, and today's date."""

    location_ids: AbstractSet[int]
    procedure_ids: AbstractSet[int]
    today: date | None


def _existing_location(value: int, info: ValidationInfo[ValidationContext]) -> int:
    if value not in info.context.location_ids:
        raise broken("there is no location with this id")
    return value


def _existing_procedure(value: int, info: ValidationInfo[ValidationContext]) -> int:
    if value not in info.context.procedure_ids:
        raise broken("there is no procedure with this id")
    return value


def _not_future(value: date, info: ValidationInfo[ValidationContext]) -> date:
    if info.context.today is not None and value > info.context.today:
        raise broken("must not be in the future")
    return value


def _ordered(first: str, holds: Callable[[Any, Any], bool], message: str) -> AfterValidator:
    """Compares a value with an earlier field, unless that field is absent or invalid."""

    def check(value: Any, info: ValidationInfo) -> Any:
        other = info.data.get(first)
        if other is not None and not holds(other, value):
            raise broken(message)
        return value

    return AfterValidator(check)


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)

    @classmethod
    @cache
    def keys(cls) -> tuple[str, ...]:
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        keys = cls.keys()
        return {key: value for key, value in part.items() if value is not None or key not in keys}


class SchedulingSystemPart(Part):
    # practice_file/fhir.py validates the settings of a FHIR server.
    model_config = ConfigDict(extra="allow")

    kind: Literal["native", "fhir"]


class ConsentPart(Part):
    """The least consent that each write needs."""

    create_patient: Consent | None = None
    update_patient: Consent | None = None
    book_appointment: Consent | None = None
    cancel_appointment: Consent | None = None
    confirm_attendance: Consent | None = None
    reschedule_appointment: Consent | None = None


class PracticePart(Part):
    slug: fields.Slug
    name: fields.Name
    time_zone: fields.TimeZone
    phone: fields.Phone | None = None
    minimum_notice_minutes: fields.Notice = 0
    booking_horizon_days: fields.Horizon = 90
    slot_interval_minutes: fields.Duration = 15
    scheduling_system: SchedulingSystemPart | None = None
    sandbox: bool = False
    patients_per_hour: fields.Budget = 60
    patients_per_day: fields.Budget = 400
    match_misses: fields.Misses = 5
    known_patients_only: bool = False
    consent: ConsentPart | None = None
    assistants: bool = True


class AddressPart(Part):
    line1: fields.AddressText
    line2: fields.AddressText | None = None
    city: fields.AddressText
    state: fields.AddressText
    postal_code: fields.AddressText
    country: fields.AddressText


class ClosurePart(Part):
    first: fields.Day = Field(alias="from")
    last: Annotated[fields.Day, _ordered("first", le, "must not be before from")] = Field(alias="to")
    reason: fields.Reason | None = None


class LocationPart(Part):
    id: fields.Id
    name: fields.Name
    aliases: list[fields.Name] = []
    time_zone: fields.TimeZone | None = None
    phone: fields.Phone | None = None
    address: AddressPart | None = None
    closures: list[ClosurePart] = []


class HoursPart(Part):
    location_id: Annotated[fields.Id, AfterValidator(_existing_location)] = Field(alias="location")
    days: Annotated[
        list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]], rule(len, "must name at least one day")
    ]
    opens: fields.Opens = Field(alias="from")
    closes: Annotated[fields.Closes, _ordered("opens", lt, "must be after from")] = Field(alias="to")
    effective_from: fields.Day | None = None
    effective_to: Annotated[fields.Day, _ordered("effective_from", le, "must not be before effectiveFrom")] | None = (
        None
    )


class TimeOffPart(Part):
    starts: fields.LocalTime = Field(alias="from")
    ends: Annotated[fields.LocalTime, _ordered("starts", lt, "must be after from")] = Field(alias="to")
    reason: fields.Reason | None = None


class ProviderPart(Part):
    id: fields.Id
    name: fields.Name
    aliases: list[fields.Name] = []
    specialty: fields.Name | None = None
    accepts_new_patients: bool = True
    capacity: fields.Capacity = 1
    procedure_ids: list[Annotated[fields.Id, AfterValidator(_existing_procedure)]] | None = Field(
        default=None, alias="procedures"
    )
    hours: list[HoursPart] = []
    time_off: list[TimeOffPart] = []


class ProcedurePart(Part):
    id: fields.Id
    name: fields.Name
    aliases: list[fields.Name] = []
    description: fields.Description | None = None
    duration_minutes: fields.Duration
    buffer_after_minutes: fields.Buffer = 0


class VisitTypePart(Part):
    id: fields.Id
    name: fields.Name
    aliases: list[fields.Name] = []
    description: fields.Description | None = None
    patient_kind: PatientKind = "any"
    procedures: list[ProcedurePart] = []


class PatientPart(Part):
    number: fields.Id
    first_name: fields.PersonName
    last_name: fields.PersonName
    dob: Annotated[fields.Day, AfterValidator(_not_future)]
    phone: fields.PatientPhone
    email: fields.Email | None = None
    seen: bool = False


class FilePart(Part):
    practice: PracticePart
    locations: list[LocationPart] = []
    providers: list[ProviderPart] = []
    visit_types: list[VisitTypePart] = []
    patients: list[PatientPart] = []


# The model at each path, without list indexes.
PARTS: dict[tuple[str, ...], type[Part]] = {
    (): FilePart,
    ("practice",): PracticePart,
    ("practice", "schedulingSystem"): SchedulingSystemPart,
    ("practice", "consent"): ConsentPart,
    ("locations",): LocationPart,
    ("locations", "address"): AddressPart,
    ("locations", "closures"): ClosurePart,
    ("providers",): ProviderPart,
    ("providers", "hours"): HoursPart,
    ("providers", "timeOff"): TimeOffPart,
    ("visitTypes",): VisitTypePart,
    ("visitTypes", "procedures"): ProcedurePart,
    ("patients",): PatientPart,
}
