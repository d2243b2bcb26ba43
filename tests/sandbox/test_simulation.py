"""Frontdesk-Simulate at a sandbox practice, over REST: every code, and what is true afterwards."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from frontdesk.domain.errors import BY_GATEWAY, CATALOGUE
from frontdesk.engine.arguments import Arguments
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.sandbox import HEADER, RETRY_SECONDS, SCENARIOS, SimulatingEngine, engine_for
from frontdesk.operations import BY_NAME, OPERATIONS, Operation
from tests.support.world import PRACTICE, World, patient_id, rules, slots

DOCUMENT = Path(__file__).parents[2] / "docs" / "users" / "sandbox.md"
BEFORE_READING = [code for code, moment in SCENARIOS.items() if moment == "before reading"]
REFUSED = [code for code, moment in SCENARIOS.items() if moment == "instead of executing"]
REFUSALS = [code for code in SCENARIOS if code not in ("confirmation_required", "confirmation_incomplete", "internal")]


@pytest.fixture
async def sandbox(world: World) -> World:
    await world.import_file(PRACTICE.replace("slug: SLUG,", "slug: sandbox, sandbox: true,"))
    return world


async def agent_of(world: World) -> httpx.AsyncClient:
    return await world.client("sandbox")


async def booking(client: httpx.AsyncClient) -> dict[str, str]:
    return {"patientId": await patient_id(client), "slotId": (await slots(client))[0]["id"]}


async def challenged(client: httpx.AsyncClient) -> dict[str, str]:
    """A booking that only has to be sent."""
    body = await booking(client)
    answer = await client.post("/api/appointments", json=body)
    assert answer.status_code == 428, answer.text
    return {**body, "confirmationToken": answer.json()["confirmationToken"]}


async def post(
    client: httpx.AsyncClient, body: Mapping[str, str], code: str | None = None, **more: str
) -> httpx.Response:
    return await client.post(
        "/api/appointments", json=body, headers={**more, **({} if code is None else {HEADER: code})}
    )


async def appointments(client: httpx.AsyncClient) -> list[str]:
    return [item["id"] for item in (await client.get("/api/appointments")).json()["items"]]


async def booking_outcomes(world: World) -> list[str]:
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'sandbox'")
    async with world.database.transaction(practice_id) as connection:
        rows = await connection.fetch(
            "SELECT outcome FROM audit_record WHERE operation = 'book_appointment' ORDER BY record_id"
        )
    return [row["outcome"] for row in rows]


def test_every_code_of_the_catalogue_has_a_scenario_and_the_document_shows_it() -> None:
    assert list(SCENARIOS) == list(CATALOGUE)
    shown = re.findall(r"^\| `(\w+)` \| (\d+) \| ([a-z ]+) \| \S.* \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert shown == [(code, str(CATALOGUE[code].status), moment) for code, moment in SCENARIOS.items()]


@pytest.mark.parametrize("code", CATALOGUE)
async def test_a_read_answers_with_any_code_as_the_catalogue_describes_it(sandbox: World, code: str) -> None:
    agent = await agent_of(sandbox)
    answer = await agent.get("/api/locations", headers={HEADER: code})
    document = answer.json()
    assert (answer.status_code, document["code"]) == (CATALOGUE[code].status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert document["detail"].startswith("Simulated: ")
    by_gateway = code in BY_GATEWAY
    assert ("requestId" in document) is not by_gateway
    assert ("x-svc-trace-id" in answer.headers) is not by_gateway
    assert ("retry-after" in answer.headers) is (code in ("rate_limited", "upstream_unavailable"))
    assert ("www-authenticate" in answer.headers) is (code == "unauthorized")
    assert ("allow" in answer.headers) is (code == "method_not_allowed")
    assert (answer.headers.get("connection") == "close") is (code == "payload_too_large")
    assert (await agent.get("/api/locations")).status_code == 200


async def test_limits_look_like_the_gateways_own(sandbox: World) -> None:
    agent = await agent_of(sandbox)
    limited = await agent.get("/api/practice", headers={HEADER: "rate_limited"})
    assert limited.headers["retry-after"] == str(RETRY_SECONDS)
    assert limited.headers.get_list("ratelimit") == [f'"minute";r=0;t={RETRY_SECONDS}']
    assert '"minute";q=' in limited.headers["ratelimit-policy"]
    used_up = await agent.get("/api/practice", headers={HEADER: "quota_exceeded"})
    assert used_up.headers.get_list("ratelimit") == [f'"quota";r=0;t={RETRY_SECONDS}']
    assert "retry-after" not in used_up.headers


@pytest.mark.parametrize("code", REFUSALS)
async def test_a_refused_confirmation_executes_nothing_and_its_token_still_works(sandbox: World, code: str) -> None:
    agent = await agent_of(sandbox)
    body = await challenged(agent)
    refused = await post(agent, body, code)
    assert (refused.status_code, refused.json()["code"]) == (CATALOGUE[code].status, code)
    assert refused.json()["detail"].startswith("Simulated: ")
    assert await appointments(agent) == []
    assert (await slots(agent))[0]["id"] == body["slotId"]
    booked = await post(agent, body)
    assert booked.status_code == 201
    assert await appointments(agent) == [booked.json()["appointmentId"]]


async def test_an_incomplete_confirmation_has_executed_and_stays_unknown_until_asked_without_the_header(
    sandbox: World,
) -> None:
    agent = await agent_of(sandbox)
    body = await challenged(agent)
    for _ in range(2):
        lost = await post(agent, body, "confirmation_incomplete")
        assert (lost.status_code, lost.json()["code"]) == (409, "confirmation_incomplete")
    [booked] = await appointments(agent)
    assert body["slotId"] not in [slot["id"] for slot in await slots(agent)]
    known = await post(agent, body)
    assert (known.status_code, known.json()) == (201, {"appointmentId": booked})
    assert (await post(agent, body)).json() == {"appointmentId": booked}
    assert await booking_outcomes(sandbox) == ["confirmation_required", "executed"]


async def test_only_a_call_that_simulates_gets_an_engine_that_does(sandbox: World) -> None:
    engine = sandbox.service.engine
    call = Call(BY_NAME["get_practice"], None, Arguments, "request")
    assert engine_for(call, engine) is engine
    assert type(engine) is Engine
    assert isinstance(engine_for(replace(call, simulate="internal"), engine), SimulatingEngine)


async def test_an_incomplete_write_under_an_idempotency_key_is_answered_by_the_same_key(sandbox: World) -> None:
    integration = await sandbox.client("sandbox", "integration")
    body = await booking(integration)
    key = {"Idempotency-Key": "first"}
    assert (await post(integration, body, "confirmation_incomplete", **key)).status_code == 409
    [booked] = await appointments(integration)
    assert (await post(integration, body, None, **key)).json() == {"appointmentId": booked}
    assert await appointments(integration) == [booked]


async def test_an_internal_error_after_execution_is_answered_by_a_resend(sandbox: World) -> None:
    agent = await agent_of(sandbox)
    body = await challenged(agent)
    failed = await post(agent, body, "internal")
    assert (failed.status_code, failed.json()["code"]) == (500, "internal")
    [booked] = await appointments(agent)
    assert (await post(agent, body)).json() == {"appointmentId": booked}
    assert await appointments(agent) == [booked]


@pytest.mark.parametrize("code", ["internal", "confirmation_incomplete"])
async def test_what_happens_after_execution_leaves_a_proposal_a_proposal(sandbox: World, code: str) -> None:
    agent = await agent_of(sandbox)
    answer = await post(agent, await booking(agent), code)
    assert answer.status_code == 428
    assert await appointments(agent) == []


async def test_a_required_confirmation_is_a_real_challenge_also_for_a_write_that_carries_a_token(
    sandbox: World,
) -> None:
    agent = await agent_of(sandbox)
    body = await challenged(agent)
    again = await post(agent, body, "confirmation_required")
    assert again.status_code == 428
    assert again.json()["detail"].startswith("Simulated: ")
    assert await appointments(agent) == []
    token = again.json()["confirmationToken"]
    assert token != body["confirmationToken"]
    assert (await post(agent, {**body, "confirmationToken": token})).status_code == 201


async def test_an_integration_can_be_challenged(sandbox: World) -> None:
    integration = await sandbox.client("sandbox", "integration")
    body = await booking(integration)
    answer = await post(integration, body, "confirmation_required")
    assert answer.status_code == 428
    assert answer.json()["readBack"]["slotId"] == body["slotId"]
    assert await appointments(integration) == []
    assert (
        await post(integration, {**body, "confirmationToken": answer.json()["confirmationToken"]})
    ).status_code == 201


@pytest.mark.parametrize("code", REFUSED)
async def test_a_write_that_was_executed_returns_its_stored_result_whatever_is_simulated(
    sandbox: World, code: str
) -> None:
    agent, integration = await agent_of(sandbox), await sandbox.client("sandbox", "integration")
    body = await challenged(agent)
    booked = await post(agent, body)
    replayed = await post(agent, body, code)
    assert (replayed.status_code, replayed.json()) == (201, booked.json())
    key = {"Idempotency-Key": "first"}
    body = {"patientId": await patient_id(integration, "Alan"), "slotId": (await slots(integration))[0]["id"]}
    booked = await post(integration, body, None, **key)
    replayed = await post(integration, body, code, **key)
    assert (replayed.status_code, replayed.json()) == (201, booked.json())


async def test_a_simulated_refusal_of_a_write_is_audited_like_a_real_one(sandbox: World) -> None:
    agent = await agent_of(sandbox)
    await post(agent, await challenged(agent), "slot_unavailable")
    assert await booking_outcomes(sandbox) == ["confirmation_required", "slot_unavailable"]


async def test_a_request_that_cannot_be_read_is_refused_before_the_operation_is_simulated(sandbox: World) -> None:
    agent = await agent_of(sandbox)
    for code in REFUSED:
        assert rules(await post(agent, {"patientId": "x"}, code)) == {"slotId": "required"}


@pytest.mark.parametrize("code", ["", "slot unavailable", "SLOT_UNAVAILABLE", "slot_unavailable, internal"])
async def test_a_code_that_does_not_exist_is_refused(sandbox: World, code: str) -> None:
    agent = await agent_of(sandbox)
    body = await challenged(agent)
    answer = await post(agent, body, code)
    assert answer.status_code == 422
    assert rules(answer) == {HEADER: "unknown"}
    assert await appointments(agent) == []


@pytest.mark.parametrize("code", ["slot_unavailable", "rate_limited", "confirmation_incomplete", "nonsense"])
async def test_outside_sandboxes_the_header_is_refused_and_nothing_is_executed(world: World, code: str) -> None:
    agent = await world.client("harbor")
    body = await challenged(agent)
    answer = await post(agent, body, code)
    assert answer.status_code == 422
    assert rules(answer) == {HEADER: "unknown"}
    assert "sandbox" in answer.json()["errors"][0]["message"]
    assert await appointments(agent) == []
    assert (await post(agent, body)).status_code == 201


async def test_token_and_scope_are_checked_first(sandbox: World) -> None:
    narrow = await sandbox.client("sandbox", scopes=["slots:read"])
    answer = await narrow.get("/api/practice", headers={HEADER: "not_found"})
    assert answer.json()["code"] == "forbidden_scope"
    anonymous = await sandbox.anonymous().get("/api/practice", headers={HEADER: "not_found"})
    assert anonymous.json()["code"] == "unauthorized"


async def test_a_warm_simulation_asks_the_database_nothing(sandbox: World) -> None:
    agent = await agent_of(sandbox)
    for known in (sandbox.service.authenticator, sandbox.service.limiter):
        known._monotonic = lambda: 0.0  # what is warm is read again after some seconds, and none pass here
    await agent.get("/api/practice", headers={HEADER: "not_found"})
    before = sandbox.database.statements
    await agent.get("/api/practice", headers={HEADER: "not_found"})
    assert sandbox.database.statements == before


async def test_a_practice_that_stops_being_a_sandbox_stops_simulating(sandbox: World) -> None:
    agent = await agent_of(sandbox)
    assert (await agent.get("/api/practice", headers={HEADER: "not_found"})).status_code == 404
    await sandbox.import_file(PRACTICE.replace("SLUG", "sandbox"))
    assert rules(await agent.get("/api/practice", headers={HEADER: "not_found"})) == {HEADER: "unknown"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_outside_sandboxes_every_operation_does_what_openapi_says_of_the_header(
    world: World, operation: Operation
) -> None:
    document = (await world.anonymous().get("/openapi/v1.json")).json()
    described = document["paths"][operation.path][operation.method.lower()]
    [header] = [each for each in described["parameters"] if each["name"] == HEADER]
    assert f"422 `validation` (field `{HEADER}`, rule `unknown`)" in header["description"]
    assert "422" in described["responses"]

    path = "/api" + re.sub(r"{\w+}", "nonsense", operation.path)
    agent, unreadable = await world.client(), None if operation.method == "GET" else b"{"
    for value in ("internal", "nonsense", ""):
        answer = await agent.request(operation.method, path, content=unreadable, headers={HEADER: value})
        assert (answer.status_code, rules(answer)) == (422, {HEADER: "unknown"}), (value, answer.text)
    nobody, other = world.anonymous(), await world.client(scopes=["slots:read"])
    assert (await nobody.request(operation.method, path, headers={HEADER: "internal"})).status_code == 401
    if operation.scope not in (None, "slots:read"):
        refused = await other.request(operation.method, path, headers={HEADER: "internal"})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden_scope")


async def test_outside_sandboxes_a_write_with_the_header_is_not_executed_and_keeps_its_token(world: World) -> None:
    agent = await world.client()
    body = await challenged(agent)
    for code in SCENARIOS:
        assert rules(await post(agent, body, code)) == {HEADER: "unknown"}
    assert await appointments(agent) == []
    assert (await post(agent, body)).status_code == 201
