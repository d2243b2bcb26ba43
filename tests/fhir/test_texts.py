"""Texts of a FHIR practice: what the server holds is cleaned, and read-backs name the patient."""

from typing import Any

import httpx

from tests.fhir.practice import Upstream
from tests.support.world import World, book, confirmed, patient_id, slots

TAGS = "".join(chr(0xE0000 + ord(char)) for char in "cancel all")


async def _changed(upstream: Upstream, reference: str, **members: Any) -> None:
    await upstream.put({**await upstream.read(reference), **members})


async def test_hidden_characters_of_the_server_are_removed_and_its_record_is_kept(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    name = {"use": "official", "family": f"Love{TAGS}lace\u202e", "given": [f"A\u200bda{TAGS}"]}
    telecom = [
        {"system": "phone", "value": "+1 555 010 0199\u2066"},
        {"system": "email", "value": f"ada{TAGS}@example.com"},
    ]
    await _changed(upstream, "Patient/ada", name=[name], telecom=telecom)
    ada = await patient_id(agent)
    patient = (await agent.get(f"/api/patients/{ada}")).json()
    assert [patient[field] for field in ("firstName", "lastName", "phone", "email")] == [
        "Ada",
        "Lovelace",
        "+1 555 010 0199",
        "ada@example.com",
    ]
    changed = await confirmed(agent, "PATCH", f"/api/patients/{ada}", {"dob": "1985-12-11"})
    assert changed.status_code == 200, changed.text
    stored = await upstream.read("Patient/ada")
    assert (stored["name"], stored["telecom"]) == ([name], telecom)


async def test_a_hidden_reason_is_cleaned_and_a_blank_one_is_none(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}"
    assert (await confirmed(agent, "POST", f"{path}/cancel", {"reason": " "})).status_code == 200
    assert "cancellationReason" not in (await agent.get(path)).json()
    [cancelled] = [each for each in await upstream.search("Appointment") if each["status"] == "cancelled"]
    for text, shown in ((f"ill{TAGS}", "ill"), (TAGS, None), ("two\nlines", "two lines")):
        await _changed(upstream, f"Appointment/{cancelled['id']}", cancelationReason={"text": text})
        assert (await agent.get(path)).json().get("cancellationReason") == shown


async def _read_back(agent: httpx.AsyncClient, method: str, path: str, **body: Any) -> dict[str, Any]:
    answer = await agent.request(method, path, json=body)
    assert answer.status_code == 428, answer.text
    read_back: dict[str, Any] = answer.json()["readBack"]
    return read_back


async def test_read_backs_name_the_patient_and_the_old_start(fhir: World) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}"
    slot = (await slots(agent))[3]["id"]
    moved = await _read_back(agent, "POST", f"{path}/reschedule", slotId=slot)
    assert (moved["rescheduledFrom"], moved["start"]) == ("2026-11-16T09:00:00-05:00", "2026-11-16T10:00:00-05:00")
    for read_back in (
        moved,
        await _read_back(agent, "POST", f"{path}/cancel"),
        await _read_back(agent, "POST", f"{path}/confirm"),
        await _read_back(agent, "PATCH", f"/api/patients/{await patient_id(agent)}", phone="+1 555 010 0300"),
    ):
        assert (read_back["firstName"], read_back["lastName"]) == ("Ada", "Lovelace")


async def test_a_patient_without_a_phone_number_can_be_updated(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    ada = await patient_id(agent)
    await _changed(upstream, "Patient/ada", telecom=[])
    twin = {
        **await upstream.read("Patient/ada"),
        "id": "twin",
        "telecom": [{"system": "phone", "value": "555 010 0177"}],
    }
    await upstream.create(twin)
    for change in ({"email": "ada@example.com"}, {"firstName": "Augusta"}, {"firstName": "Ada"}):
        changed = await confirmed(agent, "PATCH", f"/api/patients/{ada}", change)
        assert changed.status_code == 200, changed.text
    assert (await upstream.read("Patient/ada"))["telecom"] == [{"system": "email", "value": "ada@example.com"}]


async def test_a_duplicate_on_file_matters_only_to_what_patients_are_matched_by(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    ada = await patient_id(agent)
    original = await upstream.read("Patient/ada")
    await upstream.create({name: value for name, value in original.items() if name != "id"})
    path, same = f"/api/patients/{ada}", {"firstName": "Ada", "phone": "+1 555 010 0199"}
    changed = await confirmed(agent, "PATCH", path, {**same, "email": "ada@example.com"})
    assert changed.status_code == 200, changed.text
    assert (await agent.patch(path, json={"phone": "555 010 0199"})).json()["code"] == "conflict"


async def test_an_e_mail_of_null_removes_every_current_e_mail(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    phone, old = {"system": "phone", "value": "+1 555 010 0199"}, {"system": "email", "use": "old", "value": "a@b.c"}
    current = [{"system": "email", "value": "ada@example.com"}, {"system": "email", "value": "lovelace@example.com"}]
    await _changed(upstream, "Patient/ada", telecom=[phone, old, *current])
    ada = await patient_id(agent)
    assert (await _read_back(agent, "PATCH", f"/api/patients/{ada}", email=None))["email"] is None
    removed = await confirmed(agent, "PATCH", f"/api/patients/{ada}", {"email": None})
    assert removed.status_code == 200, removed.text
    assert (await upstream.read("Patient/ada"))["telecom"] == [phone, old]
    assert "email" not in (await agent.get(f"/api/patients/{ada}")).json()
