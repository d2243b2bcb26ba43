"""The fields of each kind of record, with their labels."""

from collections.abc import Sequence

from frontdesk.console.practice_forms.fields import Field
from frontdesk.domain.directory import Practice

_NAME = Field("name", "Name", required=True, hint="The name that callers hear.")
_NAMES = Field("aliases", "Other names", "names", "Other names that callers use, one per line.")
_DEMANDS = (
    ("", "As the service requires"),
    ("token", "A confirmation by the agent"),
    ("elicitation", "A question to the person"),
    ("card", "A card that the person confirms"),
    ("staff", "A staff member"),
)
_TIMES = (("24h", "14:30"), ("12h", "2:30 PM"))
_DATES = (("dayFirst", "23 Nov 2026"), ("monthFirst", "Nov 23, 2026"), ("yearFirst", "2026-11-23"))

RULES = (
    Field("name", "Name of the practice", required=True, hint="The name that callers hear."),
    Field("phone", "Phone"),
    Field("timeZone", "Time zone", required=True, hint="Of the practice. Each location has its own."),
    Field(
        "minimumNoticeMinutes",
        "Minimum notice in minutes",
        "number",
        "A time that begins sooner cannot be booked.",
        required=True,
    ),
    Field(
        "bookingHorizonDays",
        "Booking horizon in days",
        "number",
        "How many days ahead can be booked.",
        required=True,
    ),
    Field(
        "slotIntervalMinutes",
        "Slot interval in minutes",
        "number",
        "Offered times begin at multiples of this, counted from the start of the hours.",
        required=True,
        own_calendar=True,
    ),
    Field("timeFormat", "Times in the console", "choice", required=True, choices=_TIMES),
    Field("dateFormat", "Dates in the console", "choice", required=True, choices=_DATES),
)
AGENT_RULES = (
    Field(
        "patientsPerHour",
        "Patients an hour",
        "number",
        "Distinct patients that an agent may read. 0 is unlimited.",
        required=True,
    ),
    Field("patientsPerDay", "Patients a day", "number", "0 is unlimited.", required=True),
    Field(
        "matchMisses",
        "Failed matches of a person",
        "number",
        "After these, a client can no longer match this person. 0 is unlimited.",
        required=True,
    ),
    Field("knownPatientsOnly", "Agents see only patients that they matched, created or booked", "yes_no"),
    Field("assistants", "Staff may connect assistants of their own", "yes_no"),
)
CONSENT = tuple(
    Field(f"consent.{key}", label, "choice", choices=_DEMANDS)
    for key, label in (
        ("createPatient", "To create a patient"),
        ("updatePatient", "To change a patient"),
        ("bookAppointment", "To book an appointment"),
        ("cancelAppointment", "To cancel an appointment"),
        ("confirmAttendance", "To confirm attendance"),
        ("rescheduleAppointment", "To move an appointment"),
    )
)

PROVIDER = (
    _NAME,
    Field("specialty", "Specialty"),
    _NAMES,
    Field(
        "capacity",
        "Patients at the same time",
        "number",
        required=True,
        own_calendar=True,
    ),
    Field("acceptsNewPatients", "Accepts patients who have not been seen here", "yes_no"),
)

LOCATION = (
    _NAME,
    _NAMES,
    Field("timeZone", "Time zone", required=True, hint="Hours and closures are in this zone."),
    Field("phone", "Phone"),
    Field("address.line1", "Street and number"),
    Field("address.line2", "Suite or floor"),
    Field("address.city", "City"),
    Field("address.state", "State or region"),
    Field("address.postalCode", "Postal code"),
    Field("address.country", "Country"),
)

VISIT_TYPE = (
    _NAME,
    _NAMES,
    Field(
        "patientKind",
        "Who can book it",
        "choice",
        choices=(("any", "All patients"), ("new", "New patients"), ("existing", "Existing patients")),
    ),
    Field("description", "Description", "lines", "What callers are told about it."),
)

PROCEDURE = (
    _NAME,
    _NAMES,
    Field("durationMinutes", "Duration in minutes", "number", required=True),
    Field(
        "bufferAfterMinutes",
        "Minutes that stay free after it",
        "number",
        required=True,
        own_calendar=True,
    ),
    Field("description", "Description", "lines", "What callers are told about it."),
)


def fields_for(fields: Sequence[Field], practice: Practice) -> list[Field]:
    """Those that have an effect in this practice."""
    return [field for field in fields if practice.keeps_own_calendar or not field.own_calendar]
