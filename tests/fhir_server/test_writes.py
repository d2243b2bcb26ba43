"""Writes over FHIR: booking, moving, confirming and cancelling appointments; creating and updating patients."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.served import SERVED
from tests.doors.mcp_speech import framed, send
from tests.fhir_server.fhir_calls import BASE, issue, resources
from tests.support.world import World, book, patient_id, slots

FOLLOW_UP = "visit-type=urn:frontdesk:procedure%7C101"
MONDAY = f"{BASE}/Appointment/$find?start=2026-11-16&end=2026-11-16&practitioner=Practitioner/10&{FOLLOW_UP}"
PATCH = {"Content-Type": "application/json-patch+json"}
EHR = "https://ehr.example/appointments"


async def proposals(client: httpx.AsyncClient, search: str = MONDAY) -> list[dict[str, Any]]:
    answer = await client.get(search)
    assert answer.status_code == 200, answer.text
    return resources(answer.json())


async def ada(client: httpx.AsyncClient) -> str:
    return (await patient_id(client)).removeprefix("pat_")


def participant(patient: str, status: str = "needs-action") -> dict[str, Any]:
    return {"actor": {"reference": f"Patient/{patient}"}, "status": status}


def booking(proposal: dict[str, Any], patient: str, **elements: Any) -> dict[str, Any]:
    """The proposal with a patient, as a client sends it back."""
    taking_part = [*proposal["participant"], participant(patient)]
    return {**proposal, "status": "pending", "participant": taking_part, **elements}


def parameters(**resources: Any) -> dict[str, Any]:
    named = [{"name": name.replace("_", "-"), "resource": value} for name, value in resources.items()]
    return {"resourceType": "Parameters", "parameter": named}


async def live(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    items = (await client.get("/api/appointments")).json()["items"]
    return [(each["start"], each["status"]) for each in items if each["status"] != "cancelled"]


async def test_open_times_are_proposed(server: World) -> None:
    client = await server.client(grant="integration")
    slots = (await client.get(
        "/api/slots?providerId=10&locationId=1&visitTypeId=21&procedureId=101&from=2026-11-16&to=2026-11-16"
    )).json()["items"]  # fmt: skip
    wanted = [(each["start"], each["end"]) for each in slots]
    found = await proposals(client)
    assert [(each["start"], each["end"]) for each in found] == wanted
    assert {each["status"] for each in found} == {"proposed"}
    for other in (
        f"{BASE}/Schedule/10-1/$find?start=2026-11-16&end=2026-11-16&{FOLLOW_UP}",
        f"{BASE}/Schedule/$find?schedule=Schedule/10-1&start=2026-11-16&end=2026-11-16&service-type-reference=HealthcareService/21-101",
        f"{MONDAY}&location-reference=Location/1",
    ):
        assert await proposals(client, other) == found
    body = {
        "resourceType": "Parameters",
        "parameter": [
            {"name": "start", "valueDateTime": "2026-11-16"},
            {"name": "end", "valueDateTime": "2026-11-16"},
            {"name": "practitioner", "valueReference": {"reference": f"http://test{BASE}/Practitioner/10"}},
            {"name": "visit-type", "valueCoding": {"system": "urn:frontdesk:procedure", "code": "101"}},
        ],
    }
    assert resources((await client.post(f"{BASE}/Appointment/$find", json=body)).json()) == found
    morning = MONDAY.replace("start=2026-11-16&end=2026-11-16", "start=2026-11-16T14:00:00Z&end=2026-11-16T15:00:00Z")
    assert [each["start"][11:16] for each in await proposals(client, morning)] == ["09:00", "09:15", "09:30", "09:45"]
    page, collected = (await client.get(f"{MONDAY}&_count=10")).json(), list[dict[str, Any]]()
    while True:
        collected += resources(page)
        following = [link["url"] for link in page["link"] if link["relation"] == "next"]
        if not following:
            break
        page = (await client.get(following[0])).json()
    assert collected == found
    for other in ("practitioner=Practitioner/99", "practitioner=Practitioner/12&location-reference=Location/2"):
        assert await proposals(client, MONDAY.replace("practitioner=Practitioner/10", other)) == []
    assert await proposals(client, f"{MONDAY}&service-type-reference=HealthcareService/1-1") == []
    many = {"resourceType": "Parameters", "parameter": [{"name": "healthcare-service", "valueString": "x"}] * 101}
    issue(await client.post(f"{BASE}/Appointment/$find", json=many), 422, "validation", "invalid")


async def test_a_proposal_is_booked_moved_confirmed_and_cancelled(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [first, second, third, *_] = await ada(client), await proposals(client)
    answer = await client.post(
        f"{BASE}/Appointment/$book", json=parameters(appointment_resource=booking(first, patient))
    )
    assert answer.status_code == 201, answer.text
    [booked] = resources(answer.json())
    assert (booked["status"], booked["start"]) == ("booked", first["start"])
    address = f"{BASE}/Appointment/{booked['id']}"
    read = await client.get(address)
    assert read.json() == booked
    # A move by time, at the version that was read.
    moved = await client.put(
        address,
        json={**booked, "start": second["start"], "end": second["end"]},
        headers={"If-Match": read.headers["etag"]},
    )
    assert (moved.status_code, moved.json()["start"]) == (200, second["start"]), moved.text
    stale = await client.put(
        address, json={**booked, "status": "cancelled"}, headers={"If-Match": read.headers["etag"]}
    )
    issue(stale, 412, "conflict", "conflict")
    # Accepted by the patient; then moved to a slot, which takes the acceptance back.
    accepted = [participant(patient, "accepted"), *booked["participant"][1:]]
    confirmed = await client.put(address, json={**moved.json(), "participant": accepted})
    assert confirmed.json()["participant"][0]["status"] == "accepted"
    assert (await client.put(address, json=confirmed.json())).json() == confirmed.json()
    refused = await client.put(address, json=moved.json())
    assert refused.status_code == 422
    patch = [
        {"op": "add", "path": "/slot", "value": third["slot"]},
        {"op": "replace", "path": "/start", "value": third["start"]},
        {"op": "remove", "path": "/end"},
    ]
    moved = await client.patch(address, json=patch, headers=PATCH)
    assert (moved.status_code, moved.json()["start"]) == (200, third["start"]), moved.text
    assert moved.json()["participant"][0]["status"] == "needs-action"
    tested = [{"op": "test", "path": "/status", "value": "cancelled"}]
    issue(await client.patch(address, json=tested, headers=PATCH), 412, "conflict", "conflict")
    cancelled = await client.patch(
        address,
        json=[
            {"op": "replace", "path": "/status", "value": "cancelled"},
            {"op": "add", "path": "/cancelationReason", "value": {"text": "Travelling"}},
        ],
        headers=PATCH,
    )
    assert (cancelled.json()["status"], cancelled.json()["cancelationReason"]) == ("cancelled", {"text": "Travelling"})
    again = await client.put(address, json={**cancelled.json(), "status": "booked"})
    issue(again, 409, "conflict", "conflict")
    assert await live(client) == []


async def test_a_patch_does_not_take_back_what_changes_meanwhile(
    server: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await server.client(grant="integration")
    [first, _, third, *_] = await proposals(client)
    booked = (await client.post(f"{BASE}/Appointment", json=booking(first, await ada(client)))).json()
    slot = third["slot"][0]["reference"].removeprefix("Slot/").replace(".", "_")
    kind, moves = SERVED["Appointment"], [f"/api/appointments/apt_{booked['id']}/reschedule"]

    async def read_before_a_move(calls: Calls, resource_id: str) -> dict[str, Any]:
        found = await kind.read(calls, resource_id)
        while moves:
            assert (await client.post(moves.pop(), json={"slotId": f"slt_{slot}"})).status_code == 200
        return found

    monkeypatch.setitem(cast("dict[str, Any]", SERVED), "Appointment", replace(kind, read=read_before_a_move))
    confirmation = [{"op": "replace", "path": "/participant/0/status", "value": "accepted"}]
    refused = await client.patch(f"{BASE}/Appointment/{booked['id']}", json=confirmation, headers=PATCH)
    issue(refused, 412, "conflict", "conflict")
    assert await live(client) == [(third["start"], "booked")]
    accepted = await client.patch(f"{BASE}/Appointment/{booked['id']}", json=confirmation, headers=PATCH)
    assert (accepted.status_code, accepted.json()["start"]) == (200, third["start"]), accepted.text
    assert await live(client) == [(third["start"], "confirmed")]


async def test_a_path_that_is_no_pointer_changes_nothing(server: World) -> None:
    client = await server.client(grant="integration")
    [first, *_] = await proposals(client)
    booked = (await client.post(f"{BASE}/Appointment", json=booking(first, await ada(client)))).json()
    patch = [{"op": "replace", "path": "participant/status", "value": "cancelled"}]
    refused = await client.patch(f"{BASE}/Appointment/{booked['id']}", json=patch, headers=PATCH)
    issue(refused, 400, "validation", "value")
    assert await live(client) == [(first["start"], "booked")]


async def test_a_visit_is_moved_by_time_within_its_own_time(server: World) -> None:
    client = await server.client(grant="integration")
    long = MONDAY.replace("C101", "C102")  # 45 minutes, every 15
    patient, [first, second, third, *_] = await ada(client), await proposals(client, long)
    assert second["start"] < first["end"]
    answer = await client.post(f"{BASE}/Appointment", json=booking(first, patient))
    address, booked = f"{BASE}/Appointment/{answer.json()['id']}", answer.json()
    moved = await client.put(address, json={**booked, "start": second["start"], "end": second["end"]})
    assert (moved.status_code, moved.json()["start"]) == (200, second["start"]), moved.text
    patch = [{"op": "replace", "path": "/start", "value": first["start"]}, {"op": "remove", "path": "/end"}]
    moved = await client.patch(address, json=patch, headers=PATCH)
    assert (moved.status_code, moved.json()["end"]) == (200, first["end"]), moved.text
    for changes in (
        {"start": second["start"], "end": third["end"]},
        {"start": second["start"].replace(":15:00", ":17:00"), "end": None},
        {"start": second["start"].replace(":15:00", ":15:30"), "end": None},
        {"start": "1969-12-31T09:00:00-05:00", "end": None},
        {"start": "8999-12-31T09:00:00-05:00", "end": None},
        {"participant": [participant(patient), {"actor": {"reference": "Practitioner/99"}, "status": "accepted"}]},
        {"serviceType": [{"coding": [{"system": "urn:frontdesk:procedure", "code": "999"}]}]},
    ):
        issue(await client.put(address, json={**booked, **changes}), 409, "slot_unavailable", "conflict")
    assert await live(client) == [(first["start"], "booked")]


async def test_a_move_by_time_needs_the_scopes_of_a_move_only(server: World) -> None:
    writer = await server.client(grant="integration")
    patient, [first, second, *_] = await ada(writer), await proposals(writer)
    booked = (await writer.post(f"{BASE}/Appointment", json=booking(first, patient))).json()
    mover = await server.client(grant="integration", scopes=("appointments:read", "appointments:book", "slots:read"))
    moved = await mover.put(
        f"{BASE}/Appointment/{booked['id']}", json={**booked, "start": second["start"], "end": second["end"]}
    )
    assert (moved.status_code, moved.json()["start"]) == (200, second["start"]), moved.text


async def test_every_shape_of_a_booking_books(server: World) -> None:
    client = await server.client(grant="integration")
    patient, found = await ada(client), await proposals(client)
    reference = [
        {"name": "appointment-reference", "valueReference": {"reference": f"Appointment/{found[0]['id']}"}},
        {"name": "patient-reference", "valueReference": {"reference": f"Patient/{patient}"}},
    ]
    by_time = {key: value for key, value in booking(found[4], patient).items() if key not in ("slot", "id")}
    requests = [
        (f"{BASE}/Appointment/$book", {"resourceType": "Parameters", "parameter": reference}),
        (f"{BASE}/Appointment/$book", parameters(appointment=booking(found[1], patient))),
        (f"{BASE}/Appointment/$book", parameters(appt_resource=booking(found[2], patient))),
        (f"{BASE}/Appointment", {"resourceType": "Appointment", "status": "booked", "slot": found[3]["slot"],
                                 "participant": [participant(patient)]}),
        (f"{BASE}/Appointment", {**by_time, "end": None} | {"start": found[4]["start"]}),
    ]  # fmt: skip
    for address, body in requests:
        answer = await client.post(address, json=body)
        assert answer.status_code == 201, answer.text
    assert answer.headers["location"].startswith(f"http://test{BASE}/Appointment/")
    assert [start for start, _ in await live(client)] == [each["start"] for each in found[:5]]
    minimal = await client.post(
        f"{BASE}/Appointment", json=booking(found[5], patient), headers={"Prefer": "return=minimal"}
    )
    assert (minimal.status_code, minimal.content) == (201, b"")


async def test_a_booking_that_contradicts_itself_is_refused(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [first, second, *_] = await ada(client), await proposals(client)
    good = booking(first, patient)
    for changes, status in (
        ({"start": second["start"]}, 422),
        (
            {"participant": [participant(patient), {"actor": {"reference": "Practitioner/11"}, "status": "accepted"}]},
            422,
        ),
        ({"serviceType": [{"coding": [{"system": "urn:frontdesk:procedure", "code": "102"}]}]}, 422),
        ({"participant": first["participant"]}, 422),
        ({"status": "fulfilled"}, 422),
        ({"participant": [participant("0" * 22)]}, 404),
        ({"slot": [{"reference": "Slot/unknown"}]}, 404),
        ({"slot": [first["slot"][0], second["slot"][0]]}, 400),
        ({"slot": [{"reference": "https://elsewhere.example/Slot/1"}]}, 400),
        ({"start": "tomorrow"}, 400),
        ({"start": "0001-01-01T00:00:00+14:00"}, 400),
        ({"participant": [*good["participant"], participant("0" * 22)]}, 400),
        (
            {"participant": [*good["participant"], {"actor": {"reference": "Practitioner/11"}, "status": "accepted"}]},
            400,
        ),
        ({"participant": [participant(patient), {"actor": {"reference": "https://x.example/Practitioner/10"}}]}, 400),
        ({"resourceType": "Patient"}, 400),
        ({"identifier": [{"system": EHR, "value": "x" * 256}]}, 422),
        ({"identifier": [{"system": EHR, "value": "a\u0000b"}]}, 422),
    ):
        answer = await client.post(f"{BASE}/Appointment", json={**good, **changes})
        assert answer.status_code == status, (changes, answer.text)
        assert answer.json()["resourceType"] == "OperationOutcome"
    for content in (b"", b"[]", b'{"resourceType": "Appointment", "resourceType": "Patient"}', b"{"):
        answer = await client.post(
            f"{BASE}/Appointment", content=content, headers={"Content-Type": "application/fhir+json"}
        )
        assert answer.status_code == 400, answer.text
    assert (await client.post(f"{BASE}/Appointment/$book", json=parameters())).status_code == 422
    assert (await client.post(f"{BASE}/Appointment/$hold", json=parameters())).status_code == 422
    assert (await client.delete(f"{BASE}/Appointment/x")).status_code == 405
    assert (await client.patch(f"{BASE}/Appointment/x", json=[])).status_code == 415
    assert await live(client) == []


async def test_limits_on_writes_hold_at_every_door_together(server: World) -> None:
    agent = await server.client(access_limits=AccessLimits(writes_per_hour=2, upcoming_per_patient=0))
    patient, [first, second, third, *_] = await ada(agent), await proposals(agent)
    tokens = []
    for proposal in (first, second):
        challenge = await agent.post(f"{BASE}/Appointment", json=booking(proposal, patient))
        [extension] = challenge.json()["extension"]
        tokens.append({"Frontdesk-Confirmation-Token": extension["extension"][0]["valueString"]})
    booked = await agent.post(f"{BASE}/Appointment", json=booking(first, patient), headers=tokens[0])
    assert booked.status_code == 201, booked.text
    await book(agent, "Alan", visitTypeId=22, procedureId=103, providerId=11)  # over REST
    refused = await agent.post(f"{BASE}/Appointment", json=booking(second, patient), headers=tokens[1])
    told = issue(refused, 429, "rate_limited", "throttled")
    assert "execute book_appointment 2 times an hour" in told["diagnostics"]
    assert int(refused.headers["retry-after"]) > 0
    issue(await agent.post(f"{BASE}/Appointment", json=booking(third, patient)), 429, "rate_limited", "throttled")
    tool = {"name": "book_appointment", "arguments": {"patientId": f"pat_{patient}", "slotId": await free_slot(agent)}}
    answer = framed(await send(agent, "tools/call", tool))["result"]
    assert "book_appointment 2 times an hour" in answer["content"][0]["text"]
    resent = await agent.post(f"{BASE}/Appointment", json=booking(first, patient), headers=tokens[0])
    assert resent.json()["id"] == booked.json()["id"], "what was executed is answered as ever"
    assert len(await live(agent)) == 2
    server.clock.advance(minutes=61)
    await server.renew(agent)
    challenge = await agent.post(f"{BASE}/Appointment", json=booking(second, patient))
    issue(challenge, 428, "confirmation_required", "business-rule")


async def free_slot(client: httpx.AsyncClient) -> str:
    found: str = (await slots(client))[-1]["id"]
    return found


async def test_an_agent_confirms_what_was_read_back(server: World) -> None:
    agent = await server.client(grant="agent")
    patient, [first, second, *_] = await ada(agent), await proposals(agent)
    body = booking(first, patient)
    challenge = await agent.post(f"{BASE}/Appointment", json=body)
    issue(challenge, 428, "confirmation_required", "business-rule")
    [extension] = challenge.json()["extension"]
    values = {each["url"]: each.get("valueString") for each in extension["extension"]}
    read_back = {each["url"]: each["valueString"] for each in extension["extension"][2]["extension"]}
    assert (read_back["providerName"], read_back["start"]) == ("Dr. Robert Chen", first["start"])
    assert await live(agent) == []
    header = {"Frontdesk-Confirmation-Token": values["token"]}
    issue(await agent.post(f"{BASE}/Appointment", json=booking(second, patient), headers=header), 409,
          "confirmation_mismatch", "conflict")  # fmt: skip
    booked = await agent.post(f"{BASE}/Appointment", json=body, headers=header)
    assert booked.status_code == 201, booked.text
    resent = await agent.post(f"{BASE}/Appointment", json=body, headers=header)
    assert resent.json()["id"] == booked.json()["id"]
    # The token may also stand in the resource; a change is challenged like a booking.
    address = f"{BASE}/Appointment/{booked.json()['id']}"
    wanted = {**booked.json(), "status": "cancelled"}
    challenge = await agent.put(address, json=wanted)
    assert challenge.status_code == 428
    token = challenge.json()["extension"][0]["extension"][0]["valueString"]
    confirmed = {**wanted, "extension": [{"url": "urn:frontdesk:confirmation-token", "valueString": token}]}
    assert (await agent.put(address, json=confirmed)).json()["status"] == "cancelled"
    assert (await agent.put(address, json=confirmed, headers={"If-Match": 'W/"old"'})).status_code == 200


async def test_an_appointment_is_cancelled_by_its_operation(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [first, second, *_] = await ada(client), await proposals(client)
    booked = [(await client.post(f"{BASE}/Appointment", json=booking(each, patient))) for each in (first, second)]
    address, other = (f"{BASE}/Appointment/{each.json()['id']}/$cancel" for each in booked)
    reason = {"name": "reason", "valueCodeableConcept": {"text": "Travelling"}}
    named = {"name": "identifier", "valueIdentifier": {"system": EHR, "value": "c1"}}
    body = {"resourceType": "Parameters", "parameter": [reason, named]}
    stale = await client.post(address, json=body, headers={"If-Match": 'W/"old"'})
    issue(stale, 412, "conflict", "conflict")
    once = {"Idempotency-Key": "cancel", "If-Match": booked[0].headers["etag"]}
    for _ in range(2):  # the second is a resend
        answer = await client.post(address, json=body, headers=once)
        assert answer.status_code == 200, answer.text
        cancelled = answer.json()
        assert (cancelled["status"], cancelled["cancelationReason"]) == ("cancelled", {"text": "Travelling"})
        assert cancelled["identifier"] == [named["valueIdentifier"]]
    assert (await client.get(address.removesuffix("/$cancel"))).json() == cancelled
    issue(await client.post(address), 409, "conflict", "conflict")
    assert await live(client) == [(second["start"], "booked")]
    for refused, status in (
        (client.post(other, json=booked[1].json()), 400),
        (client.post(other, json={**body, "parameter": [{"name": "reason", "valueString": "x" * 501}]}), 422),
        (client.post(f"{BASE}/Appointment/unknown/$cancel"), 404),
        (client.post(f"{BASE}/Appointment/$cancel"), 404),
        (client.post(f"{BASE}/Patient/{patient}/$cancel"), 404),
        (client.get(other), 405),
        ((await server.client(grant="integration", scopes=["appointments:read"])).post(other), 403),
        ((await server.client("other", grant="integration")).post(other), 404),
    ):
        answer = await refused
        assert (answer.status_code, answer.json()["resourceType"]) == (status, "OperationOutcome"), answer.text
    # An agent confirms, and sends the token in the header: a Parameters resource has no extension.
    agent = await server.client(grant="agent")
    challenge = await agent.post(other)
    issue(challenge, 428, "confirmation_required", "business-rule")
    token = challenge.json()["extension"][0]["extension"][0]["valueString"]
    assert await live(client) == [(second["start"], "booked")]
    assert (await agent.post(other, headers={"Frontdesk-Confirmation-Token": token})).json()["status"] == "cancelled"
    assert await live(client) == []


async def test_a_resend_books_once(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [first, second, third, *_] = await ada(client), await proposals(client)
    body = booking(first, patient, identifier=[{"system": EHR, "value": "42"}])
    answers = await asyncio.gather(*(client.post(f"{BASE}/Appointment", json=body) for _ in range(4)))
    assert sorted({answer.status_code for answer in answers}) in ([200, 201], [201])
    assert len({answer.json()["id"] for answer in answers}) == 1
    [found] = resources((await client.get(f"{BASE}/Appointment?identifier={EHR}%7C42")).json())
    assert found["identifier"] == [{"system": EHR, "value": "42"}]
    issue(
        await client.post(f"{BASE}/Appointment", json={**body, **booking(second, patient)}), 409, "conflict", "conflict"
    )
    once = {"If-None-Exist": f"identifier={EHR}|42"}
    existing = await client.post(f"{BASE}/Appointment", json=booking(second, patient), headers=once)
    assert (existing.status_code, existing.json()["id"]) == (200, found["id"])
    for value in ("%00", "x" * 256):  # cannot be stored, thus is not there
        never = {"If-None-Exist": f"identifier={EHR}|{value}"}
        issue(await client.post(f"{BASE}/Appointment", json=body, headers=never), 400, "validation", "value")
        assert resources((await client.get(f"{BASE}/Appointment?identifier={EHR}%7C{value}")).json()) == []
    # By time there is no slot to name once it is taken: the key finds the result.
    by_time = {key: value for key, value in booking(second, patient).items() if key not in ("slot", "id")}
    key = {"Idempotency-Key": "k1"}
    ids = [(await client.post(f"{BASE}/Appointment", json=by_time, headers=key)).json()["id"] for _ in range(2)]
    assert ids[0] == ids[1]
    # A condition that nothing meets does not turn the key's result into an answer for another appointment.
    unmet = {**key, "If-None-Exist": f"identifier={EHR}|44"}
    issue(
        await client.post(f"{BASE}/Appointment", json=booking(third, patient), headers=unmet),
        409,
        "conflict",
        "conflict",
    )
    assert len(await live(client)) == 2
    # An update replaces identifiers, or leaves them alone.
    address, other_name = f"{BASE}/Appointment/{found['id']}", [{"system": EHR, "value": "43"}]
    for changed in ({**found, "identifier": other_name}, {key: found[key] for key in found if key != "identifier"}):
        assert (await client.put(address, json=changed)).json()["identifier"] == other_name
    assert resources((await client.get(f"{BASE}/Appointment?identifier={EHR}%7C42")).json()) == []
    assert "identifier" not in (await client.put(address, json={**found, "identifier": []})).json()
    await client.put(address, json=found)
    # Identifiers are those of the client that gave them.
    other = await server.client(grant="integration")
    assert resources((await other.get(f"{BASE}/Appointment?identifier={EHR}%7C42")).json()) == []
    assert "identifier" not in (await other.get(f"{BASE}/Appointment/{found['id']}")).json()


async def test_patients_are_created_once_and_updated(server: World) -> None:
    client = await server.client(grant="integration")
    person = {
        "resourceType": "Patient",
        "identifier": [{"system": "https://ehr.example/mrn", "value": "7"}],
        "name": [{"use": "official", "family": "Noether", "given": ["Emmy"]}],
        "telecom": [{"system": "phone", "value": "+1 555 010 0188"}, {"system": "email", "value": "emmy@example.com"}],
        "birthDate": "1982-03-23",
    }
    created = await client.post(f"{BASE}/Patient", json=person)
    assert created.status_code == 201, created.text
    patient = created.json()
    assert {"system": "https://ehr.example/mrn", "value": "7"} in patient["identifier"]
    assert (await client.post(f"{BASE}/Patient", json=person)).json()["id"] == patient["id"]
    nameless = {key: value for key, value in person.items() if key != "identifier"}
    issue(await client.post(f"{BASE}/Patient", json=nameless), 409, "conflict", "conflict")
    matching = {"If-None-Exist": "family=Noether&given=Emmy&phone=5550100188&birthdate=1982-03-23"}
    assert (await client.post(f"{BASE}/Patient", json=nameless, headers=matching)).status_code == 200
    address = f"{BASE}/Patient/{patient['id']}"
    version = {"If-Match": created.headers["etag"]}
    changed = {**patient, "telecom": [{"system": "phone", "value": "+1 555 010 0189"}]}
    updated = await client.put(address, json=changed, headers=version)
    assert updated.status_code == 200, updated.text
    assert updated.json()["telecom"] == [{"system": "phone", "value": "+1 555 010 0189"}]
    assert updated.json()["identifier"] == patient["identifier"]
    issue(await client.put(address, json=changed, headers=version), 412, "conflict", "conflict")
    assert (await client.put(address, json={**patient, "active": False})).status_code == 422
    answer = await client.post(f"{BASE}/Patient", json={"resourceType": "Patient", "birthDate": "soon"})
    assert {each["expression"][0] for each in answer.json()["issue"]} >= {"Patient.birthDate"}


async def test_a_former_name_is_not_stored_as_the_patients_name(server: World) -> None:
    client = await server.client(grant="integration")
    former, current = {"use": "old", "family": "Byron", "given": ["Emmy"]}, {"family": "Noether", "given": ["Emmy"]}
    phone = {"system": "phone", "value": "+1 555 010 0188"}
    person = {"resourceType": "Patient", "name": [former, current], "telecom": [phone], "birthDate": "1982-03-23"}
    created = await client.post(f"{BASE}/Patient", json=person)
    assert [each["family"] for each in created.json()["name"]] == ["Noether"], created.text


async def test_a_write_needs_its_scope(server: World) -> None:
    reader = await server.client(
        grant="integration", scopes=["slots:read", "practices:read", "patients:read", "appointments:read"]
    )
    patient, [first, *_] = await ada(reader), await proposals(reader)
    for address in ("Appointment", "Appointment/$book"):
        issue(await reader.post(f"{BASE}/{address}", json=booking(first, patient)), 403, "forbidden_scope", "forbidden")
    issue(await reader.post(f"{BASE}/Patient", json={"resourceType": "Patient"}), 403, "forbidden_scope", "forbidden")
    # One that may book but not read is told where the appointment is, and nothing of it.
    booker = await server.client(grant="integration", scopes=["slots:read", "appointments:book"])
    key, addresses = {"Idempotency-Key": "once"}, set()
    for _ in range(2):
        answer = await booker.post(f"{BASE}/Appointment", json=booking(first, patient), headers=key)
        assert (answer.status_code, answer.content) == (201, b"")
        addresses.add(answer.headers["location"])
    assert len(addresses) == 1
    booked = answer.headers["location"].rpartition("/")[2]
    current = (await reader.get(f"{BASE}/Appointment/{booked}")).json()
    wanted = {**current, "status": "cancelled"}
    issue(await booker.put(f"{BASE}/Appointment/{booked}", json=wanted), 403, "forbidden_scope", "forbidden")
    issue(await reader.put(f"{BASE}/Appointment/{booked}", json=wanted), 403, "forbidden_scope", "forbidden")
    elsewhere = await server.client("other", grant="integration")
    issue(await elsewhere.put(f"{BASE}/Appointment/{booked}", json=wanted), 404, "not_found", "not-found")


async def test_the_server_says_what_can_be_written_and_how_to_get_in(server: World) -> None:
    visitor = server.anonymous()
    statement = (await visitor.get(f"{BASE}/metadata")).json()["rest"][0]["resource"]
    described = {each["type"]: each for each in statement}
    for kind in ("Appointment", "Patient"):
        codes = [each["code"] for each in described[kind]["interaction"]]
        assert codes == ["read", "search-type", "create", "update", "patch"]
        assert described[kind]["conditionalCreate"]
    assert [each["name"] for each in described["Appointment"]["operation"]] == ["find", "book", "cancel", "hold"]
    assert [each["code"] for each in described["Slot"]["interaction"]] == ["read", "search-type"]
    answer = await visitor.get(f"{BASE}/.well-known/smart-configuration")
    assert answer.headers["content-type"].startswith("application/json")
    configuration = answer.json()
    assert configuration["token_endpoint"] == "http://test/oauth/token"
    assert "private_key_jwt" in configuration["token_endpoint_auth_methods_supported"]
    assert "system/Appointment.crus" in configuration["scopes_supported"]


async def test_a_search_by_identifier_leaves_out_a_vanished_record_and_is_bounded(server: World) -> None:
    client = await server.client(grant="integration")
    first, second = (await proposals(client))[:2]
    for number, proposal in enumerate((first, second)):
        body = booking(proposal, await ada(client), identifier=[{"system": EHR, "value": str(number)}])
        assert (await client.post(f"{BASE}/Appointment", json=body)).status_code == 201
    async with server.database.transaction(1) as connection:
        # As at a FHIR server that no longer has the appointment.
        await connection.execute(
            "UPDATE external_identifier SET subject = $1 WHERE practice_id = 1 AND value = '0'", "apt_" + "0" * 22
        )
    found = (await client.get(f"{BASE}/Appointment?identifier={EHR}%7C0")).json()
    assert (found["type"], found["total"], resources(found)) == ("searchset", 0, [])
    [kept] = resources((await client.get(f"{BASE}/Appointment?identifier={EHR}%7C0,{EHR}%7C1")).json())
    assert kept["start"] == second["start"]
    many = ",".join(f"{EHR}%7C{number}" for number in range(11))
    issue(await client.get(f"{BASE}/Appointment?identifier={many}"), 422, "validation", "invalid")
    assert (await client.get(f"{BASE}/Appointment?identifier={many.rpartition(',')[0]}")).status_code == 200
