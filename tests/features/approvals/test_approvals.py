"""A write that the practice wants staff to approve: proposed by an agent, decided in the console, executed once."""

import asyncio
import hashlib
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from frontdesk.access.limits.write_limits import MAX_PENDING_APPROVALS
from frontdesk.app import build_app
from frontdesk.audit.verify import verify_chain
from frontdesk.doors.fhir.addresses import fhir_id
from frontdesk.outbound.webhooks.events import event_document, newest_events
from tests.console.admin_pages import text_of
from tests.console.desk import records, stored, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.doors.elicitation_hosts import CARDS, FORMS, modern
from tests.doors.test_elicitation import booked, booking
from tests.engine.test_consent import HARBOR, act, demand, recorded
from tests.features.switching import switch
from tests.fhir_server.fhir_calls import BASE
from tests.support.world import World, book, open_world, patient_id, slots

TOOL = "book_appointment"
APPROVALS = "/console/approvals"


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    await demand(world, bookAppointment="staff", cancelAppointment="staff")
    return await world.client()


async def proposed(agent: httpx.AsyncClient, wanted: dict[str, str]) -> dict[str, str]:
    """The request, with the token of its challenge."""
    answer = await agent.post("/api/appointments", json=wanted)
    assert answer.status_code == 428, answer.text
    return {**wanted, "confirmationToken": answer.json()["confirmationToken"]}


def approval_of(confirmed: dict[str, str]) -> str:
    return hashlib.sha256(confirmed["confirmationToken"].encode()).hexdigest()


async def decide(browser: httpx.AsyncClient, confirmed: dict[str, str], decision: str) -> int:
    return (await browser.post(f"{APPROVALS}/{approval_of(confirmed)}/{decision}")).status_code


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_what_staff_approve_is_executed_once_when_the_agent_sends_it_again(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    wanted = await booking(agent)
    challenge = await agent.post("/api/appointments", json=wanted)
    document = challenge.json()
    assert challenge.status_code == 428
    assert re.fullmatch("[0-9a-f]{32}", document["confirmationToken"])
    assert "staff member of the practice must approve" in document["detail"]
    assert document["expiresAt"] == "2026-11-15T12:00:00Z"
    confirmed = {**wanted, "confirmationToken": document["confirmationToken"]}
    for _ in range(2):
        waiting = await agent.post("/api/appointments", json=confirmed)
        assert code(waiting) == (403, "consent_required")
        assert "has not approved this change yet" in waiting.json()["detail"]
    assert await booked(world) == 0

    assert "1 change of an agent waits for approval" in words((await staff.get("/console/calendar")).text)
    shown = await staff.get(APPROVALS)
    page = shown.text
    assert "Patient Ada Lovelace When Monday, 16 November 2026, 09:00 (America/New_York)" in text_of(shown)
    assert wanted["patientId"] not in page
    assert document["confirmationToken"] not in page
    answer = await staff.post(f"{APPROVALS}/{approval_of(confirmed)}/approve")
    assert answer.headers["location"] == "/console/approvals?notice=change_approved"
    assert "Ada Lovelace" not in (await staff.get(APPROVALS)).text
    assert await booked(world) == 0, "an approval executes nothing"
    [event] = await newest_events(world.database, HARBOR, 1)
    assert event_document(event) == {
        "type": "approval.approved",
        "timestamp": "2026-11-15T08:00:00Z",
        "data": {
            "approvalId": approval_of(confirmed),
            "clientId": agent.headers["X-Test-Client"],
            "requestId": document["requestId"],
        },
    }

    answers = await asyncio.gather(*(agent.post("/api/appointments", json=confirmed) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert await booked(world) == 1
    appointment = answers[0].json()["appointmentId"]
    assert (await recorded(world, appointment))[-1] == (TOOL, "executed", "staff")
    [act] = await records(world, operation=TOOL, outcome="executed")
    assert staff.headers[TEST_STAFF] in act["subject_ids"], "the staff member who approved it"
    [decided] = await records(world, operation="console.approve_change")
    assert decided["actor"] == staff.headers[TEST_STAFF]
    assert set(decided["subject_ids"]) == {agent.headers["X-Test-Client"], wanted["patientId"]}
    [event] = await newest_events(world.database, HARBOR, 1)
    assert event_document(event)["data"]["consent"] == "staff"
    assert "agreed by a staff member" in words((await staff.get(f"/console/appointments/{appointment}")).text)
    assert not (await verify_chain(world.database, HARBOR, world.clock.now)).violations
    assert await stored(world, "SELECT FROM intent WHERE practice_id = $1 AND proposal IS NOT NULL") == []


async def test_an_approval_counts_at_every_door(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    wanted = await booking(agent)
    for capabilities in ({}, {**FORMS, **CARDS}):
        result = await modern(agent, TOOL, wanted, capabilities)
        text = result["content"][0]["text"]
        assert text.startswith("NOTHING HAS BEEN CHANGED YET.")
        assert "A staff member of the practice must approve it" in text
        assert "frontdesk/card" not in result.get("_meta", {})
        assert "must approve this change" in result["structuredContent"]["detail"]
    confirmed = {**wanted, "confirmationToken": result["structuredContent"]["confirmationToken"]}
    waiting = await modern(agent, TOOL, confirmed, {})
    assert waiting["isError"]
    assert waiting["structuredContent"]["code"] == "consent_required"
    assert await decide(staff, confirmed, "approve") == 303
    done = await modern(agent, TOOL, confirmed, {})
    again = await agent.post("/api/appointments", json=confirmed)
    assert again.json() == done["structuredContent"]
    assert await booked(world) == 1


@pytest.mark.parametrize("capabilities", [FORMS, CARDS, {**FORMS, **CARDS}])
async def test_no_host_stands_in_for_staff(world: World, agent: httpx.AsyncClient, capabilities: Any) -> None:
    trusted = await world.client(trusted_to_ask=True)
    wanted = await booking(trusted)
    result = await modern(trusted, TOOL, wanted, capabilities)
    assert result["resultType"] == "complete"
    confirmed = {**wanted, "confirmationToken": result["structuredContent"]["confirmationToken"]}
    refused = await modern(trusted, TOOL, confirmed, capabilities)
    assert refused["structuredContent"]["code"] == "consent_required"
    assert await booked(world) == 0


async def test_what_staff_refuse_is_never_executed(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    confirmed = await proposed(agent, await booking(agent))
    assert await decide(staff, confirmed, "refuse") == 303
    assert event_document((await newest_events(world.database, HARBOR, 1))[0])["type"] == "approval.refused"
    for demanded in ({"bookAppointment": "staff"}, {}):  # also if the practice demands less meanwhile
        await demand(world, **demanded)
        refused = await agent.post("/api/appointments", json=confirmed)
        assert code(refused) == (403, "consent_required")
        assert "has refused this change" in refused.json()["detail"]
    assert await decide(staff, confirmed, "approve") == 409, "decided once"
    assert await booked(world) == 0
    assert len(await records(world, operation="console.refuse_change")) == 1


async def test_a_pending_change_is_not_executed_after_the_demand_has_ended(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    confirmed = await proposed(agent, await booking(agent))
    await demand(world)
    assert code(await agent.post("/api/appointments", json=confirmed)) == (403, "consent_required")
    assert await decide(staff, confirmed, "approve") == 303
    done = await agent.post("/api/appointments", json=confirmed)
    assert (await recorded(world, done.json()["appointmentId"]))[-1] == (TOOL, "executed", "staff")


async def test_an_approval_is_of_one_request_of_one_client_for_its_time(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    wanted = await booking(agent)
    confirmed = await proposed(agent, wanted)
    assert await decide(staff, confirmed, "approve") == 303
    other = {**await booking(agent, at=3), "confirmationToken": confirmed["confirmationToken"]}
    assert code(await agent.post("/api/appointments", json=other)) == (409, "confirmation_mismatch")
    stranger = await world.client()
    assert (await stranger.post("/api/appointments", json=confirmed)).status_code == 428, "a proposal of its own"
    integration = await world.client(grant="integration")
    assert code(await integration.post("/api/appointments", json=wanted)) == (403, "consent_required")
    world.clock.advance(hours=4)
    await world.renew(agent)
    expired = await agent.post("/api/appointments", json=confirmed)
    assert expired.status_code == 428
    assert expired.json()["confirmationToken"] != confirmed["confirmationToken"]
    late = {**wanted, "confirmationToken": expired.json()["confirmationToken"]}
    world.clock.advance(hours=4)
    staff = await signed_in(world)
    assert await decide(staff, late, "approve") == 409
    assert "Ada Lovelace" not in (await staff.get(APPROVALS)).text
    assert await booked(world) == 0


@pytest.mark.parametrize("operation", ["cancelAppointment", "confirmAttendance", "rescheduleAppointment"])
async def test_an_approval_is_of_the_appointment_as_staff_saw_it(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient, operation: str
) -> None:
    """It is moved between the approval and the agent's next call."""
    await demand(world)
    appointment, free = await book(agent), await slots(agent)
    await demand(world, **{operation: "staff"})
    path = f"/api/appointments/{appointment}"
    wanted = {"slotId": free[0]["id"]} if operation == "rescheduleAppointment" else {}

    async def send(confirmed: dict[str, str]) -> httpx.Response:
        return await agent.post(f"{path}/{re.split('[A-Z]', operation)[0]}", json=confirmed)

    confirmed = {**wanted, "confirmationToken": (await send(wanted)).json()["confirmationToken"]}
    assert await decide(staff, confirmed, "approve") == 303
    await act(world, "reschedule_appointment", {"appointmentId": appointment, "slotId": free[3]["id"]})
    moved = (await agent.get(path)).json()
    changed = await send(confirmed)
    assert changed.status_code == 428, changed.text
    assert changed.json()["readBack"].get("rescheduledFrom", changed.json()["readBack"]["start"]) == moved["start"]
    assert (await agent.get(path)).json() == moved, "nothing was executed"
    confirmed["confirmationToken"] = changed.json()["confirmationToken"]
    assert code(await send(confirmed)) == (403, "consent_required")
    assert await decide(staff, confirmed, "approve") == 303
    assert (await send(confirmed)).status_code == 200


async def test_approved_changes_of_patients_are_executed(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    await demand(world, createPatient="staff", updatePatient="staff")
    marie = {"firstName": "Marie", "lastName": "Curie", "dob": "1867-11-07", "phone": "+1 555 010 0155"}
    alan = f"/api/patients/{await patient_id(agent, 'Alan')}"
    for method, path, body in (
        ("POST", "/api/patients", marie),
        ("PATCH", alan, {"lastName": "Mathison", "email": None, "dob": "1912-06-24"}),
    ):
        challenge = await agent.request(method, path, json=body)
        confirmed = {**body, "confirmationToken": challenge.json()["confirmationToken"]}
        assert await decide(staff, confirmed, "approve") == 303
        assert (await agent.request(method, path, json=confirmed)).is_success
    assert (await agent.get(alan)).json()["lastName"] == "Mathison"


async def test_only_staff_of_the_practice_with_a_session_decide(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    confirmed = await proposed(agent, await booking(agent))
    stranger = await signed_in(world, "admin", practice="other")
    assert "Ada Lovelace" not in (await stranger.get(APPROVALS)).text
    assert await decide(stranger, confirmed, "approve") == 409
    for unknown in ("00" * 32, "not-an-id"):
        assert (await staff.post(f"{APPROVALS}/{unknown}/approve")).status_code == 409
    signed_out = await signed_in(world)
    await signed_out.post("/console/sign-out")
    assert (await signed_out.post(f"{APPROVALS}/{approval_of(confirmed)}/approve")).status_code != 409
    assert (await agent.post(f"{APPROVALS}/{approval_of(confirmed)}/approve")).status_code in (303, 401, 403)
    assert code(await agent.post("/api/appointments", json=confirmed)) == (403, "consent_required")
    assert await decide(staff, confirmed, "approve") == 303
    assert len(await records(world, operation="console.approve_change")) == 1


async def test_decisions_and_resends_at_two_nodes_at_once_execute_it_at_most_once(
    world: World, agent: httpx.AsyncClient
) -> None:
    node = await open_world(world.database, world.service.settings.data_dir)
    node.clock.now = world.clock.now
    one, two = await signed_in(world), await signed_in(node)
    elsewhere = httpx.AsyncClient(transport=node.transport, base_url="http://test", headers=agent.headers, timeout=30)
    executed = 0
    async with elsewhere:
        for number in range(4):
            confirmed = await proposed(agent, await booking(agent, at=number))
            decisions = ("approve", "approve") if number % 2 else ("approve", "refuse")
            first, second, *_ = await asyncio.gather(
                decide(one, confirmed, decisions[0]),
                decide(two, confirmed, decisions[1]),
                *(each.post("/api/appointments", json=confirmed) for each in (agent, elsewhere)),
            )
            assert sorted((first, second)) == [303, 409], "decided once"
            approved = first == 303 or decisions[1] == "approve"
            answers = [await each.post("/api/appointments", json=confirmed) for each in (agent, elsewhere)]
            assert {answer.status_code for answer in answers} == ({201} if approved else {403})
            assert len({answer.json().get("appointmentId") for answer in answers}) == 1
            executed += approved
            assert await booked(world) == executed
    decided = [*await records(world, operation="console.approve_change"),
               *await records(world, operation="console.refuse_change")]  # fmt: skip
    assert len(decided) == 4


async def test_an_agent_cannot_flood_staff_with_proposals(world: World, agent: httpx.AsyncClient) -> None:
    first = await proposed(agent, await booking(agent))
    again = await proposed(agent, await booking(agent))
    assert code(await agent.post("/api/appointments", json=again)) == (403, "consent_required")
    assert (await agent.post("/api/appointments", json=first)).status_code == 428, "the later one took its place"
    ada, free = await patient_id(agent), await slots(agent, to="2026-11-20")
    bodies = [{"patientId": ada, "slotId": slot["id"]} for slot in free[1 : MAX_PENDING_APPROVALS + 4]]
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for body in bodies))
    allowed = [answer.status_code for answer in answers].count(428)
    assert allowed == MAX_PENDING_APPROVALS - 1
    refused = next(answer for answer in answers if answer.status_code != 428)
    assert code(refused) == (429, "rate_limited")
    assert "waiting for the approval of staff" in refused.json()["detail"]
    assert 0 < int(refused.headers["retry-after"]) <= 4 * 3600
    pending = await stored(world, "SELECT FROM intent WHERE practice_id = $1 AND approval = 'pending'")
    assert len(pending) == MAX_PENDING_APPROVALS
    other = await world.client()
    assert (await other.post("/api/appointments", json=bodies[0])).status_code == 428


async def test_the_read_back_that_staff_see_names_the_patient(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    await demand(world)
    appointment = await book(agent)
    await demand(world, cancelAppointment="staff", createPatient="staff", updatePatient="staff")
    grace = {"firstName": "Marie", "lastName": "Curie", "dob": "1867-11-07", "phone": "+1 555 010 0155"}
    for method, path, body in (
        ("POST", f"/api/appointments/{appointment}/cancel", {"reason": "Travelling"}),
        ("POST", "/api/patients", grace),
        ("PATCH", f"/api/patients/{await patient_id(agent, 'Alan')}", {"lastName": "Mathison", "email": None}),
    ):
        answer = await agent.request(method, path, json=body)
        assert answer.status_code == 428, answer.text
    page = text_of(await staff.get(APPROVALS))
    for text in ("Ada Lovelace", "Reason Travelling", "Marie Curie", "Alan Mathison", "Name until now Alan Turing"):
        assert text in page, text
    assert "E-mail removed" in page
    [looked] = await records(world, operation="console.approvals")
    assert appointment in looked["subject_ids"]


async def test_without_the_feature_agents_are_refused_and_staff_act_themselves(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    confirmed = await proposed(agent, await booking(agent))
    await switch(world, {"approvals": {"enabled": False}})
    assert (await staff.get(APPROVALS)).status_code == 404
    assert code(await agent.post("/api/appointments", json=await booking(agent))) == (403, "consent_required")
    assert code(await agent.post("/api/appointments", json=confirmed)) == (403, "consent_required")
    done = await act(world, TOOL, await booking(agent))
    assert (await recorded(world, done["appointmentId"]))[-1] == (TOOL, "executed", "staff")


async def test_a_fhir_client_waits_for_staff_like_any_agent(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    await demand(world)
    appointment = await book(agent)
    await demand(world, cancelAppointment="staff")
    service = replace(world.service, settings=world.service.settings.model_copy(update={"fhir_server": True}))
    transport = httpx.ASGITransport(app=build_app(service))
    address, body = f"{BASE}/Appointment/{fhir_id(appointment)}/$cancel", {"resourceType": "Parameters"}
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=agent.headers) as http:
        challenge = await http.post(address, json=body)
        assert challenge.status_code == 428, challenge.text
        assert "must approve this change" in challenge.json()["issue"][0]["diagnostics"]
        token = challenge.json()["extension"][0]["extension"][0]["valueString"]
        sent = {"Frontdesk-Confirmation-Token": token}
        assert (await http.post(address, json=body, headers=sent)).status_code == 403
        assert await decide(staff, {"confirmationToken": token}, "approve") == 303
        assert (await http.post(address, json=body, headers=sent)).json()["status"] == "cancelled"
    assert (await recorded(world, appointment))[-1] == ("cancel_appointment", "executed", "staff")
