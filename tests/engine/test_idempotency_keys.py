"""Integrations write at once; with an Idempotency-Key they do so exactly once."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.doors.mcp_speech import framed
from tests.support.world import World, patient_id, rules, slots


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


async def test_a_faulty_key_is_listed_with_the_faulty_fields(world: World) -> None:
    integration = await world.client(grant="integration")
    answer = await integration.post("/api/appointments", json={"slotId": 7}, headers={"Idempotency-Key": "x" * 256})
    assert answer.status_code == 400
    assert rules(answer) == {"Idempotency-Key": "maxLength", "patientId": "required", "slotId": "Binding"}


async def test_a_key_of_255_characters_is_fine(world: World) -> None:
    integration = await world.client(grant="integration")
    headers = {"Idempotency-Key": "x" * 255}
    assert (
        await integration.post("/api/appointments", json=await _body(integration), headers=headers)
    ).status_code == 201


async def _call_tool(
    client: httpx.AsyncClient, tool: str, arguments: dict[str, str], meta: dict[str, Any], **headers: str
) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = {"Accept": "application/json, text/event-stream", **headers}
    result: dict[str, Any] = framed(await client.post("/mcp", json=message, headers=sent))["result"]
    return result


async def test_a_key_is_one_key_at_both_doors(world: World) -> None:
    integration = await world.client(grant="integration")
    body = await _body(integration)
    in_header, in_meta = {"Idempotency-Key": "call-1"}, {"idempotencyKey": "call-1"}
    first = await _call_tool(integration, "book_appointment", body, {}, **in_header)
    assert first["isError"] is False
    for meta, headers in (({}, in_header), (in_meta, {}), (in_meta, in_header)):
        again = await _call_tool(integration, "book_appointment", body, meta, **headers)
        assert again["structuredContent"] == first["structuredContent"]
    over_rest = await integration.post("/api/appointments", json=body, headers=in_header)
    assert (over_rest.status_code, over_rest.json()) == (201, first["structuredContent"])
    assert len((await integration.get("/api/appointments")).json()["items"]) == 1
    other = {**body, "patientId": await patient_id(integration, "Alan")}
    refused = await _call_tool(integration, "book_appointment", other, in_meta)
    assert refused["structuredContent"]["code"] == "conflict"


async def test_a_key_in_the_metadata_must_be_text_and_agree_with_the_header(world: World) -> None:
    integration, agent = await world.client(grant="integration"), await world.client()
    body = await _body(integration)
    for meta, headers, status, rule in (
        ({"idempotencyKey": 7}, {}, 400, "Binding"),
        ({"idempotencyKey": "a"}, {"Idempotency-Key": "b"}, 400, "Binding"),
        ({"idempotencyKey": "  "}, {}, 422, "notBlank"),
        ({"idempotencyKey": "x" * 256}, {}, 422, "maxLength"),
    ):
        refused = await _call_tool(integration, "book_appointment", body, meta, **headers)
        problem = refused["structuredContent"]
        assert (problem["status"], [each["rule"] for each in problem["errors"]]) == (status, [rule])
    assert (await integration.get("/api/appointments")).json()["items"] == []
    proposed = await _call_tool(agent, "book_appointment", body, {"idempotencyKey": "a"})
    assert proposed["structuredContent"]["code"] == "confirmation_required", "a key is no consent of a person"
    read = await _call_tool(agent, "list_locations", {}, {"idempotencyKey": 7})
    assert read["isError"] is False, "reads take no key"
