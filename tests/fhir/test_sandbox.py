"""Frontdesk-Simulate at a sandbox practice whose calendar lives in a FHIR server: the same codes, the same effects."""

import pytest

from frontdesk.domain.errors import CATALOGUE
from frontdesk.engine.sandbox import HEADER, SCENARIOS
from tests.fhir.calls import booking, challenged
from tests.fhir.misbehaving import lose_answers
from tests.fhir.practice import Upstream, file_text, settle
from tests.support.world import World

EXECUTED = ("confirmation_incomplete", "internal")
REFUSALS = [code for code in SCENARIOS if code not in (*EXECUTED, "confirmation_required")]


@pytest.fixture
async def sandbox(fhir: World, upstream: Upstream) -> World:
    text = file_text("harbor", upstream.door.address)
    await fhir.import_file(text.replace("slug: harbor,", "slug: harbor, sandbox: true,", 1))
    return fhir


async def test_every_refusal_executes_nothing_and_its_token_still_works(sandbox: World, upstream: Upstream) -> None:
    agent = await sandbox.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.reset()
    for code in REFUSALS:
        refused = await agent.post("/api/appointments", json=body, headers={HEADER: code})
        assert (refused.status_code, refused.json()["code"]) == (CATALOGUE[code].status, code)
    assert not [request for request in upstream.door.seen if request.is_write]
    booked = await agent.post("/api/appointments", json=body)
    assert booked.status_code == 201
    assert len(await upstream.live_appointments()) == 1


@pytest.mark.parametrize("code", EXECUTED)
async def test_what_has_executed_is_answered_by_a_resend(sandbox: World, upstream: Upstream, code: str) -> None:
    agent = await sandbox.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    for _ in range(2):
        lost = await agent.post("/api/appointments", json=body, headers={HEADER: code})
        assert (lost.status_code, lost.json()["code"]) == (CATALOGUE[code].status, code)
    await settle(sandbox)
    known = await agent.post("/api/appointments", json=body)
    assert known.status_code == 201, known.text
    [item] = (await agent.get("/api/appointments")).json()["items"]
    assert known.json()["appointmentId"] == item["id"]
    assert len(await upstream.live_appointments()) == 1


async def test_an_incomplete_write_under_a_key_is_answered_by_the_same_key(sandbox: World, upstream: Upstream) -> None:
    integration = await sandbox.client(grant="integration")
    body, key = await booking(integration), {"Idempotency-Key": "first"}
    lost = await integration.post("/api/appointments", json=body, headers={**key, HEADER: "confirmation_incomplete"})
    assert lost.json()["code"] == "confirmation_incomplete"
    known = await integration.post("/api/appointments", json=body, headers=key)
    assert known.status_code == 201
    assert len(await upstream.live_appointments()) == 1


async def test_an_outcome_that_is_unknown_indeed_stays_so_without_the_header(
    sandbox: World, upstream: Upstream
) -> None:
    agent = await sandbox.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.harm = lose_answers
    for header in ({}, {HEADER: "confirmation_incomplete"}, {HEADER: "internal"}, {}):
        lost = await agent.post("/api/appointments", json=body, headers=header)
        assert (lost.status_code, lost.json()["code"]) == (409, "confirmation_incomplete")
    upstream.door.reset()
    await settle(sandbox)
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert len(await upstream.live_appointments()) == 1


async def test_a_simulation_does_not_ask_the_server(sandbox: World, upstream: Upstream) -> None:
    """A sandbox shows every error also while its server is away."""
    agent = await sandbox.client()
    assert (await agent.get("/api/practice")).status_code == 200
    await upstream.door.close()
    for code in ("not_found", "upstream_unavailable", "rate_limited"):
        answer = await agent.get("/api/appointments", headers={HEADER: code})
        assert (answer.status_code, answer.json()["code"]) == (CATALOGUE[code].status, code)


async def test_outside_sandboxes_the_header_is_refused_and_nothing_is_executed(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.reset()
    refused = await agent.post("/api/appointments", json=body, headers={HEADER: "confirmation_incomplete"})
    assert (refused.status_code, refused.json()["code"]) == (422, "validation")
    assert upstream.door.seen == []
