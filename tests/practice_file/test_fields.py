"""Fields: each value of a practice file has its rule, and each key its place."""

from datetime import date

import pytest

from frontdesk.practice_file import PracticeFileError, parse

PRACTICE = "practice: {slug: demo, name: Demo, timeZone: America/New_York}\n"
PROCEDURE = "visitTypes: [{id: 20, name: Exam, procedures: [{id: 100, name: Exam, durationMinutes: 15}]}]\n"
LOCATION = "locations: [{id: 1, name: Downtown}]\n"


def errors(text: str, *, today: date | None = None) -> list[tuple[str, str]]:
    with pytest.raises(PracticeFileError) as caught:
        parse(text, today=today)
    return [(error.path, error.message) for error in caught.value.errors]


def patient(**changes: str) -> str:
    row = {"number": "1", "firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "'5550100199'"}
    entries = ", ".join(f"{key}: {value}" for key, value in (row | changes).items())
    return PRACTICE + f"patients: [{{{entries}}}]\n"


def provider(entries: str) -> str:
    return PRACTICE + LOCATION + PROCEDURE + f"providers: [{{id: 10, name: Dr. Chen, {entries}}}]\n"


def hours(entries: str) -> str:
    return provider(f"hours: [{{location: 1, days: [mon], {entries}}}]")


def visit(entries: str) -> str:
    return PRACTICE + f"visitTypes: [{{id: 20, name: Exam, {entries}}}]\n"


@pytest.mark.parametrize(
    ("text", "path", "closest"),
    [
        (PRACTICE + "provider: []", "provider", "providers"),
        (PRACTICE + "visit_types: []", "visit_types", "visitTypes"),
        (PRACTICE + "locations: [{id: 1, name: A, timezone: UTC}]", "locations[0].timezone", "timeZone"),
        (PRACTICE + "locations: [{id: 1, name: A, alias: [B]}]", "locations[0].alias", "aliases"),
        (provider("acceptNewPatients: false"), "providers[0].acceptNewPatients", "acceptsNewPatients"),
        (hours("from: 09:00, to: 10:00, effective_form: x"), "providers[0].hours[0].effective_form", "effectiveFrom"),
        (
            provider("timeOff: [{from: 2026-01-01T00:00, to: 2026-01-02T00:00, reasn: x}]"),
            "providers[0].timeOff[0].reasn",
            "reason",
        ),
        (visit("patientType: new"), "visitTypes[0].patientType", "patientKind"),
        (
            visit("procedures: [{id: 1, name: A, durationMinutes: 5, duration: 5}]"),
            "visitTypes[0].procedures[0].duration",
            "durationMinutes",
        ),
        (patient(fristName="x"), "patients[0].fristName", "firstName"),
    ],
)
def test_an_unknown_key_names_the_closest_known_one(text: str, path: str, closest: str) -> None:
    assert errors(text) == [(path, f"unknown key; the closest known key is {closest}")]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("practice: demo", "practice", "must be a mapping of keys to values"),
        (PRACTICE + "locations: {id: 1}", "locations", "must be a list"),
        (PRACTICE + "locations: [Downtown]", "locations[0]", "must be a mapping of keys to values"),
        (PRACTICE + "locations: [{id: '1', name: A}]", "locations[0].id", "must be a whole number"),
        (PRACTICE + "locations: [{id: 1.0, name: A}]", "locations[0].id", "must be a whole number"),
        (PRACTICE + "locations: [{id: true, name: A}]", "locations[0].id", "must be a whole number"),
        (PRACTICE + "locations: [{id: 1, name: 7}]", "locations[0].name", "must be text; put it in quotes"),
        (PRACTICE + "locations: [{id: 1, name: true}]", "locations[0].name", "must be text; put it in quotes"),
        (PRACTICE + "locations: [{id: 1, name: [A]}]", "locations[0].name", "must be text"),
        (PRACTICE + "locations: [{id: 1, name: A, aliases: B}]", "locations[0].aliases", "must be a list"),
        (PRACTICE + "locations: [{id: 1, name: A, aliases: [B, ~]}]", "locations[0].aliases[1]", "must be text"),
        (PRACTICE + "locations: [{id: 1, name: ~}]", "locations[0].name", "is required"),
        (provider("acceptsNewPatients: yes"), "providers[0].acceptsNewPatients", "must be true or false"),
        (provider("acceptsNewPatients: 1"), "providers[0].acceptsNewPatients", "must be true or false"),
        (provider("capacity: one"), "providers[0].capacity", "must be a whole number"),
        (visit("patientKind: both"), "visitTypes[0].patientKind", "must be 'new', 'existing' or 'any'"),
        (hours("from: 9:00, to: 10:00"), "providers[0].hours[0].from", "must be a time like 09:00"),
        (hours("from: 540, to: 10:00"), "providers[0].hours[0].from", "must be a time like 09:00"),
        (hours("from: 24:00, to: 24:00"), "providers[0].hours[0].from", "must be a time like 09:00"),
        (hours("from: 09:00, to: 24:01"), "providers[0].hours[0].to", "must be a time like 09:00"),
        (hours("from: 09:60, to: 24:00"), "providers[0].hours[0].from", "must be a time like 09:00"),
        (patient(dob="1985-12-10T00:00"), "patients[0].dob", "must be a date like 2026-12-25"),
        (patient(dob="19851210"), "patients[0].dob", "must be a date like 2026-12-25"),
        (patient(email="ada"), "patients[0].email", "must be an e-mail address"),
        (patient(seen="1"), "patients[0].seen", "must be true or false"),
    ],
)
def test_a_wrong_type_or_format_is_an_error(text: str, path: str, message: str) -> None:
    assert errors(text) == [(path, message)]


@pytest.mark.parametrize("slug", ["a", "a-b", "0", "a" * 63, "harbor-family"])
def test_good_slugs(slug: str) -> None:
    assert parse(f"practice: {{slug: '{slug}', name: A, timeZone: UTC}}").directory.practice.slug == slug


@pytest.mark.parametrize("slug", ["-a", "a-", "A", "a_b", "a" * 64, "", "é", "a\\n"])
def test_bad_slugs(slug: str) -> None:
    ((path, _),) = errors(f'practice: {{slug: "{slug}", name: A, timeZone: UTC}}')
    assert path == "practice.slug"


@pytest.mark.parametrize("zone", ["EST6", "America", "../etc/passwd", "america/new_york", "localtime", "", "UTC+1"])
def test_bad_time_zones(zone: str) -> None:
    message = "must be an IANA time zone like America/New_York"
    assert errors(f"practice: {{slug: a, name: A, timeZone: '{zone}'}}") == [("practice.timeZone", message)]
    assert errors(PRACTICE + f"locations: [{{id: 1, name: A, timeZone: '{zone}'}}]") == [
        ("locations[0].timeZone", message)
    ]


@pytest.mark.parametrize(
    ("minimum", "maximum", "text", "path"),
    [
        (
            0,
            525600,
            "practice: {slug: a, name: A, timeZone: UTC, minimumNoticeMinutes: %d}",
            "practice.minimumNoticeMinutes",
        ),
        (1, 730, "practice: {slug: a, name: A, timeZone: UTC, bookingHorizonDays: %d}", "practice.bookingHorizonDays"),
        (
            1,
            1440,
            "practice: {slug: a, name: A, timeZone: UTC, slotIntervalMinutes: %d}",
            "practice.slotIntervalMinutes",
        ),
        (1, 2**31 - 1, PRACTICE + "locations: [{id: %d, name: A}]", "locations[0].id"),
        (1, 2_000_000_000, patient(number="%d"), "patients[0].number"),
        (1, 100, PRACTICE + "providers: [{id: 1, name: A, capacity: %d}]", "providers[0].capacity"),
        (
            1,
            1440,
            PRACTICE + "visitTypes: [{id: 1, name: A, procedures: [{id: 1, name: A, durationMinutes: %d}]}]",
            "visitTypes[0].procedures[0].durationMinutes",
        ),
        (
            0,
            1440,
            PRACTICE + "visitTypes: [{id: 1, name: A, procedures: [{id: 1, name: A, durationMinutes: 5,"
            " bufferAfterMinutes: %d}]}]",
            "visitTypes[0].procedures[0].bufferAfterMinutes",
        ),
    ],
)
def test_numbers_have_limits(minimum: int, maximum: int, text: str, path: str) -> None:
    parse(text % minimum)
    parse(text % maximum)
    message = f"must be from {minimum} to {maximum}"
    assert errors(text % (minimum - 1)) == [(path, message)]
    assert errors(text % (maximum + 1)) == [(path, message)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("''", "must not be blank"),
        ("'  '", "must not be blank"),
        ("'" + "a" * 101 + "'", "must be at most 100 characters long"),
        ('"a\\0b"', "must not contain control characters"),
        ('"a\\nb"', "must not contain control characters"),
        ('"a\\x85b"', "must not contain control characters"),
        ('"a\\u202Eb"', "must not contain invisible or direction-changing characters"),
        ('"a\\U000E0041b"', "must not contain invisible or direction-changing characters"),
    ],
)
def test_names_are_short_visible_text(name: str, message: str) -> None:
    parse(PRACTICE + f"locations: [{{id: 1, name: {'é' * 100}, aliases: [👩‍⚕️]}}]")
    assert errors(PRACTICE + f"locations: [{{id: 1, name: {name}}}]") == [("locations[0].name", message)]
    assert errors(PRACTICE + f"locations: [{{id: 1, name: A, aliases: [B, {name}]}}]") == [
        ("locations[0].aliases[1]", message)
    ]
    assert errors(patient(lastName=name)) == [("patients[0].lastName", message)]


def test_a_patient_s_name_has_a_letter() -> None:
    assert errors(patient(lastName="'...'")) == [("patients[0].lastName", "must contain a letter")]
    parse(PRACTICE + "locations: [{id: 1, name: '42'}]")


def test_phones_are_short_and_have_enough_digits() -> None:
    assert parse(PRACTICE + "locations: [{id: 1, name: A, phone: '0199'}]").directory.locations[1].phone == "0199"
    path, digits = "locations[0].phone", "must contain 4 to 15 digits"
    assert errors(PRACTICE + "locations: [{id: 1, name: A, phone: '019'}]") == [(path, digits)]
    assert errors(PRACTICE + "locations: [{id: 1, name: A, phone: '1234567890123456'}]") == [(path, digits)]
    long = "1-2-3-4-5-6-7-8-9-0            ext. 1"
    assert errors(PRACTICE + f"locations: [{{id: 1, name: A, phone: {long}}}]") == [
        (path, "must be at most 32 characters long")
    ]
    assert parse(patient(phone="555 0100")).patients[0].phone == "555 0100"
    assert errors(patient(phone="555 010")) == [("patients[0].phone", "must contain 7 to 15 digits")]


def test_an_address_needs_all_but_its_second_line() -> None:
    text = PRACTICE + "locations: [{id: 1, name: A, address: {line2: Floor 2, city: Boston}}]"
    missing = ["line1", "state", "postalCode", "country"]
    assert errors(text) == [(f"locations[0].address.{part}", "is required") for part in missing]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (hours("from: 09:00, to: 09:00"), "providers[0].hours[0].to", "must be after from"),
        (hours("from: 09:00, to: 00:00"), "providers[0].hours[0].to", "must be after from"),
        (
            hours("from: 09:00, to: 10:00, effectiveFrom: 2026-02-01, effectiveTo: 2026-01-31"),
            "providers[0].hours[0].effectiveTo",
            "must not be before effectiveFrom",
        ),
        (
            provider("hours: [{location: 1, days: [], from: 09:00, to: 10:00}]"),
            "providers[0].hours[0].days",
            "must name at least one day",
        ),
        (
            provider("timeOff: [{from: 2026-12-24T12:00, to: 2026-12-24T12:00}]"),
            "providers[0].timeOff[0].to",
            "must be after from",
        ),
        (
            PRACTICE + "locations: [{id: 1, name: A, closures: [{from: 2026-12-26, to: 2026-12-25}]}]",
            "locations[0].closures[0].to",
            "must not be before from",
        ),
    ],
)
def test_an_end_before_its_beginning_is_an_error_of_the_end(text: str, path: str, message: str) -> None:
    assert errors(text) == [(path, message)]


def test_one_day_closures_and_one_day_effects_are_fine() -> None:
    parse(PRACTICE + "locations: [{id: 1, name: A, closures: [{from: 2026-12-25, to: 2026-12-25}]}]")
    parse(hours("from: 23:59, to: 24:00, effectiveFrom: 2026-02-01, effectiveTo: 2026-02-01"))


@pytest.mark.parametrize(
    "moment",
    ["2026-12-24", "2026-12-24T12:00Z", "2026-12-24T12:00+01:00", "2026-12-24T12:00:30", "2026-12-24T24:00", "noon"],
)
def test_time_off_is_local_to_the_minute_without_an_offset(moment: str) -> None:
    message = "must be a local date and time like 2026-12-24T12:00, without an offset"
    text = provider(f"timeOff: [{{from: '{moment}', to: 2027-01-01T00:00}}]")
    assert errors(text) == [("providers[0].timeOff[0].from", message)]


def test_time_off_on_a_day_that_does_not_exist_is_an_error() -> None:
    text = provider("timeOff: [{from: 2026-02-28T00:00, to: 2026-02-30T00:00}]")
    assert errors(text) == [("providers[0].timeOff[0].to", "must be a date and time that exist")]


def test_a_birth_in_the_future_is_an_error_once_today_is_given() -> None:
    text = patient(dob="2026-11-16")
    assert parse(text).patients[0].dob == date(2026, 11, 16)
    assert parse(text, today=date(2026, 11, 16)).patients[0].dob == date(2026, 11, 16)
    assert errors(text, today=date(2026, 11, 15)) == [("patients[0].dob", "must not be in the future")]
