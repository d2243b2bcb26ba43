"""Pydantic models of the practice file: keys, rules and defaults. Ids of other parts come in the validation context."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from operator import le, lt
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, ConfigDict, ValidationInfo, create_model
from pydantic.alias_generators import to_camel

from frontdesk.domain.consent import Consent, Demand
from frontdesk.domain.directory import DateFormat, Day, PatientKind, TimeFormat
from frontdesk.domain.patients import PhoneMatch
from frontdesk.feature import features
from frontdesk.practice_file import fields
from frontdesk.practice_file.fields import broken, key, rule
from frontdesk.practice_file.part import FeaturePart, Part
from frontdesk.texts import N_


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
        raise broken(N_("%(field)s must not be in the future"))
    return value


def _ordered(first: str, holds: Callable[[object, object], bool], template: str) -> AfterValidator:
    """Compares a value with an earlier field, unless that field is absent or invalid."""

    def check(value: object, info: ValidationInfo) -> object:
        other = info.data.get(first)
        if other is not None and not holds(other, value):
            raise broken(template)
        return value

    return AfterValidator(check)


class SchedulingSystemPart(Part):
    """Where the calendar and the patients are kept."""

    # practice_file/fhir.py validates the settings of a FHIR server.
    model_config = ConfigDict(extra="allow")

    kind: Literal["native", "fhir"] = key("native: in the database of frontdesk; fhir: by a FHIR server.", "native")


class ConsentPart(Part):
    """The least consent that each write needs, from the weakest: token, elicitation, card, link, staff."""

    create_patient: Demand | None = key("To create a patient.", "token", None)
    update_patient: Demand | None = key("To change a patient.", "token", None)
    book_appointment: Demand | None = key("To book an appointment.", "elicitation", None)
    cancel_appointment: Consent | None = key("To cancel an appointment.", "card", None)
    confirm_attendance: Consent | None = key("To confirm that the patient will come.", "token", None)
    reschedule_appointment: Demand | None = key("To move an appointment.", "card", None)


FEATURE_PARTS: Mapping[str, type[FeaturePart]] = {each.name: each.settings or FeaturePart for each in features()}
if TYPE_CHECKING:
    FeaturesPart = Part
else:
    FeaturesPart = create_model(
        "FeaturesPart",
        __base__=Part,
        __doc__="The features that a practice can switch off, each with its settings.",
        **{
            each.name: (FEATURE_PARTS[each.name], key(each.about, {"enabled": False}, FEATURE_PARTS[each.name]()))
            for each in features()
        },
    )


class PracticePart(Part):
    """The practice and its rules."""

    slug: fields.Slug = key("Names the practice in commands; it stays the same.", "harbor-family")
    name: fields.Name = key("The name that callers hear.", "Harbor Family Medicine")
    time_zone: fields.TimeZone = key("IANA time zone of the practice.", "America/New_York")
    phone: fields.Phone | None = key("Phone number of the practice.", "+1 555 010 0100", None)
    minimum_notice_minutes: fields.Notice = key("A time that begins sooner cannot be booked.", 60, 0)
    booking_horizon_days: fields.Horizon = key("How many days ahead can be booked.", 120, 90)
    slot_interval_minutes: fields.Duration = key(
        "Offered times begin at multiples of this, counted from the start of the hours.", 30, 15
    )
    scheduling_system: SchedulingSystemPart | None = key(
        "Where the calendar and the patients are kept; without it, in the database of frontdesk.",
        {"kind": "native"},
        None,
    )
    sandbox: bool = key("Whether callers may simulate errors; never for real patients.", True, False)
    patients_per_hour: fields.Budget = key("Distinct patients that an agent may read in an hour; 0: unlimited.", 30, 60)
    patients_per_day: fields.Budget = key("Distinct patients that an agent may read in a day; 0: unlimited.", 200, 400)
    match_misses: fields.Misses = key(
        "Failed matches of a person until matching this person is locked for the client; 0: unlimited.", 3, 5
    )
    known_patients_only: bool = key(
        "Whether agents see only patients that they matched, created or booked.", True, False
    )
    writes_per_hour: fields.Budget = key(
        "Writes of each kind (bookings, cancellations, new patients and so on) that an agent may make in an hour; "
        "0: unlimited.",
        60,
        200,
    )
    upcoming_per_patient: fields.Upcoming = key(
        "Upcoming appointments that an agent may have booked for one patient; 0: unlimited.", 5, 20
    )
    phone_match: PhoneMatch = key(
        "Where the digits that a client gives must stand in a patient's phone number: fewer than seven must end it "
        "(ending), or they may stand anywhere, where an area code is enough.",
        "ending",
        "anywhere",
    )
    consent: ConsentPart | None = key("The least consent that each write needs.", {"cancelAppointment": "card"}, None)
    assistants: bool = key("Whether staff may connect assistants of their own.", False, True)
    time_format: TimeFormat = key("How the console writes times: 14:30 (24h) or 2:30 PM (12h).", "12h", "24h")
    date_format: DateFormat = key(
        "How the console writes dates: 23 Nov 2026 (dayFirst), Nov 23, 2026 (monthFirst) or 2026-11-23 (yearFirst).",
        "monthFirst",
        "dayFirst",
    )
    features: FeaturesPart | None = key(
        "The features that it can switch off, each with its settings.",
        {to_camel(features()[0].name): {"enabled": False}},
        None,
    )


class AddressPart(Part):
    """A postal address."""

    line1: fields.AddressText = key("Street and number.", "1 Main Street")
    line2: fields.AddressText | None = key("Suite or floor.", "Suite 200", None)
    city: fields.AddressText = key("City.", "Boston")
    state: fields.AddressText = key("State or region.", "MA")
    postal_code: fields.AddressText = key("Postal code.", "02110")
    country: fields.AddressText = key("Country.", "US")


class ClosurePart(Part):
    """Days on which a location is closed."""

    first: fields.Day = key("The first day, at the location.", "2027-07-05", alias="from")
    last: Annotated[fields.Day, _ordered("first", le, N_("%(field)s must not be before from"))] = key(
        "The last day, included.", "2027-07-05", alias="to"
    )
    reason: fields.Reason | None = key("Shown to staff only.", "Holiday", None)


class LocationPart(Part):
    """A place where patients are seen."""

    id: fields.Id = key("Your own number; it stays the same.", 1)
    name: fields.Name = key("The name that callers hear.", "Downtown")
    aliases: list[fields.Name] = key("Other names that callers use.", ["Main Street"], [])
    time_zone: fields.TimeZone | None = key(
        "IANA time zone; without it, the stored one, or else the practice's.", "America/Chicago", None
    )
    phone: fields.Phone | None = key("Phone number of the location.", "+1 555 010 0101", None)
    address: AddressPart | None = key(
        "Postal address.",
        {"line1": "1 Main Street", "city": "Boston", "state": "MA", "postalCode": "02110", "country": "US"},
        None,
    )
    closures: list[ClosurePart] = key(
        "Days on which it is closed.", [{"from": "2027-07-05", "to": "2027-07-05", "reason": "Holiday"}], []
    )


class HoursPart(Part):
    """Weekly hours at a location."""

    location_id: Annotated[fields.Id, AfterValidator(_existing_location)] = key(
        "The id of the location.", 1, alias="location"
    )
    days: Annotated[
        list[Day],
        rule(len, N_("%(field)s must name at least one day"), minItems=1),
    ] = key("The days of the week.", ["mon", "tue"])
    opens: fields.Opens = key("The beginning, in local time of the location.", "09:00", alias="from")
    closes: Annotated[fields.Closes, _ordered("opens", lt, N_("%(field)s must be after from"))] = key(
        "The end; up to 24:00.", "12:00", alias="to"
    )
    effective_from: fields.Day | None = key("The first day on which they hold.", "2027-01-01", None)
    effective_to: (
        Annotated[fields.Day, _ordered("effective_from", le, N_("%(field)s must not be before effectiveFrom"))] | None
    ) = key("The last day on which they hold, included.", "2027-06-30", None)


class TimeOffPart(Part):
    """An absence of a provider, in local time of each location."""

    starts: fields.LocalTime = key("The beginning.", "2027-07-01T12:00", alias="from")
    ends: Annotated[fields.LocalTime, _ordered("starts", lt, N_("%(field)s must be after from"))] = key(
        "The end.", "2027-07-05T00:00", alias="to"
    )
    reason: fields.Reason | None = key("Shown to staff only.", "Vacation", None)


class ProviderPart(Part):
    """A person whom patients see."""

    id: fields.Id = key("Your own number; it stays the same.", 10)
    name: fields.Name = key("The name that callers hear.", "Dr. Robert Chen")
    aliases: list[fields.Name] = key("Other names that callers use.", ["Bob Chen"], [])
    specialty: fields.Name | None = key("Specialty.", "Family medicine", None)
    accepts_new_patients: bool = key("Whether patients who have not been seen can be booked.", False, True)
    capacity: fields.Capacity = key("Appointments at the same time.", 2, 1)
    procedure_ids: list[Annotated[fields.Id, AfterValidator(_existing_procedure)]] | None = key(
        "The ids of the procedures; without it, all.", [100, 101], None, alias="procedures"
    )
    hours: list[HoursPart] = key(
        "Weekly hours; nothing can be booked without any.",
        [{"location": 1, "days": ["mon", "tue"], "from": "09:00", "to": "12:00"}],
        [],
    )
    time_off: list[TimeOffPart] = key(
        "Absences.", [{"from": "2027-07-01T12:00", "to": "2027-07-05T00:00", "reason": "Vacation"}], []
    )


class ProcedurePart(Part):
    """What is done at a visit, and how long it takes."""

    id: fields.Id = key("Your own number; it stays the same. A procedure may belong to several visit types.", 100)
    name: fields.Name = key("The name that callers hear.", "Comprehensive exam")
    aliases: list[fields.Name] = key("Other names that callers use.", ["check-up"], [])
    description: fields.Description | None = key("What callers are told about it.", "Bring your insurance card.", None)
    duration_minutes: fields.Duration = key("How long the appointment takes.", 30)
    buffer_after_minutes: fields.Buffer = key("Time after it that stays free.", 10, 0)


class VisitTypePart(Part):
    """A reason for a visit, with its procedures."""

    id: fields.Id = key("Your own number; it stays the same.", 20)
    name: fields.Name = key("The name that callers hear.", "New patient visit")
    aliases: list[fields.Name] = key("Other names that callers use.", ["first visit"], [])
    description: fields.Description | None = key("What callers are told about it.", "For your first visit.", None)
    patient_kind: PatientKind = key("Who can book it: new, existing or any patients.", "new", "any")
    procedures: list[ProcedurePart] = key(
        "What is done; nothing can be booked without any.",
        [{"id": 100, "name": "Comprehensive exam", "durationMinutes": 30}],
        [],
    )


class PatientPart(Part):
    """A patient. Patients that the file does not list stay as they are."""

    number: fields.PatientNumber = key(
        "The number in your own records; an import updates the patient with this number.", 1
    )
    first_name: fields.PersonName = key("First name.", "Ada")
    last_name: fields.PersonName = key("Last name.", "Lovelace")
    dob: Annotated[fields.Day, AfterValidator(_not_future)] = key("Date of birth.", "1985-12-10")
    phone: fields.PatientPhone = key("Phone number.", "+1 555 010 0199")
    email: fields.Email | None = key("E-mail address.", "ada@example.com", None)
    seen: bool = key("Whether the practice has seen the patient: an existing patient.", True, False)


class FilePart(Part):
    """A practice. What is not listed stays as it is, or becomes inactive with --prune."""

    practice: PracticePart = key(
        "Its names, its time zone and what may be booked.",
        {"slug": "harbor-family", "name": "Harbor Family Medicine", "timeZone": "America/New_York"},
    )
    locations: list[LocationPart] = key("Where patients are seen.", [{"id": 1, "name": "Downtown"}], [])
    providers: list[ProviderPart] = key("Whom patients see.", [{"id": 10, "name": "Dr. Robert Chen"}], [])
    visit_types: list[VisitTypePart] = key("What patients come for.", [{"id": 20, "name": "New patient visit"}], [])
    patients: list[PatientPart] = key(
        "Patients, for a practice that keeps them in frontdesk.",
        [
            {
                "number": 1,
                "firstName": "Ada",
                "lastName": "Lovelace",
                "dob": "1985-12-10",
                "phone": "+1 555 010 0199",
            }
        ],
        [],
    )


# The model at each path, without list indexes.
PARTS: dict[tuple[str, ...], type[Part]] = {
    (): FilePart,
    ("practice",): PracticePart,
    ("practice", "schedulingSystem"): SchedulingSystemPart,
    ("practice", "consent"): ConsentPart,
    ("practice", "features"): FeaturesPart,
    **{("practice", "features", to_camel(name)): part for name, part in FEATURE_PARTS.items()},
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
