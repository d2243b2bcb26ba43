"""An agent that confirms its own writes: its limits end what it does, exactly, on every node and door."""

import asyncio
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits, change_client
from tests.doors.mcp_speech import framed, send
from tests.security.test_patient_budget import advance, events, outcomes, second_node
from tests.support.world import World, book, confirmed, patient_id, slots

KEPT = "Nothing was executed; a confirmation token stays valid until it expires."


def limited(message: httpx.Response, detail: str) -> None:
    problem = message.json()
    assert (message.status_code, problem["code"]) == (429, "rate_limited"), message.text
    assert detail in problem["detail"]
    assert KEPT in problem["detail"]
    assert int(message.headers["retry-after"]) > 0


async def challenges(agent: httpx.AsyncClient, count: int, first: str = "Ada") -> list[dict[str, Any]]:
    """Bookings that are proposed but not confirmed, of as many times."""
    patient, free = await patient_id(agent, first), await slots(agent)
    bodies = []
    for slot in free[:count]:
        body = {"patientId": patient, "slotId": slot["id"]}
        answer = await agent.post("/api/appointments", json=body)
        assert answer.status_code == 428, answer.text
        bodies.append({**body, "confirmationToken": answer.json()["confirmationToken"]})
    return bodies


async def booked_times(world: World) -> int:
    async with world.database.transaction(1) as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM appointment WHERE status <> 'cancelled'")
    return found


@pytest.mark.parametrize(("grant", "expected"), [("agent", (200, 20)), ("integration", (0, 0))])
async def test_new_practices_limit_the_writes_of_agents(world: World, grant: str, expected: tuple[int, int]) -> None:
    client = await world.client(grant=grant)
    limits = (await world.service.authenticator.identify(client.headers["Authorization"][7:])).limits
    assert (limits.writes_per_hour, limits.upcoming_per_patient) == expected


async def test_an_agent_cannot_book_a_clinic_out(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(writes_per_hour=3, upcoming_per_patient=0))
    client_id = agent.headers["X-Test-Client"]
    bodies = await challenges(agent, 5)
    answers = [await agent.post("/api/appointments", json=body) for body in bodies]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429, 429]
    limited(answers[3], "This client may execute book_appointment 3 times an hour.")
    assert answers[3].headers["retry-after"] == "3660"  # it counts by whole minutes
    assert await booked_times(world) == 3

    # Over MCP as well, and before there is a token.
    without_token = {name: bodies[4][name] for name in ("patientId", "slotId")}
    limited(await agent.post("/api/appointments", json=without_token), "book_appointment 3 times an hour")
    tool = framed(await send(agent, "tools/call", {"name": "book_appointment", "arguments": bodies[3]}))["result"]
    assert tool["isError"]
    assert "book_appointment 3 times an hour" in tool["content"][0]["text"]

    # Each refusal is recorded, the first raises an alarm, and each kind of write is counted by itself.
    assert (await outcomes(world, agent, "book_appointment"))[-4:] == ["rate_limited"] * 4
    reached = ("client.writeLimitReached", {"clientId": client_id, "limit": "writesPerHour"})
    assert await events(world) == [reached]
    assert world.service.engine.refusals == {"writes_per_hour": 4}
    appointment = f"/api/appointments/{answers[0].json()['appointmentId']}"
    assert (await confirmed(agent, "POST", f"{appointment}/cancel", {})).status_code == 200

    # What was executed before is answered as ever. A refused token works once the limit allows it.
    assert (await agent.post("/api/appointments", json=bodies[0])).json() == answers[0].json()
    more = AccessLimits(writes_per_hour=4, upcoming_per_patient=0)
    await change_client(world.database, client_id, access_limits=more, clock=world.clock)
    world.service.authenticator.on_change("client", client_id)
    assert (await agent.post("/api/appointments", json=bodies[3])).status_code == 201
    assert (await agent.post("/api/appointments", json=bodies[4])).status_code == 429

    # The window moves on.
    await advance(world, agent, minutes=60)
    limited(await agent.post("/api/appointments", json=without_token), "book_appointment 4 times an hour")
    await advance(world, agent, minutes=1)
    assert (await confirmed(agent, "POST", "/api/appointments", without_token)).status_code == 201
    async with world.database.transaction(1) as connection:
        counted = await connection.fetch("SELECT writes FROM write_count WHERE operation = 'book_appointment'")
    assert [row["writes"] for row in counted] == [1], "what no window counts any more is deleted"
    assert await events(world) == [reached, reached]


async def test_write_limits_are_exact_on_two_nodes_at_once(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(writes_per_hour=5, upcoming_per_patient=0))
    bodies = await challenges(agent, 12)
    async with second_node(world) as other:
        twin = other.anonymous()
        twin.headers["Authorization"] = agent.headers["Authorization"]
        calls = [
            (agent, twin)[at % 2].post("/api/appointments", json=body) for at, body in enumerate(bodies + bodies[:4])
        ]
        answers = await asyncio.gather(*calls)
    executed = {answer.json()["appointmentId"] for answer in answers if answer.status_code == 201}
    assert len(executed) == await booked_times(world) == 5
    assert {answer.status_code for answer in answers} == {201, 429}
    assert len(await events(world)) == 1


async def test_an_agent_cannot_pile_up_appointments_of_a_patient(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(upcoming_per_patient=2))
    first, _, _, _, another, *_, last = bodies = await challenges(agent, 8)
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for body in bodies[:2]))
    assert [answer.status_code for answer in answers] == [201, 201]
    refusal = await agent.post("/api/appointments", json=another)
    limited(refusal, "This client may have booked 2 upcoming appointments for one patient.")
    assert "Cancel one of them first." in refusal.json()["detail"]
    assert await events(world) == [
        ("client.writeLimitReached", {"clientId": agent.headers["X-Test-Client"], "limit": "upcomingPerPatient"})
    ]

    # Other patients and other clients are not affected, nor is a move.
    await book(agent, "Alan")
    await book(await world.client())
    moved = f"/api/appointments/{answers[0].json()['appointmentId']}"
    assert (await confirmed(agent, "POST", f"{moved}/reschedule", {"slotId": last["slotId"]})).status_code == 200
    assert (await agent.post("/api/appointments", json=another)).status_code == 429

    # One that is cancelled, or has begun, counts no more.
    assert (await confirmed(agent, "POST", f"{moved}/cancel", {})).status_code == 200
    assert (await agent.post("/api/appointments", json=another)).status_code == 201
    again = {"patientId": first["patientId"], "slotId": first["slotId"]}
    assert (await agent.post("/api/appointments", json=again)).status_code == 429
    await advance(world, agent, days=2)
    free = (await slots(agent, **{"from": "2026-11-18", "to": "2026-11-18"}))[0]
    assert (await confirmed(agent, "POST", "/api/appointments", {**again, "slotId": free["id"]})).status_code == 201


async def test_many_bookings_of_one_patient_at_once_stop_at_the_limit(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(upcoming_per_patient=3))
    bodies = await challenges(agent, 8)
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [429] * 5
    assert await booked_times(world) == 3


async def test_limits_that_an_integration_was_given_hold_without_a_challenge(world: World) -> None:
    unlimited = await world.client(grant="integration")
    bounded = await world.client(grant="integration", access_limits=AccessLimits(writes_per_hour=1))
    patient, free = await patient_id(bounded), await slots(bounded)
    bodies = [{"patientId": patient, "slotId": slot["id"]} for slot in free[:6]]
    key = {"Idempotency-Key": "one"}
    assert (await bounded.post("/api/appointments", json=bodies[0], headers=key)).status_code == 201
    assert (await bounded.post("/api/appointments", json=bodies[1])).status_code == 429
    refused = {"Idempotency-Key": "two"}
    assert (await bounded.post("/api/appointments", json=bodies[1], headers=refused)).status_code == 429
    assert (await bounded.post("/api/appointments", json=bodies[0], headers=key)).status_code == 201
    for body in bodies[1:]:
        assert (await unlimited.post("/api/appointments", json=body)).status_code == 201
    await advance(world, bounded, minutes=62)
    await world.renew(unlimited)
    last = {"patientId": patient, "slotId": (await slots(bounded))[0]["id"]}
    assert (await bounded.post("/api/appointments", json=last, headers=refused)).status_code == 201


async def test_a_write_that_is_not_executed_costs_nothing(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(writes_per_hour=1))
    taken, free, other = await challenges(agent, 3)
    await book(await world.client(), "Alan")
    assert (await agent.post("/api/appointments", json=taken)).status_code == 409
    assert (await agent.post("/api/appointments", json=free)).status_code == 201
    assert (await agent.post("/api/appointments", json=other)).status_code == 429


async def test_each_kind_of_write_has_a_budget_of_its_own(world: World) -> None:
    """New patients, updates, moves, confirmations and cancellations are limited like bookings."""
    agent = await world.client(access_limits=AccessLimits(writes_per_hour=1))
    appointments = [f"/api/appointments/{await book(await world.client(), first)}" for first in ("Ada", "Alan")]
    patients = [f"/api/patients/{await patient_id(agent, first)}" for first in ("Ada", "Alan")]
    slots_left = [{"slotId": slot["id"]} for slot in await slots(agent)]
    people = [{"firstName": name, "lastName": "S", "dob": "1990-01-01", "phone": "5550100188"} for name in ("M", "C")]
    writes: list[tuple[str, str, list[str], list[dict[str, Any]]]] = [
        ("create_patient", "POST", ["/api/patients"] * 2, people),
        ("update_patient", "PATCH", patients, [{"email": "one@example.com"}, {"email": "two@example.com"}]),
        ("confirm_attendance", "POST", [f"{each}/confirm" for each in appointments], [{}, {}]),
        ("reschedule_appointment", "POST", [f"{each}/reschedule" for each in appointments], slots_left[:2]),
        ("cancel_appointment", "POST", [f"{each}/cancel" for each in appointments], [{}, {}]),
    ]
    for operation, method, (first, second), (done, refused) in writes:
        assert (await confirmed(agent, method, first, done)).is_success
        limited(await agent.request(method, second, json=refused), f"execute {operation} 1 times an hour")


async def test_a_write_that_changes_nothing_is_not_counted(world: World) -> None:
    agent, other = await world.client(access_limits=AccessLimits(writes_per_hour=1)), await world.client()
    first, second = [f"/api/appointments/{await book(other, name)}/confirm" for name in ("Ada", "Alan")]
    for client in (other, agent, agent):
        assert (await confirmed(client, "POST", first, {})).status_code == 200
    assert (await confirmed(agent, "POST", second, {})).status_code == 200
    limited(await agent.post(first, json={}), "execute confirm_attendance 1 times an hour")
