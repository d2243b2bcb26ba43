"""Appointment resources to appointments, without a server: what servers leave out, spell oddly, or mean."""

from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.systems.fhir.resources.appointments import Facts, PracticeMap
from frontdesk.systems.fhir.resources.elements import instant, minute, relative, with_identifier
from frontdesk.systems.fhir.resources.refusals import DECLINED, refusal_reason
from tests.fhir.practice import VISITS

Resource = dict[str, Any]
NOT_SUPPORTED = "The scheduling system does not support this."


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
        (f"Practitioner/long_{'x' * 95}", f"Practitioner/long_{'x' * 95}"),
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


@pytest.mark.parametrize(
    ("issues", "reason"),
    [
        ([{"severity": "error", "code": "not-supported"}], NOT_SUPPORTED),
        ([{"code": "required", "diagnostics": "Ada"}], "The scheduling system found a value missing or invalid."),
        ([{"severity": "error", "code": "Ada"}], DECLINED),
        ([{"severity": "error", "code": ["Ada"]}, {"severity": "fatal", "code": "not-supported"}], NOT_SUPPORTED),
        ([{"severity": "warning", "code": "duplicate"}, {"severity": "error", "code": "not-supported"}], NOT_SUPPORTED),
        ([{"severity": "information", "code": "duplicate"}], ""),
        (None, ""),
    ],
)
def test_a_refusal_is_explained_by_the_first_known_code(issues: Any, reason: str) -> None:
    assert refusal_reason({"resourceType": "OperationOutcome", "issue": issues}) == reason
    assert refusal_reason(None) == ""
