"""Converts Patient resources to patients and back, without a server."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.systems.changes import PatientDetails
from frontdesk.systems.fhir.resources.patients import changed_patient, differs, is_same, new_patient, parse_patient

Resource = dict[str, Any]


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
    found = parse_patient(ADA, "pat_1", 7, seen=True)
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
    assert parse_patient({**ADA, **members}, "pat_1", 7, seen=True) is None
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


@pytest.mark.parametrize(("first", "same"), [("रीमा", True), ("राम", False), ("रम", False)])
def test_names_that_differ_in_vowel_signs_are_different_people(first: str, same: bool) -> None:
    rima = new_patient(PatientDetails("रीमा", "Lovelace", BORN, "+1 555 010 0199", None), "intent")
    assert is_same(rima, first, "Lovelace", "0199", BORN) is same
    assert differs(rima, PatientDetails(first, "Lovelace", BORN, "+1 555 010 0199", None)) is not same


@pytest.mark.parametrize("members", [{"active": False}, {"link": [{"type": "replaced-by", "other": {}}]}])
def test_a_record_that_was_merged_or_closed_is_nobody(members: Resource) -> None:
    assert not is_same({**ADA, **members}, "Ada", "Lovelace", "0199", BORN)


def test_a_patient_without_a_phone_number_is_changed_without_one() -> None:
    without = {**ADA, "telecom": [{"system": "email", "value": "ada@example.com"}]}
    details = PatientDetails("Ada", "King", BORN, "", "king@example.com")
    changed = changed_patient(without, details, "intent")
    assert changed["telecom"] == [{"system": "email", "value": "king@example.com"}]
    assert not differs(changed, details)
    assert not is_same(ADA, "Ada", "Lovelace", "", BORN), "without a number nobody matches"


def test_a_change_touches_what_was_changed_and_nothing_else() -> None:
    details = PatientDetails("Ada", "King", BORN, "+1 555 010 0198", "king@example.com")
    changed = changed_patient(ADA, details, "intent")
    assert changed["name"][:2] == ADA["name"][:2]
    assert changed["name"][2] == {"use": "official", "family": "King", "given": ["Ada", "Augusta"]}
    assert [each["value"] for each in changed["telecom"]] == [
        "+1 555 010 0100",
        "+1 555 010 0111",
        "+1 555 010 0198",
        "king@example.com",
    ]
    assert changed["maritalStatus"] == ADA["maritalStatus"]
    assert not differs(changed, details)
    assert differs(ADA, details)


names = st.text(st.characters(categories=("Lu", "Ll", "Nd", "Zs"), include_characters="'-."), min_size=1, max_size=20)
phones = st.from_regex(r"\+1 555 [0-9]{7}", fullmatch=True)
births = st.dates(date(1900, 1, 1), date(2026, 1, 1))


@given(names, names, births, phones, st.none() | st.emails())
def test_a_created_patient_is_found_again(first: str, last: str, dob: date, phone: str, email: str | None) -> None:
    details = PatientDetails(first, last, dob, phone, email)
    created = new_patient(details, "intent")
    assert not differs(created, details)
    assert is_same(created, first, last, phone, dob)
    found = parse_patient(created, "pat_1", 1, seen=False)
    assert found is not None
    assert (found.first_name, found.last_name, found.dob, found.phone, found.email) == (first, last, dob, phone, email)
