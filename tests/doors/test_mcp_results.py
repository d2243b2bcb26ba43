"""What a tool call answers: data said twice, writes that only propose, and errors that a model can act on."""

import dataclasses
import logging
from typing import Any

import httpx
import orjson
import pytest
from jsonschema import Draft202012Validator

from frontdesk.doors.mcp import McpDoor
from frontdesk.doors.mcp.instructions import INSTRUCTIONS
from frontdesk.doors.mcp.tools import tool
from frontdesk.operations import BY_NAME
from frontdesk.settings import Settings
from frontdesk.systems.port import SystemUnavailable
from tests.doors.mcp_speech import ACCEPT, EVERY, HANDSHAKE, assert_no_python, call, framed, request, send
from tests.support.world import MONDAY, World, book, patient_id, slots

GRACE_ANEW = {"firstName": "Grace", "lastName": "Murray", "phone": "+1 555 010 0300", "dob": "1986-12-09"}


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


def text_of(found: dict[str, Any]) -> str:
    """The text of a result, which has nothing but one text."""
    assert [part["type"] for part in found["content"]] == ["text"]
    text: str = found["content"][0]["text"]
    assert_no_python(text)
    return text


def held_to_its_schema(name: str, found: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = found["structuredContent"]
    Draft202012Validator(tool(BY_NAME[name])["outputSchema"]).validate(data)
    return data


async def failed(client: httpx.AsyncClient, name: str, **arguments: Any) -> dict[str, Any]:
    """The problem document of a call that is refused, once the text has been found to hold it, too."""
    found = await call(client, name, **arguments)
    assert found["isError"] is True
    document = held_to_its_schema(name, found)
    text = text_of(found)
    assert text.startswith(f"{document['code']} ({document['status']}): {document['detail']}")
    for error in document.get("errors", []):
        assert f"{error['field']}: {error['message']}" in text
    assert document["requestId"] in text
    return document


@pytest.mark.parametrize("version", EVERY)
async def test_the_text_is_the_structured_content(agent: httpx.AsyncClient, version: str) -> None:
    query = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101, "from": MONDAY, "to": MONDAY}
    arguments = {name: str(value) if name in ("from", "to") else value for name, value in query.items()}
    found = await call(agent, "search_slots", version, **arguments)
    data = held_to_its_schema("search_slots", found)
    assert data["items"][0]["start"] == "2026-11-16T09:00:00-05:00"
    assert orjson.loads(text_of(found)) == data


async def test_a_write_of_an_agent_only_proposes(agent: httpx.AsyncClient) -> None:
    found = await call(agent, "create_patient", **GRACE_ANEW)
    assert found["isError"] is False
    challenge = held_to_its_schema("create_patient", found)
    assert set(challenge) == {"code", "confirmationToken", "expiresAt", "readBack"}
    assert challenge["code"] == "confirmation_required"
    assert challenge["readBack"] == GRACE_ANEW
    text = text_of(found)
    assert text.startswith("NOTHING HAS BEEN CHANGED YET. Proposed: Create a patient.")
    for value in (*GRACE_ANEW.values(), challenge["confirmationToken"], challenge["expiresAt"], "create_patient again"):
        assert value in text
    assert (await failed(agent, "match_patient", **GRACE_ANEW))["code"] == "not_found"


async def test_the_same_call_with_the_token_executes_once(agent: httpx.AsyncClient) -> None:
    challenge = (await call(agent, "create_patient", **GRACE_ANEW))["structuredContent"]
    confirmed = {**GRACE_ANEW, "confirmationToken": challenge["confirmationToken"]}
    first = await call(agent, "create_patient", **confirmed)
    again = await call(agent, "create_patient", **confirmed)
    assert held_to_its_schema("create_patient", first) == again["structuredContent"]
    assert (await call(agent, "match_patient", **GRACE_ANEW))["structuredContent"]["items"] == [
        {"id": first["structuredContent"]["patientId"], "patientKind": "new"}
    ]


async def test_a_changed_call_with_the_token_is_a_mismatch(agent: httpx.AsyncClient) -> None:
    challenge = (await call(agent, "create_patient", **GRACE_ANEW))["structuredContent"]
    changed = {**GRACE_ANEW, "lastName": "Other", "confirmationToken": challenge["confirmationToken"]}
    assert (await failed(agent, "create_patient", **changed))["code"] == "confirmation_mismatch"


async def test_what_is_read_back_before_booking_is_what_a_person_must_hear(agent: httpx.AsyncClient) -> None:
    slot = (await slots(agent))[0]
    found = await call(agent, "book_appointment", patientId=await patient_id(agent), slotId=slot["id"])
    for spoken in ("Monday", "2026-11-16T09:00:00-05:00", "America/New_York", "Dr. Robert Chen", "Downtown"):
        assert spoken in text_of(found)


async def test_an_integration_writes_at_once(world: World) -> None:
    integration = await world.client(grant="integration")
    found = await call(integration, "create_patient", **GRACE_ANEW)
    assert set(held_to_its_schema("create_patient", found)) == {"patientId"}


async def test_every_offending_argument_is_named(agent: httpx.AsyncClient) -> None:
    document = await failed(agent, "match_patient", firstName=7, phone="12", confirmation_token="x")
    assert document["status"] == 400
    assert {(error["field"], error["rule"]) for error in document["errors"]} == {
        ("firstName", "Binding"),
        ("lastName", "required"),
        ("phone", "minDigits"),
        ("dob", "required"),
        ("confirmation_token", "unknown"),
    }


async def test_arguments_may_be_left_out_or_null(agent: httpx.AsyncClient) -> None:
    for params in ({"name": "list_locations"}, {"name": "list_locations", "arguments": None}):
        found = framed(await send(agent, "tools/call", params))["result"]
        assert found["structuredContent"]["limit"] == 50


async def test_a_missing_scope_is_a_tool_error(world: World) -> None:
    reader = await world.client(scopes=["practices:read"])
    assert (await failed(reader, "match_patient"))["code"] == "forbidden_scope"


async def test_another_practice_s_records_are_not_found(world: World, agent: httpx.AsyncClient) -> None:
    appointment = await book(agent)
    elsewhere = await world.client("other")
    unknown = await failed(elsewhere, "get_appointment", appointmentId="apt_0000000000000000000000")
    foreign = await failed(elsewhere, "get_appointment", appointmentId=appointment)
    assert {**unknown, "requestId": ""} == {**foreign, "requestId": ""}
    assert foreign["code"] == "not_found"


async def broken(world: World, error: Exception) -> dict[str, Any]:
    """What a call answers when something inside raises that error."""

    def fail(*_: Any) -> Any:
        raise error

    engine = dataclasses.replace(world.service.engine, systems=fail)
    door = httpx.ASGITransport(app=McpDoor(engine, Settings(base_url="http://test"), world.service.requests))
    token = (await world.client()).headers["Authorization"]
    async with httpx.AsyncClient(transport=door, base_url="http://test") as client:
        message = request("tools/call", {"name": "get_practice"})
        answer = await client.post("/mcp", json=message, headers={**ACCEPT, "Authorization": token})
    found: dict[str, Any] = framed(answer)["result"]
    assert found["isError"] is True
    return found


async def test_an_unexpected_error_says_nothing_of_itself(world: World) -> None:
    found = await broken(world, RuntimeError("Ada Lovelace in SELECT * FROM patient"))
    assert found["structuredContent"]["code"] == "internal"
    assert "Lovelace" not in text_of(found)
    assert "SELECT" not in text_of(found)


async def test_an_unreachable_system_says_when_to_try_again(world: World) -> None:
    found = await broken(world, SystemUnavailable())
    assert found["structuredContent"]["code"] == "upstream_unavailable"
    assert "Retry-After:" in text_of(found)


async def test_the_trace_id_comes_from_the_caller(agent: httpx.AsyncClient) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    agent.headers["traceparent"] = f"00-{trace}-b7ad6b7169203331-01"
    answer = await send(agent, "tools/call", {"name": "get_slot", "arguments": {"slotId": "slt_nothing"}})
    assert answer.headers["x-svc-trace-id"] == trace
    assert framed(answer)["result"]["structuredContent"]["requestId"] == trace
    assert answer.headers["cache-control"].startswith("no-store")


async def test_every_request_leaves_one_line_in_the_log(
    agent: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "frontdesk.request")
    await call(agent, "create_patient", **GRACE_ANEW)
    await call(agent, "get_slot", slotId="slt_nothing")
    await send(agent, "tools/list")
    await send(agent, "nonsense", version=HANDSHAKE[0])
    await agent.get("/mcp")
    del agent.headers["Authorization"]
    await send(agent, "tools/list")
    lines = [record.__dict__ for record in caplog.records if record.name == "frontdesk.request"]
    assert [(line["door"], line["operation"], line["status"]) for line in lines] == [
        ("mcp", "create_patient", 428),
        ("mcp", "get_slot", 404),
        ("mcp", None, 200),
        ("mcp", None, 404),
        ("mcp", None, 405),
        ("mcp", None, 401),
    ]
    assert {line["practice"] for line in lines[:4]} == {"harbor"}
    assert all("Murray" not in str(line) for line in lines)


def test_the_instructions_give_the_eight_steps_in_order() -> None:
    steps = (
        "match_patient", "list_locations", "list_providers", "list_visit_types", "list_procedures", "search_slots",
        "get_slot", "book_appointment",
    )  # fmt: skip
    places = [INSTRUCTIONS.index(f"{number}. {name}") for number, name in enumerate(steps, start=1)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "rule", ["Never show, read out or guess ids", "local time", "The token proves that the payload is unchanged, not"]
)
def test_the_instructions_give_the_rules(rule: str) -> None:
    assert rule in INSTRUCTIONS
