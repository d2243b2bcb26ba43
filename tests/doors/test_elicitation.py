"""A host asks its user before a write, in both generations: only a yes executes it, once, and says so in the audit."""

from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest

from frontdesk.app import build_app
from frontdesk.doors.mcp import elicitation
from tests.assistants.connecting import connected
from tests.console.signing_in import signed_in
from tests.doors.elicitation_hosts import (
    CANCEL,
    DECLINE,
    FORMS,
    NOT_TICKED,
    YES,
    answered,
    modern,
    modern_call,
    open_call,
    posted,
    reply,
    session_of,
)
from tests.doors.mcp_speech import error, headers, request
from tests.engine.test_consent import HARBOR, demand, recorded
from tests.support.world import World, book, open_world, patient_id, slots

TOOL = "book_appointment"


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    await demand(world, bookAppointment="elicitation", cancelAppointment="elicitation")
    return await world.client(trusted_to_ask=True)


async def booking(agent: httpx.AsyncClient, at: int = 0) -> dict[str, str]:
    return {"patientId": await patient_id(agent), "slotId": (await slots(agent))[at]["id"]}


async def booked(world: World) -> int:
    async with world.database.transaction(HARBOR) as connection:
        count: int = await connection.fetchval("SELECT count(*) FROM appointment WHERE practice_id = $1", HARBOR)
    return count


async def test_a_modern_host_asks_its_user_and_sends_the_call_again(world: World, agent: httpx.AsyncClient) -> None:
    wanted = await booking(agent)
    asked = await modern(agent, TOOL, wanted)
    assert asked["resultType"] == "input_required"
    assert "content" not in asked
    params = asked["inputRequests"]["confirm"]["params"]
    assert (asked["inputRequests"]["confirm"]["method"], params["mode"]) == ("elicitation/create", "form")
    assert params["requestedSchema"]["required"] == ["confirm"]
    assert params["message"].splitlines() == [
        "Book an appointment?",
        "Patient: Ada Lovelace",
        "When: Monday, 16 November 2026, 09:00-09:15 (America/New_York)",
        "With: Dr. Robert Chen",
        "Where: Downtown",
        "Visit: Follow-up",
        "For: Follow-up visit",
        "Nothing has been changed yet.",
    ]
    for silence in (None, {}, {"action": "accept"}, {"action": "accept", "content": {"confirm": "yes"}}, 7):
        again = await answered(agent, TOOL, wanted, asked, silence)
        assert again["resultType"] == "input_required", "it asks again"
    assert await booked(world) == 0

    done = await answered(agent, TOOL, wanted, asked, YES)
    assert (done["resultType"], done["isError"]) == ("complete", False)
    appointment = done["structuredContent"]["appointmentId"]
    assert (await recorded(world, appointment))[-1] == (TOOL, "executed", "elicitation")
    assert (await answered(agent, TOOL, wanted, asked, YES))["structuredContent"] == done["structuredContent"]
    assert await booked(world) == 1


@pytest.mark.parametrize("no", [DECLINE, CANCEL, NOT_TICKED], ids=["decline", "cancel", "not ticked"])
async def test_a_no_changes_nothing_and_cannot_become_a_yes(world: World, agent: httpx.AsyncClient, no: Any) -> None:
    wanted = await booking(agent)
    asked = await modern(agent, TOOL, wanted)
    refused = await answered(agent, TOOL, wanted, asked, no)
    assert refused["isError"]
    assert refused["structuredContent"]["code"] == "consent_required"
    assert (await answered(agent, TOOL, wanted, asked, YES))["resultType"] == "input_required", "a new question"
    session = await session_of(agent)
    async with open_call(world.transport.app, agent, session, TOOL, wanted) as call:
        assert await reply(agent, call.messages[0], no) == 202
        await call.until("consent_required")
        assert await reply(agent, call.messages[0], YES) == 202, "too late"
    assert await booked(world) == 0


async def test_a_state_is_good_for_its_client_its_write_and_its_time_only(
    world: World, agent: httpx.AsyncClient
) -> None:
    wanted, other_wanted = await booking(agent), await booking(agent, at=3)
    asked = await modern(agent, TOOL, wanted)
    state = asked["requestState"]
    for forged in (state + "A", state[:-2], "", "x", 7, state.swapcase(), (await modern(agent, TOOL, wanted, {}))):
        message = modern_call(TOOL, wanted, inputResponses={"confirm": YES}, requestState=forged)
        assert error(await posted(agent, message), 400)["code"] == -32602
    stranger = await world.client(trusted_to_ask=True)
    stolen = modern_call(TOOL, wanted, inputResponses={"confirm": YES}, requestState=state)
    assert error(await posted(stranger, stolen), 400)["code"] == -32602
    other = await answered(agent, TOOL, other_wanted, asked, YES)
    assert other["structuredContent"]["code"] == "confirmation_mismatch"
    token = {"confirmationToken": state}
    assert (await modern(agent, TOOL, {**wanted, **token}))["resultType"] == "input_required", "no argument is a yes"
    world.clock.advance(minutes=11)
    assert (await answered(agent, TOOL, wanted, asked, YES))["resultType"] == "input_required", "expired"
    assert await booked(world) == 0


async def test_a_host_that_cannot_ask_is_refused_where_it_is_demanded(world: World, agent: httpx.AsyncClient) -> None:
    wanted = await booking(agent)
    for capabilities in ({}, {"sampling": {}}, {"elicitation": {"url": {}}}, {"elicitation": None}):
        refused = await modern(agent, TOOL, wanted, capabilities)
        assert refused["structuredContent"]["code"] == "consent_required"
        session = await session_of(agent, capabilities)
        message = request("tools/call", {"name": TOOL, "arguments": wanted})
        sent = {**headers(message, "2025-11-25"), "Mcp-Session-Id": session or ""}
        answer = await agent.post("/mcp", json=message, headers=sent)
        assert (
            orjson.loads(answer.content.split(b"data: ")[1])["result"]["structuredContent"]["code"]
            == "consent_required"
        )
    assert (await modern(agent, TOOL, wanted, {"elicitation": {"form": {}}}))["resultType"] == "input_required"
    # Without a demand, a client with credentials of its own gets what it always got.
    await demand(world)
    proposed = await modern(agent, TOOL, wanted)
    assert proposed["resultType"] == "complete"
    assert proposed["structuredContent"]["code"] == "confirmation_required"
    assert await session_of(agent) is None


async def test_an_earlier_host_is_asked_on_the_stream_and_answers_at_another_node(
    world: World, agent: httpx.AsyncClient
) -> None:
    app, wanted = world.transport.app, await booking(agent)
    node = await open_world(world.database, world.service.settings.data_dir)
    node.clock.now = world.clock.now
    elsewhere = httpx.AsyncClient(transport=node.transport, base_url="http://test", headers=agent.headers, timeout=30)
    for version in ("2025-06-18", "2025-11-25"):
        assert await session_of(agent, FORMS, version)
    session = await session_of(agent)
    async with elsewhere, open_call(app, agent, session, TOOL, wanted) as call:
        question = call.messages[0]
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"].startswith("Book an appointment?")
        stranger = await world.client(trusted_to_ask=True)
        assert await reply(stranger, question, YES) == 400, "another client's answer"
        assert await reply(agent, {"id": question["id"][:-1]}, YES) == 400
        assert await reply(elsewhere, question, YES) == 202
        await call.until("appointmentId")
        await call.until_ended()
    result = call.messages[-1]["result"]
    assert call.messages[-1]["id"] == "r-1"
    assert (await recorded(world, result["structuredContent"]["appointmentId"]))[-1][2] == "elicitation"
    forged = session[:-1] + ("A" if session[-1] != "A" else "B") if session else ""
    async with open_call(app, agent, forged, TOOL, await booking(agent)) as call:
        assert call.messages[0]["result"]["structuredContent"]["code"] == "consent_required"
    assert await booked(world) == 1


async def test_what_the_practice_demands_meanwhile_holds_for_the_answer(world: World, agent: httpx.AsyncClient) -> None:
    session, wanted = await session_of(agent), await booking(agent)
    async with open_call(world.transport.app, agent, session, TOOL, wanted) as call:
        await demand(world, bookAppointment="staff")
        world.clock.advance(seconds=6)
        assert await reply(agent, call.messages[0], YES) == 202
        await call.until_ended()
    assert call.messages[-1]["result"]["structuredContent"]["code"] == "consent_required"
    assert await booked(world) == 0


async def test_without_an_answer_nothing_is_changed(
    world: World, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, wanted, session = world.transport.app, await booking(agent), await session_of(agent)
    async with open_call(app, agent, session, TOOL, wanted) as call:
        call.leave()
        await call.until_ended()
        await reply(agent, call.messages[0], YES)
    monkeypatch.setattr(elicitation, "MAX_QUESTIONS", 1)
    async with open_call(app, agent, session, TOOL, wanted), open_call(app, agent, session, TOOL, wanted) as second:
        assert second.messages[0]["result"]["structuredContent"]["code"] == "rate_limited"
    impatient = await open_world(world.database, world.service.settings.data_dir)
    object.__setattr__(impatient.service.engine.writes, "token_lifetime", timedelta(seconds=1))
    async with open_call(build_app(impatient.service), agent, session, TOOL, wanted) as call:
        await call.until("consent_required")
    assert await booked(world) == 0


async def test_the_user_of_a_trusted_assistant_is_asked_without_any_demand(world: World) -> None:
    browser = await signed_in(world, "admin")
    assistant = await connected(world, browser, trusted_to_ask=True)
    agent = await world.client()
    appointment = await book(agent)
    person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
    await modern(assistant.http, "match_patient", person)
    wanted = {"appointmentId": appointment, "reason": "Travelling"}
    asked = await modern(assistant.http, "cancel_appointment", wanted)
    message = asked["inputRequests"]["confirm"]["params"]["message"]
    assert "Patient: Ada Lovelace\n" in message
    assert "Reason: Travelling\n" in message
    assert "apt_" not in message
    assert "pat_" not in message
    done = await answered(assistant.http, "cancel_appointment", wanted, asked, YES)
    assert done["structuredContent"]["status"] == "cancelled"
    assert (await recorded(world, appointment))[-1] == ("cancel_appointment", "executed", "elicitation")
    plain = await modern(assistant.http, TOOL, await booking(agent), {})
    assert plain["structuredContent"]["code"] == "confirmation_required", "a host without elicitation: text and token"
