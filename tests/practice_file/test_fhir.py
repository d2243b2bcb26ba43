"""The settings of a FHIR scheduling system: what is accepted, and how every error is named."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.practice_file import PracticeFileError, dump, parse
from tests.support.properties import examples

REST = """
locations: [{id: 1, name: Downtown}, {id: 2, name: Westside}]
providers: [{id: 10, name: Dr. Chen, hours: [{location: 1, days: [mon], from: "09:00", to: "12:00"}]}]
visitTypes: [{id: 20, name: Exam, procedures: [{id: 100, name: Exam, durationMinutes: 15}]}]
"""
SETTINGS: dict[str, Any] = {
    "kind": "fhir",
    "baseUrl": "https://ehr.example.com/fhir/r4",
    "locations": {"1": "Location/abc", "2": "Location/def"},
    "providers": {"10": "Practitioner/chen.1"},
}


def text(rest: str = REST, /, **settings: Any) -> str:
    system = {key: value for key, value in {**SETTINGS, **settings}.items() if value is not ...}
    practice = {"slug": "a", "name": "A", "timeZone": "UTC", "schedulingSystem": system}
    return yaml.safe_dump({"practice": practice}) + rest


def errors(rest: str = REST, /, known: Any = None, **settings: Any) -> dict[str, str]:
    with pytest.raises(PracticeFileError) as caught:
        parse(text(rest, **settings), known=known)
    place = "practice.schedulingSystem."
    return {error.path.removeprefix(place): error.message for error in caught.value.errors}


AUTHS = [
    {"kind": "none"},
    {"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"},
    {
        "kind": "clientCredentials",
        "tokenUrl": "https://login.example.com/token",
        "clientId": "front desk",
        "clientSecretEnv": "HARBOR_SECRET",
        "scope": "system/*.read",
    },
    {
        "kind": "smartBackend",
        "tokenUrl": "https://login.example.com/token",
        "clientId": "frontdesk",
        "privateKeyFile": "/etc/frontdesk/harbor.pem",
        "keyId": "2026",
        "scope": "system/Appointment.cruds system/Patient.cruds",
    },
]


@pytest.mark.parametrize("auth", AUTHS, ids=lambda auth: str(auth["kind"]))
def test_settings_are_kept_and_written_back_as_they_are(auth: dict[str, str]) -> None:
    settings = {
        "auth": auth,
        "visitTypes": {"20": {"system": "http://example.com/visits", "code": "NEW"}},
        "procedures": {"100": "HealthcareService/exam"},
        "attendance": {"system": "urn:example:tags", "code": "confirmed"},
        "timeoutSeconds": 5,
        "maxConcurrent": 4,
        "schedulingOperations": "medplum",
    }
    file = parse(text(**settings))
    assert file.directory.practice.scheduling_system == {**SETTINGS, **settings}
    assert parse(dump(file)) == file


def test_every_location_and_provider_needs_its_upstream_record() -> None:
    assert errors(locations={"1": "Location/abc"}, providers=...) == {
        "locations": "the location with the id 2 needs its upstream reference",
        "providers": "the provider with the id 10 needs its upstream reference",
    }


def test_an_id_that_names_nothing_is_an_error() -> None:
    found = errors(
        providers={"10": "Practitioner/a", "11": "Practitioner/b"},
        procedures={"7": "HealthcareService/x"},
        visitTypes={"first": "HealthcareService/y"},
    )
    assert found == {
        "providers.11": "there is no provider with this id",
        "procedures.7": "there is no procedure with this id",
        "visitTypes.first": "must be the id of a record of this file",
    }


def test_a_stored_record_that_stays_active_needs_its_upstream_record_too() -> None:
    known = parse(text()).directory
    more = replace(known, providers={**known.providers, 12: replace(known.providers[10], id=12)})
    message = "the provider with the id 12, which is not in the file and stays active, needs its upstream reference"
    assert errors(known=more) == {"providers": message}
    parse(text(providers={"10": "Practitioner/chen.1", "12": "Practitioner/okafor"}), known=more)
    gone = replace(more, providers={**known.providers, 12: replace(known.providers[10], id=12, active=False)})
    parse(text(), known=gone)


def test_two_ids_never_share_an_upstream_record() -> None:
    assert errors(locations={"1": "Location/abc", "2": "Location/abc"}) == {
        "locations.2": "this upstream record is already used in this mapping"
    }


def test_an_upstream_record_keeps_the_id_it_had_but_an_id_may_get_another_record() -> None:
    known = parse(text()).directory
    moved = {"1": "Location/def", "2": "Location/abc"}
    message = "this upstream record is known as the location with the id {}"
    assert errors(locations=moved, known=known) == {"locations.1": message.format(2), "locations.2": message.format(1)}
    parse(text(locations={"1": "Location/corrected", "2": "Location/def"}), known=known)


def test_a_mistyped_key_gets_the_closest_known_one() -> None:
    found = errors(
        auth={"kind": "bearer", "token": "secret"},
        visitTypes={"20": {"system": "urn:x:y", "cod": "1"}},
        base_url="https://x",
        baseUrl=...,
    )
    assert found == {
        "auth.token": "unknown key; the closest known key is tokenEnv",
        "auth.tokenEnv": "is required",
        "visitTypes.20.cod": "unknown key; the closest known key is code",
        "visitTypes.20.code": "is required",
        "base_url": "unknown key; the closest known key is baseUrl",
        "baseUrl": "is required",
    }


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ehr.example.com/fhir", "must be an address like https://ehr.example.com/fhir"),
        ("https://", "must be an address like https://ehr.example.com/fhir"),
        ("https://[::1", "must be an address like https://ehr.example.com/fhir"),
        ("https://ehr.example.com:port/", "must be an address like https://ehr.example.com/fhir"),
        ("https://user:secret@ehr.example.com/fhir", "must not contain a user name, a query or a fragment"),
        ("https://ehr.example.com/fhir?tenant=1", "must not contain a user name, a query or a fragment"),
        ("http://ehr.example.com/fhir", "must begin with https://"),
    ],
)
def test_an_address_is_absolute_and_encrypted(address: str, message: str) -> None:
    assert errors(baseUrl=address) == {"baseUrl": message}


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:9000"])
def test_an_address_on_this_machine_needs_no_encryption(host: str) -> None:
    practice = parse(text(baseUrl=f"http://{host}/fhir")).directory.practice
    assert practice.scheduling_system["baseUrl"] == f"http://{host}/fhir"


def test_a_secret_is_named_and_never_written() -> None:
    message = "must be the name of an environment variable, in capitals, not beginning with FRONTDESK_"
    for value in ("ey.abc.def", "FRONTDESK_TOKEN", "lower"):
        assert errors(auth={"kind": "bearer", "tokenEnv": value}) == {"auth.tokenEnv": message}


def test_patients_are_kept_in_the_scheduling_system() -> None:
    person = "{number: 1, firstName: A, lastName: B, dob: 1980-01-01, phone: 5550100199}"
    found = errors(REST + f"patients: [{person}]")
    assert found == {"patients": "the patients of this practice are kept in its scheduling system"}


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        (7, "must be a mapping of keys to values"),
        ({}, "kind is required"),
        ({"kind": "basic"}, "its kind must be one of 'none', 'bearer', 'clientCredentials', 'smartBackend'"),
    ],
)
def test_credentials_are_of_a_known_kind(auth: Any, message: str) -> None:
    assert errors(auth=auth) == {"auth": message}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=9), inner, max_size=2),
    max_leaves=4,
)


@examples()
@given(st.dictionaries(st.sampled_from(["baseUrl", "auth", "locations", "providers", "visitTypes"]), anything))
def test_whatever_stands_there_is_read_or_named(settings: dict[str, Any]) -> None:
    with suppress(PracticeFileError):  # whatever else is raised is an error of ours
        parse(text(**settings))


def test_the_documented_example_is_a_practice_file() -> None:
    page = (Path(__file__).parents[2] / "docs" / "users" / "fhir.md").read_text()
    file = parse(page.split("```yaml\n")[1].split("```")[0])
    assert file.directory.practice.scheduling_system["kind"] == "fhir"
