"""Putting patients on file and changing them."""

import json
from typing import Any

import asyncpg
import httpx
import pytest

from frontdesk.systems.changes import Change
from frontdesk.systems.native.system import NativeSystem
from tests.doors.mcp_speech import call
from tests.support.world import World, confirmed, patient_id

MARY = {"firstName": "Mary", "lastName": "Seacole", "phone": "+1 555 010 0111", "dob": "1980-05-14"}


@pytest.fixture
async def integration(world: World) -> httpx.AsyncClient:
    return await world.client(grant="integration")


async def test_a_created_patient_is_new_and_has_the_next_number(integration: httpx.AsyncClient) -> None:
    answer = await integration.post("/api/patients", json={**MARY, "email": "mary@example.com"})
    assert answer.status_code == 201
    patient = (await integration.get(f"/api/patients/{answer.json()['patientId']}")).json()
    assert patient == {
        "id": answer.json()["patientId"],
        "number": 5,
        "firstName": "Mary",
        "lastName": "Seacole",
        "dob": "1980-05-14",
        "phone": "+1 555 010 0111",
        "email": "mary@example.com",
        "patientKind": "new",
    }


async def test_a_patient_who_is_on_file_is_a_conflict(integration: httpx.AsyncClient) -> None:
    ada = {"firstName": "ADA", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
    answer = await integration.post("/api/patients", json=ada)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_the_read_back_of_a_new_patient_is_what_will_be_written(world: World) -> None:
    agent = await world.client()
    challenge = await agent.post("/api/patients", json={**MARY, "email": None})
    assert challenge.json()["readBack"] == MARY
    assert (await confirmed(agent, "POST", "/api/patients", MARY)).status_code == 201


@pytest.mark.parametrize(
    ("change", "status", "field", "rule"),
    [
        ({"firstName": " "}, 422, "firstName", "notBlank"),
        ({"lastName": "x" * 101}, 422, "lastName", "maxLength"),
        ({"firstName": "a\u0007"}, 422, "firstName", "characters"),
        ({"lastName": "-'."}, 422, "lastName", "characters"),
        ({"phone": "555 010"}, 422, "phone", "minDigits"),
        ({"phone": "1" * 16}, 422, "phone", "maxLength"),
        ({"phone": "1234567" + " " * 26}, 422, "phone", "maxLength"),
        ({"dob": "2026-11-16"}, 422, "dob", "notFuture"),
        ({"dob": "1980-05-14T00:00:00"}, 400, "dob", "Binding"),
        ({"dob": "1980-02-30"}, 400, "dob", "Binding"),
        ({"dob": 19800514}, 400, "dob", "Binding"),
        ({"email": "nobody"}, 400, "email", "Binding"),
        ({"firstName": None}, 422, "firstName", "required"),
        ({"patientId": "pat_1"}, 422, "patientId", "unknown"),
    ],
)
async def test_the_fields_of_a_new_patient_keep_their_rules(
    integration: httpx.AsyncClient, change: dict[str, Any], status: int, field: str, rule: str
) -> None:
    answer = await integration.post("/api/patients", json={**MARY, **change})
    assert answer.status_code == status
    assert [(e["field"], e["rule"]) for e in answer.json()["errors"]] == [(field, rule)]


@pytest.mark.parametrize("field", ["firstName", "lastName", "phone", "email"])
async def test_a_text_that_is_too_long_is_not_examined(
    integration: httpx.AsyncClient, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examined(_text: str) -> None:
        raise AssertionError("the text is examined")

    for name in ("character_error", "has_letter", "digits"):
        monkeypatch.setattr(f"frontdesk.operations._fields.{name}", examined)
    answer = await integration.post("/api/patients", json={field: "\ufdfa" * 21_000})
    assert (field, "maxLength") in [(e["field"], e["rule"]) for e in answer.json()["errors"]]


async def test_someone_born_today_at_the_practice_may_be_put_on_file(integration: httpx.AsyncClient) -> None:
    assert (await integration.post("/api/patients", json={**MARY, "dob": "2026-11-15"})).status_code == 201


async def test_unicode_names_are_kept_as_written(integration: httpx.AsyncClient) -> None:
    made = (
        await integration.post("/api/patients", json={**MARY, "firstName": "Zoë", "lastName": "Ng’ang’a 李"})
    ).json()
    patient = (await integration.get(f"/api/patients/{made['patientId']}")).json()
    assert (patient["firstName"], patient["lastName"]) == ("Zoë", "Ng’ang’a 李")


async def test_an_update_changes_only_what_it_names(integration: httpx.AsyncClient) -> None:
    grace = await patient_id(integration, "Grace")
    answer = await integration.patch(f"/api/patients/{grace}", json={"phone": "+1 555 010 0143"})
    assert (answer.status_code, answer.json()) == (200, {"patientId": grace})
    patient = (await integration.get(f"/api/patients/{grace}")).json()
    assert (patient["phone"], patient["firstName"], patient["email"]) == (
        "+1 555 010 0143",
        "Grace",
        "grace@example.com",
    )
    found = {"firstName": "Grace", "lastName": "Hopper", "dob": "1986-12-09", "phone": "0143"}
    assert (await integration.post("/api/patients/match", json=found)).status_code == 200


async def test_the_read_back_of_an_update_is_what_will_be_written(world: World) -> None:
    agent = await world.client()
    grace = await patient_id(agent, "Grace")
    challenge = await agent.patch(f"/api/patients/{grace}", json={"lastName": "Murray"})
    assert challenge.json()["readBack"] == {
        "patientId": grace,
        "firstName": "Grace",
        "lastName": "Murray",
        "previousLastName": "Hopper",
    }


async def test_an_update_without_a_field_is_refused(integration: httpx.AsyncClient) -> None:
    grace = await patient_id(integration, "Grace")
    for body in ({}, {"phone": None}, {"confirmationToken": "0" * 32}):
        answer = await integration.patch(f"/api/patients/{grace}", json=body)
        assert answer.status_code == 422
        assert [(e["field"], e["rule"]) for e in answer.json()["errors"]] == [("$", "required")]


async def test_an_update_into_another_patient_is_a_conflict(integration: httpx.AsyncClient) -> None:
    grace = await patient_id(integration, "Grace")
    ada = {"firstName": "Ada", "lastName": "Lovelace", "phone": "+1 555 010 0199", "dob": "1985-12-10"}
    answer = await integration.patch(f"/api/patients/{grace}", json=ada)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_an_unknown_patient_cannot_be_updated(integration: httpx.AsyncClient) -> None:
    for patient in ("pat_" + "0" * 22, "nobody"):
        answer = await integration.patch(f"/api/patients/{patient}", json={"firstName": "X"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_an_e_mail_of_null_removes_it(world: World) -> None:
    agent = await world.client()
    grace = await patient_id(agent, "Grace")
    path = f"/api/patients/{grace}"
    assert (await agent.get(path)).json()["email"] == "grace@example.com"
    challenge = (await agent.patch(path, json={"email": None})).json()
    assert challenge["readBack"] == {"patientId": grace, "firstName": "Grace", "lastName": "Hopper", "email": None}
    token = {"confirmationToken": challenge["confirmationToken"]}
    other = await agent.patch(path, json={"phone": "+1 555 010 0142", **token})
    assert other.json()["code"] == "confirmation_mismatch"
    assert (await agent.patch(path, json=token)).json()["code"] == "validation", "not given is not null"
    assert (await agent.patch(path, json={"EMAIL": None, **token})).status_code == 200
    assert "email" not in (await agent.get(path)).json()
    proposed = await call(agent, "update_patient", patientId=grace, email=None)
    assert proposed["structuredContent"]["readBack"]["email"] is None
    created = await confirmed(agent, "POST", "/api/patients", {**MARY, "email": None})
    assert created.status_code == 201, "elsewhere null counts as absent"


async def test_a_duplicate_on_file_matters_only_to_what_patients_are_matched_by(
    integration: httpx.AsyncClient, owner: asyncpg.Connection
) -> None:
    mary = (await integration.post("/api/patients", json=MARY)).json()["patientId"]
    other = await integration.post("/api/patients", json={**MARY, "phone": "+1 555 010 0112"})
    await owner.execute(
        "UPDATE frontdesk.patient SET phone = $2, phone_digits = '15550100111' WHERE patient_id = $1",
        other.json()["patientId"],
        MARY["phone"],
    )
    changed = await integration.patch(f"/api/patients/{mary}", json={**MARY, "email": "mary@example.com"})
    assert changed.status_code == 200, changed.text
    for change in ({"phone": "555 010 0111"}, {"firstName": "MARY"}):
        refused = await integration.patch(f"/api/patients/{mary}", json=change)
        assert refused.json()["code"] == "conflict"


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Łukasz Sørensen", "Lukasz Sorensen"),
        ("Guðrún Þórsdóttir", "Gudrun Thorsdottir"),
        ("Işık Æbelø", "Isik Aebelo"),
    ],
)
async def test_letters_match_their_usual_transcription(
    integration: httpx.AsyncClient, written: str, asked: str
) -> None:
    (first, last), (first_asked, last_asked) = written.split(), asked.split()
    made = await integration.post("/api/patients", json={**MARY, "firstName": first, "lastName": last})
    for names in ((first, last), (first_asked, last_asked)):
        person = {**MARY, "firstName": names[0], "lastName": names[1]}
        found = await integration.post("/api/patients/match", json=person)
        assert [item["id"] for item in found.json()["items"]] == [made.json()["patientId"]]
        assert (await integration.post("/api/patients", json=person)).json()["code"] == "conflict"


async def test_names_that_differ_in_vowel_signs_are_different_people(integration: httpx.AsyncClient) -> None:
    created = {}
    for first_name in ("राम", "रीमा", "がな", "かな"):
        person = {**MARY, "firstName": first_name}
        made = await integration.post("/api/patients", json=person)
        assert made.status_code == 201, made.text
        created[first_name] = made.json()["patientId"]
    for first_name, created_id in created.items():
        found = await integration.post("/api/patients/match", json={**MARY, "firstName": first_name})
        assert [item["id"] for item in found.json()["items"]] == [created_id]


async def test_a_changed_name_is_a_conflict_only_if_it_is_that_of_another(integration: httpx.AsyncClient) -> None:
    await integration.post("/api/patients", json={**MARY, "firstName": "राम"})
    made = await integration.post("/api/patients", json=MARY)
    path = f"/api/patients/{made.json()['patientId']}"
    assert (await integration.patch(path, json={"firstName": "राम"})).json()["code"] == "conflict"
    assert (await integration.patch(path, json={"firstName": "रीमा"})).status_code == 200
    assert (await integration.patch(path, json={"firstName": "रमा"})).status_code == 200


@pytest.mark.parametrize(("new_name", "status_of_retry"), [("राम", 409), ("रमा", 201)])
async def test_a_namesake_who_is_renamed_meanwhile_is_a_conflict(
    world: World, integration: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, new_name: str, status_of_retry: int
) -> None:
    other = (await integration.post("/api/patients", json={**MARY, "firstName": "रीमा"})).json()["patientId"]
    look = NativeSystem._namesakes

    async def look_and_rename(self: NativeSystem, change: Change) -> list[tuple[str, str]]:
        found = await look(self, change)
        async with world.database.transaction(1) as connection:
            await connection.execute("UPDATE patient SET first_name = $2 WHERE patient_id = $1", other, new_name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(NativeSystem, "_namesakes", look_and_rename)
        refused = await integration.post("/api/patients", json={**MARY, "firstName": "राम"})
    assert refused.json()["code"] == "conflict"
    retried = await integration.post("/api/patients", json={**MARY, "firstName": "राम"})
    assert retried.status_code == status_of_retry


async def test_names_are_compared_by_their_spelling_and_stored_with_the_key_of_older_nodes(
    integration: httpx.AsyncClient, owner: asyncpg.Connection
) -> None:
    person = {**MARY, "firstName": "रीमा", "lastName": "Núñez"}
    made = (await integration.post("/api/patients", json=person)).json()["patientId"]
    assert await owner.fetchval("SELECT name_key FROM frontdesk.patient WHERE patient_id = $1", made) == "रम|nunez"
    for first_name, last_name, ids in (("रीमा", "Nunez", [made]), ("राम", "Núñez", []), ("रम", "Núñez", [])):
        asked = {**person, "firstName": first_name, "lastName": last_name}
        found = await integration.post("/api/patients/match", json=asked)
        assert [item["id"] for item in found.json().get("items", [])] == ids
        assert (await integration.post("/api/patients", json=asked)).status_code == (409 if ids else 201)


async def test_namesakes_that_were_found_to_be_different_are_no_duplicates(
    integration: httpx.AsyncClient, owner: asyncpg.Connection
) -> None:
    made = await integration.post("/api/patients", json={**MARY, "firstName": "रीमा"})
    assert made.status_code == 201
    change = {"patientId": "pat_new", "nameKey": "रम|seacole", "dob": MARY["dob"], "phoneDigits": "15550100111"}
    rima, ram = ({"firstName": name, "lastName": "Seacole"} for name in ("रीमा", "राम"))
    for namesakes, on_file in (([], True), ([ram], True), ([ram, rima], False)):
        sent = json.dumps({**change, "namesakes": namesakes})
        assert await owner.fetchval("SELECT patient_is_on_file(1, $1)", sent) is on_file
