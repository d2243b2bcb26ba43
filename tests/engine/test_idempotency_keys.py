"""Integrations write at once; with an Idempotency-Key they do so exactly once."""

import asyncio

import pytest

from tests.world import World, patient_id, slots


async def _body(client: object, first: str = "Ada") -> dict[str, str]:
    return {"patientId": await patient_id(client, first), "slotId": (await slots(client))[0]["id"]}  # type: ignore[arg-type]


async def test_an_integration_writes_in_one_call(world: World) -> None:
    integration = await world.client(grant="integration")
    answer = await integration.post("/api/appointments", json=await _body(integration))
    assert answer.status_code == 201


async def test_the_same_key_and_request_return_the_stored_result_for_a_day(world: World) -> None:
    integration = await world.client(grant="integration")
    body, key = await _body(integration), {"Idempotency-Key": "call-1"}
    first = await integration.post("/api/appointments", json=body, headers=key)
    again = await integration.post("/api/appointments", json=body, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    world.clock.advance(hours=24, seconds=1)
    await world.renew(integration)
    late = await integration.post("/api/appointments", json=body, headers=key)
    assert late.status_code in (409, 422), "after a day it is a new request, and the slot is taken"


async def test_the_same_key_with_another_request_is_a_conflict(world: World) -> None:
    integration = await world.client(grant="integration")
    body, key = await _body(integration), {"Idempotency-Key": "call-1"}
    await integration.post("/api/appointments", json=body, headers=key)
    other = {**body, "patientId": await patient_id(integration, "Alan")}
    answer = await integration.post("/api/appointments", json=other, headers=key)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_a_key_of_another_client_is_another_key(world: World) -> None:
    one, two = await world.client(grant="integration"), await world.client(grant="integration")
    body, key = await _body(one), {"Idempotency-Key": "same"}
    first = await one.post("/api/appointments", json=body, headers=key)
    second = await two.post("/api/appointments", json=body, headers=key)
    assert first.status_code == 201
    assert second.json()["code"] in ("slot_unavailable", "validation")


async def test_a_refused_write_does_not_use_up_its_key(world: World) -> None:
    integration = await world.client(grant="integration")
    body, key = await _body(integration), {"Idempotency-Key": "call-1"}
    taken = await integration.post(
        "/api/appointments", json={**body, "patientId": await patient_id(integration, "Alan")}
    )
    refused = await integration.post("/api/appointments", json=body, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_unavailable")
    await integration.post(f"/api/appointments/{taken.json()['appointmentId']}/cancel")
    assert (await integration.post("/api/appointments", json=body, headers=key)).status_code == 201


async def test_simultaneous_calls_with_one_key_execute_once(world: World) -> None:
    integration = await world.client(grant="integration")
    body, key = await _body(integration), {"Idempotency-Key": "call-1"}
    answers = await asyncio.gather(*(integration.post("/api/appointments", json=body, headers=key) for _ in range(8)))
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["appointmentId"] for a in answers}) == 1


@pytest.mark.parametrize(("key", "rule"), [("x" * 256, "maxLength"), ("  ", "notBlank")])
async def test_a_key_that_is_blank_or_too_long_is_refused(world: World, key: str, rule: str) -> None:
    integration = await world.client(grant="integration")
    answer = await integration.post(
        "/api/appointments", json=await _body(integration), headers={"Idempotency-Key": key}
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["rule"] == rule


async def test_a_key_of_255_characters_is_fine(world: World) -> None:
    integration = await world.client(grant="integration")
    headers = {"Idempotency-Key": "x" * 255}
    assert (
        await integration.post("/api/appointments", json=await _body(integration), headers=headers)
    ).status_code == 201
