"""The same simulations for tools: the code travels in the call's metadata."""

from typing import Any

import httpx
import pytest

from frontdesk.domain.errors import BY_GATEWAY, CATALOGUE
from frontdesk.engine.sandbox import HEADER, META_KEY
from tests.doors.mcp_speech import EVERY, framed, headers, request
from tests.support.shared_database import world_of_a_module
from tests.support.world import PRACTICE, World, patient_id, slots

world = world_of_a_module

OVER_HTTP = BY_GATEWAY | {"unauthorized", "forbidden_tenant"}


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    await world.import_file(PRACTICE.replace("slug: SLUG,", "slug: sandbox, sandbox: true,"))
    return await world.client("sandbox")


async def simulate(
    client: httpx.AsyncClient, tool: str, code: Any, version: str = EVERY[-2], **arguments: Any
) -> httpx.Response:
    message = request("tools/call", {"name": tool, "arguments": arguments}, version)
    message["params"].setdefault("_meta", {})[META_KEY] = code
    return await client.post("/mcp", json=message, headers=headers(message, version))


async def tool_error(answer: httpx.Response) -> dict[str, Any]:
    result = framed(answer)["result"]
    assert result["isError"]
    document: dict[str, Any] = result["structuredContent"]
    assert document["code"] in result["content"][0]["text"]
    return document


@pytest.mark.parametrize("code", [code for code in CATALOGUE if code not in OVER_HTTP | {"confirmation_required"}])
async def test_a_tool_fails_with_the_code_it_is_told_to(agent: httpx.AsyncClient, code: str) -> None:
    document = await tool_error(await simulate(agent, "list_locations", code))
    assert (document["code"], document["status"]) == (code, CATALOGUE[code].status)


@pytest.mark.parametrize("code", sorted(OVER_HTTP))
async def test_what_a_token_or_a_limit_forbids_is_said_over_http(agent: httpx.AsyncClient, code: str) -> None:
    answer = await simulate(agent, "list_locations", code)
    assert (answer.status_code, answer.json()["code"]) == (CATALOGUE[code].status, code)
    assert ("x-svc-trace-id" in answer.headers) is (code not in BY_GATEWAY)
    assert ("requestId" in answer.json()) is (code not in BY_GATEWAY)


@pytest.mark.parametrize("version", EVERY)
async def test_every_revision_can_simulate(agent: httpx.AsyncClient, version: str) -> None:
    document = await tool_error(await simulate(agent, "list_locations", "upstream_unavailable", version))
    assert document["code"] == "upstream_unavailable"


async def test_a_read_that_is_told_to_ask_for_confirmation_is_an_error_and_no_proposal(
    agent: httpx.AsyncClient,
) -> None:
    answer = await simulate(agent, "list_locations", "confirmation_required")
    document = await tool_error(answer)
    assert (document["code"], document["status"]) == ("confirmation_required", 428)
    assert {"confirmationToken", "expiresAt", "readBack"} <= document.keys()
    assert "call list_locations again" not in framed(answer)["result"]["content"][0]["text"]


async def test_a_write_that_is_told_to_ask_for_confirmation_is_a_proposal(
    world: World, agent: httpx.AsyncClient
) -> None:
    integration = await world.client("sandbox", "integration")
    body = {"patientId": await patient_id(integration), "slotId": (await slots(integration))[0]["id"]}
    result = framed(await simulate(integration, "book_appointment", "confirmation_required", **body))["result"]
    assert (result["isError"], result["structuredContent"]["code"]) == (False, "confirmation_required")


async def test_an_incomplete_tool_call_has_executed_and_a_plain_resend_tells(agent: httpx.AsyncClient) -> None:
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    proposed = framed(await simulate(agent, "book_appointment", None, **body))["result"]
    body["confirmationToken"] = proposed["structuredContent"]["confirmationToken"]
    document = await tool_error(await simulate(agent, "book_appointment", "confirmation_incomplete", **body))
    assert document["code"] == "confirmation_incomplete"
    [booked] = (await agent.get("/api/appointments")).json()["items"]
    result = framed(await simulate(agent, "book_appointment", None, **body))["result"]
    assert result["structuredContent"] == {"appointmentId": booked["id"]}


async def test_the_header_of_the_rest_door_works_for_tools_too(agent: httpx.AsyncClient) -> None:
    message = request("tools/call", {"name": "list_locations"})
    answer = await agent.post("/mcp", json=message, headers={**headers(message, EVERY[-2]), HEADER: "internal"})
    assert (await tool_error(answer))["code"] == "internal"


@pytest.mark.parametrize("code", ["nonsense", 7, {"code": "internal"}])
async def test_a_code_that_does_not_exist_is_refused(agent: httpx.AsyncClient, code: Any) -> None:
    document = await tool_error(await simulate(agent, "list_locations", code))
    assert [(each["field"], each["rule"]) for each in document["errors"]] == [(HEADER, "unknown")]


async def test_a_tool_outside_sandboxes_refuses_to_simulate(world: World) -> None:
    document = await tool_error(await simulate(await world.client("harbor"), "list_locations", "internal"))
    assert [(each["field"], each["rule"]) for each in document["errors"]] == [(HEADER, "unknown")]
