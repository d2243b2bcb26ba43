"""The fields of each kind of record, with their labels."""

from collections.abc import Sequence
from dataclasses import replace

from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.fields import Field
from frontdesk.domain.directory import Practice
from frontdesk.texts import N_

_NAME = Field("name", N_("Name"), required=True, hint=N_("The name that callers hear."))
_NAMES = Field("aliases", N_("Other names"), "names", N_("Other names that callers use, one per line."))
_DEMANDS = (
    ("", N_("As the service requires")),
    ("token", N_("A confirmation by the agent")),
    ("elicitation", N_("A question to the person, reported by the host")),
    ("card", N_("A card that the person confirms, reported by the host")),
    ("staff", N_("A staff member")),
)
_DEMANDS_WITH_LINK = (*_DEMANDS[:-1], ("link", N_("The patient's own link")), _DEMANDS[-1])
_TIMES = (("24h", "14:30"), ("12h", "2:30 PM"))
_DATES = (("dayFirst", N_("23 Nov 2026")), ("monthFirst", N_("Nov 23, 2026")), ("yearFirst", "2026-11-23"))
PHONE_MATCHES = (
    ("ending", N_("fewer than seven digits by the end of the number")),
    ("anywhere", N_("any four digits anywhere in the number")),
)

RULES = (
    Field("name", N_("Name of the practice"), required=True, hint=N_("The name that callers hear.")),
    Field("phone", N_("Phone")),
    Field("timeZone", N_("Time zone"), required=True, hint=N_("Of the practice. Each location has its own.")),
    Field(
        "minimumNoticeMinutes",
        N_("Minimum notice in minutes"),
        "number",
        N_("A time that begins sooner cannot be booked."),
        required=True,
    ),
    Field(
        "bookingHorizonDays",
        N_("Booking horizon in days"),
        "number",
        N_("How many days ahead can be booked."),
        required=True,
    ),
    Field(
        "slotIntervalMinutes",
        N_("Slot interval in minutes"),
        "number",
        N_("Offered times begin at multiples of this, counted from the start of the hours."),
        required=True,
        own_calendar=True,
    ),
    Field("timeFormat", N_("Times in the console"), "choice", required=True, choices=_TIMES),
    Field("dateFormat", N_("Dates in the console"), "choice", required=True, choices=_DATES),
)
AGENT_RULES = (
    Field(
        "patientsPerHour",
        N_("Patients an hour"),
        "number",
        N_("Distinct patients that an agent may read. 0 is unlimited."),
        required=True,
    ),
    Field("patientsPerDay", N_("Patients a day"), "number", N_("0 is unlimited."), required=True),
    Field(
        "matchMisses",
        N_("Failed matches of a person"),
        "number",
        N_("After this many, matching this person is locked for an hour or more. 0 is unlimited."),
        required=True,
    ),
    Field(
        "phoneMatch",
        N_("Phone numbers match"),
        "choice",
        N_("Anywhere, an area code is enough to identify a patient whose name and date of birth are known."),
        required=True,
        choices=PHONE_MATCHES,
    ),
    Field("knownPatientsOnly", N_("Agents see only patients that they matched, created or booked"), "yes_no"),
    Field(
        "writesPerHour",
        N_("Writes of a kind an hour"),
        "number",
        N_("Bookings, cancellations, new patients and so on, each counted by itself. 0 is unlimited."),
        required=True,
    ),
    Field(
        "upcomingPerPatient",
        N_("Upcoming appointments of a patient"),
        "number",
        N_("That an agent may have booked for one patient. 0 is unlimited."),
        required=True,
    ),
    Field("assistants", N_("Staff may connect assistants of their own"), "yes_no"),
)
CONSENT = tuple(
    Field(f"consent.{key}", label, "choice", choices=choices)
    for key, label, choices in (
        ("createPatient", N_("To create a patient"), _DEMANDS),
        ("updatePatient", N_("To change a patient"), _DEMANDS),
        ("bookAppointment", N_("To book an appointment"), _DEMANDS),
        ("cancelAppointment", N_("To cancel an appointment"), _DEMANDS_WITH_LINK),
        ("confirmAttendance", N_("To confirm attendance"), _DEMANDS_WITH_LINK),
        ("rescheduleAppointment", N_("To move an appointment"), _DEMANDS),
    )
)

PROVIDER = (
    _NAME,
    Field("specialty", N_("Specialty")),
    _NAMES,
    Field(
        "capacity",
        N_("Patients at the same time"),
        "number",
        required=True,
        own_calendar=True,
    ),
    Field("acceptsNewPatients", N_("Accepts patients who have not been seen here"), "yes_no"),
)

LOCATION = (
    _NAME,
    _NAMES,
    Field("timeZone", N_("Time zone"), required=True, hint=N_("Hours and closures are in this zone.")),
    Field("phone", N_("Phone")),
    Field("address.line1", N_("Street and number")),
    Field("address.line2", N_("Suite or floor")),
    Field("address.city", N_("City")),
    Field("address.state", N_("State or region")),
    Field("address.postalCode", N_("Postal code")),
    Field("address.country", N_("Country")),
)

VISIT_TYPE = (
    _NAME,
    _NAMES,
    Field(
        "patientKind",
        N_("Who can book it"),
        "choice",
        choices=(("any", N_("All patients")), ("new", N_("New patients")), ("existing", N_("Existing patients"))),
    ),
    Field("description", N_("Description"), "lines", N_("What callers are told about it.")),
)

PROCEDURE = (
    _NAME,
    _NAMES,
    Field("durationMinutes", N_("Duration in minutes"), "number", required=True),
    Field(
        "bufferAfterMinutes",
        N_("Minutes that stay free after it"),
        "number",
        required=True,
        own_calendar=True,
    ),
    Field("description", N_("Description"), "lines", N_("What callers are told about it.")),
)


def fields_for(fields: Sequence[Field], practice: Practice) -> list[Field]:
    """The fields that have an effect in this practice, in the language of the request."""
    return [_shown(field) for field in fields if practice.keeps_own_calendar or not field.own_calendar]


def _shown(field: Field) -> Field:
    return replace(
        field,
        label=_(field.label),
        hint=None if field.hint is None else _(field.hint),
        choices=[(key, _(label)) for key, label in field.choices],
    )
