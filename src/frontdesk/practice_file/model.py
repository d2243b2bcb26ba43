"""Pydantic models of the practice file: keys, rules and defaults. Ids of other parts come in the validation context."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel

from frontdesk.domain.directory import PatientKind
from frontdesk.practice_file import fields
from frontdesk.practice_file.fields import broken

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Surroundings:
    """The validation context: ids that other parts may refer to, and today's date."""

    location_ids: AbstractSet[int]
    procedure_ids: AbstractSet[int]
    today: date | None


def _existing_location(value: int, info: ValidationInfo[Surroundings]) -> int:
    if value not in info.context.location_ids:
        raise broken("there is no location with this id")
    return value


def _existing_procedure(value: int, info: ValidationInfo[Surroundings]) -> int:
    if value not in info.context.procedure_ids:
        raise broken("there is no procedure with this id")
    return value


def _not_future(value: date, info: ValidationInfo[Surroundings]) -> date:
    if info.context.today is not None and value > info.context.today:
        raise broken("must not be in the future")
    return value


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
    # The adapter of the scheduling system validates its settings.
    model_config = ConfigDict(extra="allow")

    kind: Literal["native", "fhir"]


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


class AddressPart(Part):
    line1: fields.AddressText
    line2: fields.AddressText | None = None
    city: fields.AddressText
    state: fields.AddressText
    postal_code: fields.AddressText
    country: fields.AddressText


class ClosurePart(Part):
    first: fields.Day = Field(alias="from")
    last: fields.Day = Field(alias="to")
    reason: fields.Reason | None = None

    @field_validator("last")
    @classmethod
    def _in_order(cls, last: date, info: ValidationInfo) -> date:
        if "first" in info.data and last < info.data["first"]:
            raise broken("must not be before from")
        return last


class LocationPart(Part):
    id: fields.Id
    name: fields.Name
    aliases: list[fields.Name] = []
    time_zone: fields.TimeZone | None = None
    phone: fields.Phone | None = None
    address: AddressPart | None = None
    closures: list[ClosurePart] = []


class HoursPart(Part):
    location: Annotated[fields.Id, AfterValidator(_existing_location)]
    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]
    opens: fields.Opens = Field(alias="from")
    closes: fields.Closes = Field(alias="to")
    effective_from: fields.Day | None = None
    effective_to: fields.Day | None = None

    @field_validator("days")
    @classmethod
    def _some_day(cls, days: list[str]) -> list[str]:
        if not days:
            raise broken("must name at least one day")
        return days

    @field_validator("closes")
    @classmethod
    def _in_order(cls, closes: int, info: ValidationInfo) -> int:
        if "opens" in info.data and closes <= info.data["opens"]:
            raise broken("must be after from")
        return closes

    @field_validator("effective_to")
    @classmethod
    def _effective_in_order(cls, last: date | None, info: ValidationInfo) -> date | None:
        first = info.data.get("effective_from")
        if first is not None and last is not None and last < first:
            raise broken("must not be before effectiveFrom")
        return last


class TimeOffPart(Part):
    starts: fields.LocalTime = Field(alias="from")
    ends: fields.LocalTime = Field(alias="to")
    reason: fields.Reason | None = None

    @field_validator("ends")
    @classmethod
    def _in_order(cls, ends: datetime, info: ValidationInfo) -> datetime:
        if "starts" in info.data and ends <= info.data["starts"]:
            raise broken("must be after from")
        return ends


class ProviderPart(Part):
    id: fields.Id
    name: fields.Name
    aliases: list[fields.Name] = []
    specialty: fields.Name | None = None
    accepts_new_patients: bool = True
    capacity: fields.Capacity = 1
    procedures: list[Annotated[fields.Id, AfterValidator(_existing_procedure)]] | None = None
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
    first_name: fields.Name
    last_name: fields.Name
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
