"""Resources to records and back, without a server: what servers leave out, spell oddly, or mean."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.practice_file import parse
from frontdesk.systems.fhir.capabilities import capabilities
from frontdesk.systems.fhir.mapping import Facts, PracticeMap
from frontdesk.systems.fhir.people import changed_patient, differs, is_same, new_patient, person
from frontdesk.systems.fhir.resources import (
    instant,
    minute,
    outcome_text,
    redacted,
    relative,
    version_of,
    with_identifier,
)
from frontdesk.systems.fhir.settings import Coding, fhir_settings
from frontdesk.systems.fhir.slots import Slot, fits, open_runs, schedules, slot
from frontdesk.systems.port import patient_data
from tests.fhir.practice import VISITS, file_text

Resource = dict[str, Any]


@pytest.fixture(scope="module")
def practice() -> PracticeMap:
    directory = parse(file_text("harbor", "https://ehr.example.com/fhir")).directory
    settings = fhir_settings(directory.practice.scheduling_system)
    locations = {"Location/downtown": 1, "Location/westside": 2, "Location/former": 1}
    providers = {"Practitioner/chen": 10, "Practitioner/nunez": 11, "Practitioner/okafor": 12}
    return PracticeMap(settings, directory, locations, providers)


def appointment(*actors: str, **members: Any) -> Resource:
    return {
        "resourceType": "Appointment",
        "id": "1",
        "status": "booked",
        "start": "2026-11-16T09:00:00-05:00",
        "end": "2026-11-16T09:15:00.000-05:00",
        "serviceType": [{"coding": [{"system": VISITS, "code": "FU15"}]}],
        "participant": [{"actor": {"reference": actor}, "status": "needs-action"} for actor in actors],
        **members,
    }


EVERYBODY = ("Patient/ada", "Practitioner/chen", "Location/downtown")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Patient/1", "Patient/1"),
        ("https://ehr.example.com/fhir/Patient/a.b-c", "Patient/a.b-c"),
        ("Patient/1/_history/7", "Patient/1"),
        ("#contained", None),
        ("urn:uuid:0c3151bd-1cbf-4d64-b04d-cd9187a4c6e0", None),
        ("patient/1", None),
        (7, None),
    ],
)
def test_a_reference_is_read_however_it_is_spelt(text: Any, expected: str | None) -> None:
    assert relative({"reference": text}) == expected
    assert relative(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-16T14:00:00Z", datetime(2026, 11, 16, 14, tzinfo=UTC)),
        ("2026-11-16T09:00:00.000-05:00", datetime(2026, 11, 16, 14, tzinfo=UTC)),
        ("2026-11-16", None),
        ("2026-11-16T14:00:00", None),
        ("2026-13-16T14:00:00Z", None),
        (None, None),
    ],
)
def test_a_moment_has_a_time_and_an_offset(text: Any, expected: datetime | None) -> None:
    assert instant(text) == expected


def test_a_slot_falls_on_whole_minutes() -> None:
    assert minute("1970-01-02T00:01:00+00:00") == 1441
    assert minute("1970-01-01T00:01:30Z") is None


def test_an_appointment_is_told_in_the_words_of_the_practice_file(practice: PracticeMap) -> None:
    found = practice.appointment(appointment(*EVERYBODY, created="2026-11-01"), "apt_1", "pat_1", Facts())
    assert found is not None
    assert (found.provider_id, found.location_id, found.visit_type_id, found.procedure_id) == (10, 1, 21, 101)
    assert found.starts_at == datetime(2026, 11, 16, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    "resource",
    [
        appointment("Patient/ada", "Location/downtown"),
        appointment("Patient/ada", "Practitioner/stranger", "Location/downtown"),
        appointment("Patient/ada", "Practitioner/chen", "Location/unknown"),
        appointment("Patient/ada", "Practitioner/nunez"),
        appointment(*EVERYBODY, serviceType=[]),
        appointment(*EVERYBODY, status="proposed"),
        appointment(*EVERYBODY, status="entered-in-error"),
        appointment(*EVERYBODY, start=None),
    ],
)
def test_what_has_no_words_is_not_told(practice: PracticeMap, resource: Resource) -> None:
    assert practice.appointment(resource, "apt_1", "pat_1", Facts()) is None


def test_a_provider_of_one_location_is_there(practice: PracticeMap) -> None:
    found = practice.appointment(appointment("Patient/ada", "Practitioner/chen"), "apt_1", "pat_1", Facts())
    assert found is not None
    assert found.location_id == 1


def test_a_former_reference_leads_to_its_id(practice: PracticeMap) -> None:
    resource = appointment("Patient/ada", "Practitioner/chen", "Location/former")
    found = practice.appointment(resource, "apt_1", "pat_1", Facts())
    assert found is not None
    assert found.location_id == 1


def test_a_missing_end_is_the_procedures(practice: PracticeMap) -> None:
    found = practice.appointment(appointment(*EVERYBODY, end=None), "apt_1", "pat_1", Facts())
    assert found is not None
    assert found.ends_at == datetime(2026, 11, 16, 14, 15, tzinfo=UTC)


def test_facts_are_told_only_while_they_hold(practice: PracticeMap) -> None:
    facts = Facts(
        attendance_confirmed_at=datetime(2026, 11, 1, tzinfo=UTC), cancelled_at=datetime(2026, 11, 2, tzinfo=UTC)
    )
    found = practice.appointment(appointment(*EVERYBODY), "apt_1", "pat_1", facts)
    assert found is not None
    assert (found.attendance_confirmed_at, found.cancelled_at) == (None, None)
    reason = {"coding": [{"code": "pat", "display": "Patient"}]}
    resource = appointment(*EVERYBODY, status="cancelled", cancelationReason=reason)
    found = practice.appointment(resource, "apt_1", "pat_1", facts)
    assert found is not None
    assert (found.cancelled_at, found.cancellation_reason) == (facts.cancelled_at, "Patient")


def test_the_last_of_our_identifiers_are_kept_with_all_others() -> None:
    resource: Resource = {"identifier": [{"system": "urn:theirs", "value": "1"}]}
    for number in range(15):
        resource["identifier"] = with_identifier(resource, "urn:ours", str(number))
    assert resource["identifier"][0] == {"system": "urn:theirs", "value": "1"}
    assert [each["value"] for each in resource["identifier"][1:]] == [str(number) for number in range(5, 15)]


def test_a_refusal_is_one_plain_line() -> None:
    issue = [
        {"details": {"text": "a\tb"}},
        {"severity": "fatal", "diagnostics": "c" * 600},
        {"severity": "information", "diagnostics": "d"},
    ]
    text = outcome_text({"resourceType": "OperationOutcome", "issue": issue})
    assert text == "a b " + "c" * 496
    assert outcome_text(None) == ""
    assert redacted("ADA Lovelace, 5", ["Ada", "lovelace", None, "5"]) == "… …, 5"


# People

ADA: Resource = {
    "resourceType": "Patient",
    "id": "ada",
    "name": [
        {"use": "old", "family": "Byron", "given": ["Ada"]},
        {"use": "nickname", "family": "Lovelace", "given": ["Addie"]},
        {"use": "official", "family": "Lovelace", "given": ["Ada", "Augusta"], "text": "Ada Augusta Lovelace"},
    ],
    "telecom": [
        {"system": "phone", "use": "old", "value": "+1 555 010 0100"},
        {"system": "phone", "use": "work", "value": "+1 555 010 0111"},
        {"system": "phone", "use": "mobile", "value": "+1 555 010 0199"},
        {"system": "email", "value": "ada@example.com"},
    ],
    "birthDate": "1985-12-10",
    "maritalStatus": {"text": "Married"},
}
BORN = date(1985, 12, 10)


def test_a_person_is_known_by_the_official_name_and_the_mobile_phone() -> None:
    found = person(ADA, "pat_1", 7, seen=True)
    assert found is not None
    assert (found.first_name, found.last_name, found.phone, found.email) == (
        "Ada",
        "Lovelace",
        "+1 555 010 0199",
        "ada@example.com",
    )


@pytest.mark.parametrize(
    "members", [{"name": []}, {"birthDate": "1985"}, {"birthDate": None}, {"name": [{"text": "Ada"}]}]
)
def test_who_lacks_a_name_or_a_birth_date_is_nobody(members: Resource) -> None:
    assert person({**ADA, **members}, "pat_1", 7, seen=True) is None
    assert not is_same({**ADA, **members}, "Ada", "Lovelace", "0199", BORN)


@pytest.mark.parametrize(
    ("first", "last", "phone", "same"),
    [
        ("ada", "LOVELACE", "555 010 0199", True),
        ("Ada Augusta", "Lovelace", "0199", True),
        ("Addie", "Lovelace", "0111", True),
        ("Ada", "Byron", "0199", True),
        ("Ada", "Lovelace", "555 010 0100", False),
        ("Augusta", "Lovelace", "0199", False),
    ],
)
def test_a_person_is_matched_on_any_name_and_any_phone(first: str, last: str, phone: str, same: bool) -> None:
    assert is_same(ADA, first, last, phone, BORN) is same


@pytest.mark.parametrize("members", [{"active": False}, {"link": [{"type": "replaced-by", "other": {}}]}])
def test_a_record_that_was_merged_or_closed_is_nobody(members: Resource) -> None:
    assert not is_same({**ADA, **members}, "Ada", "Lovelace", "0199", BORN)


def test_a_change_touches_what_was_changed_and_nothing_else() -> None:
    data = patient_data("pat_1", "Ada", "King", BORN, "+1 555 010 0198", "king@example.com")
    changed = changed_patient(ADA, data, "intent")
    assert changed["name"][:2] == ADA["name"][:2]
    assert changed["name"][2] == {"use": "official", "family": "King", "given": ["Ada", "Augusta"]}
    assert [each["value"] for each in changed["telecom"]] == [
        "+1 555 010 0100",
        "+1 555 010 0111",
        "+1 555 010 0198",
        "king@example.com",
    ]
    assert changed["maritalStatus"] == ADA["maritalStatus"]
    assert not differs(changed, data)
    assert differs(ADA, data)


names = st.text(st.characters(categories=("Lu", "Ll", "Nd", "Zs"), include_characters="'-."), min_size=1, max_size=20)
phones = st.from_regex(r"\+1 555 [0-9]{7}", fullmatch=True)
births = st.dates(date(1900, 1, 1), date(2026, 1, 1))


@given(names, names, births, phones, st.none() | st.emails())
def test_whoever_is_created_is_found_again(first: str, last: str, dob: date, phone: str, email: str | None) -> None:
    data = patient_data("pat_1", first, last, dob, phone, email)
    created = new_patient(data, "intent")
    assert not differs(created, data)
    assert is_same(created, first, last, phone, dob)
    found = person(created, "pat_1", 1, seen=False)
    assert found is not None
    assert (found.first_name, found.last_name, found.dob, found.phone, found.email) == (first, last, dob, phone, email)


# Slots


def at(
    start: int, end: int, schedule: str = "Schedule/1", *, free: bool = True, codes: frozenset[str] = frozenset()
) -> Slot:
    return Slot(f"Slot/{schedule[-1]}-{start}-{end}", schedule, start, end, free, codes, {})


def starts(slots: list[Slot], duration: int, held: frozenset[str] = frozenset()) -> list[int]:
    return sorted(start for _, start in open_runs(slots, [Coding("s", "c")], duration, held))


def test_a_run_covers_the_procedure_without_a_gap() -> None:
    slots = [at(0, 15), at(15, 30), at(45, 60), at(60, 75), at(75, 90)]
    assert starts(slots, 15) == [0, 15, 45, 60, 75]
    assert starts(slots, 30) == [0, 45, 60]
    assert starts(slots, 45) == [45]
    assert starts([at(0, 60)], 45) == [0]


def test_a_run_stays_on_one_schedule_and_on_free_slots() -> None:
    assert starts([at(0, 15), at(15, 30, "Schedule/2")], 30) == []
    busy = at(15, 30, free=False)
    assert starts([at(0, 15), busy], 30) == []
    assert starts([at(0, 15), busy], 30, frozenset({busy.reference})) == [0]


def test_a_slot_for_other_services_does_not_count() -> None:
    assert starts([at(0, 15, codes=frozenset({"s|other"}))], 15) == []
    assert starts([at(0, 15, codes=frozenset({"s|other", "s|c"}))], 15) == [0]


def test_a_slot_that_somebody_holds_is_not_free() -> None:
    resource: Resource = {
        "resourceType": "Slot",
        "id": "1",
        "schedule": {"reference": "Schedule/1"},
        "status": "free",
        "start": "2026-11-16T14:00:00Z",
        "end": "2026-11-16T14:15:00Z",
    }
    free = slot(resource)
    assert free is not None
    assert free.free
    held = slot({**resource, "identifier": [{"system": "urn:frontdesk:claim", "value": "x"}]})
    assert held is not None
    assert not held.free
    assert slot({**resource, "start": "2026-11-16T14:00:30Z"}) is None
    assert slot({**resource, "end": resource["start"]}) is None


@given(st.sets(st.integers(0, 40), max_size=30), st.integers(1, 5))
def test_what_is_open_is_exactly_what_is_covered(quarters: set[int], length: int) -> None:
    slots = [at(15 * quarter, 15 * quarter + 15) for quarter in quarters]
    expected = [15 * q for q in sorted(quarters) if all(q + more in quarters for more in range(length))]
    assert starts(slots, 15 * length) == expected
    assert starts(slots, 15 * length - 7) == expected


def test_schedules_belong_to_a_provider_at_a_location(practice: PracticeMap) -> None:
    role = {
        "resourceType": "PractitionerRole",
        "id": "r",
        "practitioner": {"reference": "Practitioner/nunez"},
        "location": [{"reference": "Location/westside"}],
    }

    def of(number: int, *actors: str, **members: Any) -> Resource:
        return {
            "resourceType": "Schedule",
            "id": str(number),
            "actor": [{"reference": each} for each in actors],
            **members,
        }

    found = [
        of(1, "Practitioner/chen"),
        of(2, "Practitioner/nunez"),  # who works at two: nobody knows where this is
        of(3, "Practitioner/nunez", "Location/downtown", "HealthcareService/shots"),
        of(4, "PractitionerRole/r"),
        of(5, "Practitioner/chen", "Location/unknown"),
        of(6, "Practitioner/stranger", "Location/downtown"),
        of(7, "Practitioner/chen", "Location/downtown", active=False),
        of(8, "Practitioner/chen", serviceType=[{"coding": [{"system": VISITS, "code": "NEW"}]}]),
    ]
    known = schedules(found, [role], practice)
    assert [(each.reference, each.provider_id, each.location_id) for each in known] == [
        ("Schedule/1", 10, 1),
        ("Schedule/8", 10, 1),
        ("Schedule/3", 11, 1),
        ("Schedule/4", 11, 2),
    ]
    shots, new = practice.services(22, 103), practice.services(20, 100)
    assert [each.reference for each in known if fits(each, shots)] == ["Schedule/1", "Schedule/3", "Schedule/4"]
    assert [each.reference for each in known if fits(each, new)] == ["Schedule/1", "Schedule/8", "Schedule/4"]


# Whatever a server sends

_NAMES = (
    "resourceType", "id", "meta", "versionId", "lastUpdated", "identifier", "system", "value", "status", "start", "end",
    "slot", "schedule", "reference", "participant", "actor", "serviceType", "coding", "code", "cancelationReason",
    "text", "name", "given", "family", "use", "telecom", "rank", "birthDate", "active", "link", "type", "location",
    "tag", "rest", "mode", "resource", "interaction", "issue", "details", "practitioner", "display", "created",
    "software",
)  # fmt: skip
_VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(
        ("Patient/1", "Practitioner/chen", "booked", "free", "2026-11-16T14:00:00Z", "official", "phone", "server", "x")
    )
)
_ANYTHING = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(_NAMES), _ANYTHING))
def test_whatever_a_server_sends_is_read_or_left_alone(practice: PracticeMap, members: Resource) -> None:
    resource = {**members, "resourceType": "Appointment", "id": "1"}
    data = patient_data("pat_1", "Ada", "King", BORN, "+1 555 010 0198", None)
    person(resource, "pat_1", 1, seen=False)
    is_same(resource, "Ada", "King", "0198", BORN)
    changed_patient(resource, data, "intent")
    practice.appointment(resource, "apt_1", "pat_1", Facts())
    practice.cancelled(resource, "reason", "intent")
    practice.confirmed(resource, "intent")
    practice.differs(resource, resource)
    slot(resource)
    schedules([resource], [resource], practice)
    capabilities(resource)
    outcome_text(resource)
    version_of(resource)
