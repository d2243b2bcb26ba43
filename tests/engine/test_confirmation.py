"""The lifecycle of a confirmation token, row by row."""

import hashlib
import re

import httpx
import pytest

from frontdesk.access.clients.scopes import SCOPES
from tests.support.world import World, book, confirmed, patient_id, slots


async def _booking(agent: httpx.AsyncClient, first: str = "Ada", at: int = 0) -> dict[str, str]:
    return {"patientId": await patient_id(agent, first), "slotId": (await slots(agent))[at]["id"]}


async def _challenge(agent: httpx.AsyncClient, body: dict[str, str]) -> str:
    answer = await agent.post("/api/appointments", json=body)
    assert answer.status_code == 428, answer.text
    token: str = answer.json()["confirmationToken"]
    return token


async def _appointments(agent: httpx.AsyncClient) -> list[dict[str, str]]:
    items: list[dict[str, str]] = (await agent.get("/api/appointments")).json()["items"]
    return items


async def test_a_first_call_is_challenged_and_executes_nothing(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    answer = await agent.post("/api/appointments", json=body)
    assert answer.status_code == 428
    document = answer.json()
    assert re.fullmatch("[0-9a-f]{32}", document["confirmationToken"])
    assert document["expiresAt"] == "2026-11-15T08:10:00Z"
    assert document["requestId"] == answer.headers["x-svc-trace-id"]
    assert {"type", "title", "status", "code", "detail"} <= set(document)
    assert document["readBack"] == {
        **body,
        "start": "2026-11-16T09:00:00-05:00",
        "end": "2026-11-16T09:15:00-05:00",
        "timeZone": "America/New_York",
        "providerName": "Dr. Robert Chen",
        "locationName": "Downtown",
        "visitTypeName": "Follow-up",
        "procedureName": "Follow-up visit",
        "weekday": "Monday",
    }
    assert await _appointments(agent) == []


async def test_the_identical_call_with_the_token_commits(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": await _challenge(agent, body)})
    assert answer.status_code == 201
    assert set(answer.json()) == {"appointmentId"}
    assert re.fullmatch("apt_[0-9A-Za-z]{22}", answer.json()["appointmentId"])
    assert [a["id"] for a in await _appointments(agent)] == [answer.json()["appointmentId"]]


async def test_key_order_white_space_and_property_case_do_not_matter(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    token = await _challenge(agent, body)
    text = f'{{ "CONFIRMATIONTOKEN": "{token}",\n "slotid":"{body["slotId"]}", "PatientId" : "{body["patientId"]}" }}'
    answer = await agent.post("/api/appointments", content=text, headers={"content-type": "text/json"})
    assert answer.status_code == 201


async def test_a_changed_value_is_a_mismatch_and_the_original_stays_valid(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    token = await _challenge(agent, body)
    changed = {**body, "slotId": (await slots(agent))[3]["id"], "confirmationToken": token}
    answer = await agent.post("/api/appointments", json=changed)
    assert (answer.status_code, answer.json()["code"]) == (409, "confirmation_mismatch")
    assert await _appointments(agent) == []
    assert (await agent.post("/api/appointments", json={**body, "confirmationToken": token})).status_code == 201


async def test_a_token_of_another_intent_is_a_mismatch(world: World) -> None:
    agent = await world.client()
    appointment = await book(agent)
    cancel = (await agent.post(f"/api/appointments/{appointment}/cancel")).json()["confirmationToken"]
    answer = await agent.post(f"/api/appointments/{appointment}/confirm", json={"confirmationToken": cancel})
    assert (answer.status_code, answer.json()["code"]) == (409, "confirmation_mismatch")
    other = await book(agent, "Alan")
    answer = await agent.post(f"/api/appointments/{other}/cancel", json={"confirmationToken": cancel})
    assert (answer.status_code, answer.json()["code"]) == (409, "confirmation_mismatch")


@pytest.mark.parametrize("token", ["0" * 32, "not a token", "", "é" * 400])
async def test_an_unrecognized_token_gets_a_brand_new_challenge(world: World, token: str) -> None:
    agent = await world.client()
    body = await _booking(agent)
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert answer.status_code == 428
    assert answer.json()["confirmationToken"] != token
    assert await _appointments(agent) == []


async def test_an_expired_token_gets_a_brand_new_challenge(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    token = await _challenge(agent, body)
    world.clock.advance(seconds=599)
    still = await agent.post("/api/appointments", json={**body, "slotId": "slt_x", "confirmationToken": token})
    assert still.json()["code"] == "confirmation_mismatch"
    world.clock.advance(seconds=1)
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert answer.status_code == 428
    fresh = answer.json()["confirmationToken"]
    assert fresh != token
    assert (await agent.post("/api/appointments", json={**body, "confirmationToken": fresh})).status_code == 201


async def test_a_consumed_token_answers_the_stored_result_for_a_day(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    body["confirmationToken"] = await _challenge(agent, body)
    first = await agent.post("/api/appointments", json=body)
    world.clock.advance(hours=23, minutes=59)
    await world.renew(agent)
    second = await agent.post("/api/appointments", json=body)
    assert (second.status_code, second.json()) == (201, first.json())
    world.clock.advance(minutes=2)
    third = await agent.post("/api/appointments", json=body)
    assert third.json()["code"] in ("slot_unavailable", "validation"), "forgotten: judged anew, and refused"
    assert len(await _appointments(agent)) == 1


async def test_a_consumed_token_with_another_body_is_a_mismatch(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    token = await _challenge(agent, body)
    await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    other = {**body, "patientId": await patient_id(agent, "Alan"), "confirmationToken": token}
    answer = await agent.post("/api/appointments", json=other)
    assert (answer.status_code, answer.json()["code"]) == (409, "confirmation_mismatch")


async def test_a_token_of_another_client_is_unrecognized(world: World) -> None:
    agent, colleague = await world.client(), await world.client()
    body = await _booking(agent)
    token = await _challenge(agent, body)
    answer = await colleague.post("/api/appointments", json={**body, "confirmationToken": token})
    assert answer.status_code == 428
    assert await _appointments(agent) == []


async def test_a_write_that_fails_without_executing_leaves_the_token_valid(world: World) -> None:
    agent, integration = await world.client(), await world.client(grant="integration")
    body = await _booking(agent)
    token = await _challenge(agent, body)
    taken = await integration.post("/api/appointments", json={**body, "patientId": await patient_id(agent, "Alan")})
    refused = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_unavailable")
    await integration.post(f"/api/appointments/{taken.json()['appointmentId']}/cancel")
    assert (await agent.post("/api/appointments", json={**body, "confirmationToken": token})).status_code == 201


async def test_only_the_hash_of_a_token_is_stored(world: World) -> None:
    agent = await world.client()
    token = await _challenge(agent, await _booking(agent))
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT intent::text AS whole, intent_id FROM intent WHERE practice_id = 1")
    assert all(token not in row["whole"] for row in rows)
    assert hashlib.sha256(token.encode()).digest() in [row["intent_id"] for row in rows]


async def test_what_could_not_succeed_now_is_refused_before_any_challenge(world: World) -> None:
    agent = await world.client()
    appointment = await book(agent)
    assert (await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})).status_code == 200
    answer = await agent.post(f"/api/appointments/{appointment}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    unknown = await agent.post("/api/appointments", json={"patientId": "pat_" + "0" * 22, "slotId": "slt_x"})
    assert unknown.status_code == 404


async def test_every_write_of_an_agent_is_challenged(world: World) -> None:
    agent = await world.client()
    appointment, ada = await book(agent), await patient_id(agent)
    free = (await slots(agent))[5]["id"]
    person = {"firstName": "Mary", "lastName": "Seacole", "phone": "+1 555 010 0111", "dob": "1980-05-14"}
    writes = [
        ("POST", "/api/patients", person, 201),
        ("PATCH", f"/api/patients/{ada}", {"phone": "+1 555 010 0100"}, 200),
        ("POST", "/api/appointments", {"patientId": ada, "slotId": free}, 201),
        ("POST", f"/api/appointments/{appointment}/confirm", {}, 200),
        ("POST", f"/api/appointments/{appointment}/reschedule", {"slotId": (await slots(agent))[9]["id"]}, 200),
        ("POST", f"/api/appointments/{appointment}/cancel", {"reason": "Travelling"}, 200),
    ]
    for method, path, body, success in writes:
        challenge = await agent.request(method, path, json=body)
        assert (challenge.status_code, challenge.json()["code"]) == (428, "confirmation_required"), path
        token = challenge.json()["confirmationToken"]
        done = await agent.request(method, path, json={**body, "confirmationToken": token})
        assert done.status_code == success, done.text
        again = await agent.request(method, path, json={**body, "confirmationToken": token})
        assert (again.status_code, again.json()) == (success, done.json())


async def test_a_mistyped_token_field_does_not_loop_for_ever(world: World) -> None:
    agent = await world.client()
    body = await _booking(agent)
    token = await _challenge(agent, body)
    answer = await agent.post("/api/appointments", json={**body, "confirmation_token": token})
    assert answer.status_code == 422
    assert answer.json()["errors"][0] == {
        "field": "confirmation_token",
        "rule": "unknown",
        "message": "is not a field of this operation",
    }


async def test_a_confirming_call_still_needs_its_scope(world: World) -> None:
    agent = await world.client(scopes=[s for s in SCOPES if s != "appointments:book"])
    answer = await agent.post("/api/appointments", json={"patientId": "x", "slotId": "y", "confirmationToken": "z"})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden_scope")
