"""An agent that exports the practice by reading: its budgets of distinct patients end it, on every node and door."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson

from frontdesk.access.clients.records import AccessLimits
from frontdesk.app import build_app, build_service
from tests.doors.mcp_speech import framed, send
from tests.support.shared_database import opened
from tests.support.world import MONDAY, PRACTICE, World, book, page_through, patient_id, slots

PATIENTS = 100

_APPOINTMENTS = """
INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id, procedure_id,
    lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
SELECT practice_id, 'apt_' || substr(patient_id, 5), patient_id, 10, 1, 21, 101, 1, day, day + interval '15 minutes',
    day + interval '15 minutes', 'cancelled', 'staff', now(), now()
FROM (SELECT *, $2::timestamptz + number * interval '1 minute' AS day FROM patient WHERE practice_id = $1) p
"""


async def fill(world: World) -> None:
    """A practice with many patients, each with an appointment."""
    people = "".join(
        f'  - {{number: {number}, firstName: P{number}, lastName: Smith, dob: 1980-01-01, phone: "555 {number:07}"}}\n'
        for number in range(5, PATIENTS + 1)
    )
    await world.import_file(PRACTICE.replace("SLUG", "harbor") + people)
    async with world.database.transaction(1) as connection:
        await connection.execute(_APPOINTMENTS, 1, world.clock.now)


async def export(agent: httpx.AsyncClient) -> tuple[set[str], httpx.Response | None]:
    """Lists every appointment and reads every patient; the patients that were disclosed, and the first refusal."""
    disclosed: set[str] = set()
    query: dict[str, Any] = {"limit": 6}
    while True:
        page = await agent.get("/api/appointments", params=query)
        if page.status_code != 200:
            return disclosed, page
        for item in page.json()["items"]:
            disclosed.add(item["patientId"])
            record = await agent.get(f"/api/patients/{item['patientId']}")
            assert record.status_code == 200, "a patient that was counted costs nothing"
        if "nextCursor" not in page.json():
            return disclosed, None
        query["cursor"] = page.json()["nextCursor"]


async def events(world: World) -> list[tuple[str, dict[str, str]]]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT type, subject FROM outbox WHERE type LIKE 'client.%' ORDER BY event_id")
    return [(row["type"], orjson.loads(row["subject"])) for row in rows]


async def outcomes(world: World, client: httpx.AsyncClient, operation: str) -> list[str]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch(
            "SELECT outcome FROM audit_record WHERE actor = $1 AND operation = $2 ORDER BY record_id",
            client.headers["X-Test-Client"],
            operation,
        )
    return [row["outcome"] for row in rows]


@asynccontextmanager
async def second_node(world: World) -> AsyncIterator[World]:
    """Another service on the same database, with the same clock."""
    async with opened(world.database.dsn) as database:
        service = build_service(world.service.settings, database, world.clock)
        await service.ring.load()
        other = World(service, world.clock, httpx.ASGITransport(app=build_app(service)))
        yield other
        await other.close()


async def test_an_agent_cannot_export_the_practice_by_reading(world: World) -> None:
    await fill(world)
    agent = await world.client()
    client_id = agent.headers["X-Test-Client"]
    disclosed, refusal = await export(agent)
    assert len(disclosed) == 60
    assert refusal is not None
    assert (refusal.status_code, refusal.json()["code"]) == (429, "rate_limited")
    assert "patient budget of this client (60 an hour)" in refusal.json()["detail"]
    assert refusal.headers["retry-after"] == "3600"
    assert refusal.json()["requestId"] == refusal.headers["x-svc-trace-id"]
    assert not any(patient in refusal.text for patient in disclosed)
    assert (await outcomes(world, agent, "list_appointments"))[-1] == "rate_limited"

    # Every way to a patient is closed; one that was read before stays open.
    fresh = next(iter(await _others(world, disclosed)))
    assert (await agent.get(f"/api/patients/{fresh}")).status_code == 429
    assert (await agent.get(f"/api/appointments/apt_{fresh[4:]}")).status_code == 429
    assert (await agent.get("/api/appointments", params={"patientId": fresh})).status_code == 429
    assert (await agent.post(f"/api/appointments/apt_{fresh[4:]}/cancel", json={})).status_code == 409
    assert (await agent.patch(f"/api/patients/{fresh}", json={"phone": "+1 555 010 7777"})).status_code == 429
    assert (await agent.get(f"/api/patients/{next(iter(disclosed))}")).status_code == 200
    tool = framed(await send(agent, "tools/call", {"name": "get_patient", "arguments": {"patientId": fresh}}))["result"]
    assert tool["isError"]
    assert "patient budget of this client (60 an hour)" in tool["content"][0]["text"]
    assert await events(world) == [("client.patientBudgetExceeded", {"clientId": client_id, "budget": "hour"})], (
        "one event for the window"
    )
    assert world.service.engine.refusals == {"patients_per_hour": 6}

    # The window moves on, and so does the event. The day's budget is larger than the practice.
    world.clock.advance(minutes=61)
    await world.renew(agent)
    again, refusal = await export(agent)
    assert refusal is not None
    assert len(again) == 60
    assert len(await events(world)) == 2


async def _others(world: World, disclosed: set[str]) -> set[str]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT patient_id FROM patient WHERE practice_id = 1")
    return {row["patient_id"] for row in rows} - disclosed


async def test_budgets_are_exact_on_two_nodes_at_once(world: World) -> None:
    await fill(world)
    agent = await world.client(access_limits=AccessLimits(patients_per_hour=0, patients_per_day=20))
    everyone = sorted(await _others(world, set()))
    async with second_node(world) as other:
        twin = other.anonymous()
        twin.headers["Authorization"] = agent.headers["Authorization"]
        calls = [
            (agent, twin)[at % 2].get(f"/api/patients/{patient}") for at, patient in enumerate(everyone + everyone[:5])
        ]
        answers = await asyncio.gather(*calls)
    read = {answer.json()["id"] for answer in answers if answer.status_code == 200}
    assert len(read) == 20
    assert {answer.status_code for answer in answers} == {200, 429}
    refusal = next(answer for answer in answers if answer.status_code == 429)
    assert "patient budget of this client (20 a day)" in refusal.json()["detail"]
    assert [subject["budget"] for _, subject in await events(world)] == ["day"]
    await advance(world, agent, hours=23)
    assert (await agent.get("/api/patients/" + next(iter(await _others(world, read))))).status_code == 429
    await advance(world, agent, hours=2)
    assert (await agent.get("/api/patients/" + next(iter(await _others(world, read))))).status_code == 200


async def test_a_page_larger_than_the_budget_is_refused_whole_and_costs_nothing(world: World) -> None:
    await fill(world)
    agent = await world.client()
    page = await agent.get("/api/appointments", params={"limit": 200})
    assert (page.status_code, page.headers["retry-after"]) == (429, "3600")
    assert "fewer patients at a time" in page.json()["detail"]
    assert (await agent.get("/api/appointments", params={"limit": 60})).status_code == 200


async def test_integrations_and_unlimited_clients_read_everything_and_staff_are_never_counted(world: World) -> None:
    await fill(world)
    unlimited = AccessLimits(patients_per_hour=0, patients_per_day=0)
    for client in (await world.client(grant="integration"), await world.client(access_limits=unlimited)):
        assert len(await page_through(client, "/api/appointments", limit=50)) == PATIENTS
    bounded = await world.client(grant="integration", access_limits=AccessLimits(patients_per_hour=1))
    ada = await patient_id(bounded)
    assert (await bounded.get(f"/api/patients/{ada}")).status_code == 200
    match = {"firstName": "Alan", "lastName": "Turing", "dob": "1990-06-23", "phone": "0123"}
    assert (await bounded.post("/api/patients/match", json=match)).status_code == 429


async def test_a_booking_needs_no_more_of_the_budget_than_its_match(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(patients_per_hour=1))
    booked = await book(agent)
    assert (await agent.get(f"/api/appointments/{booked}")).status_code == 200
    free = (await slots(agent, to=MONDAY.isoformat()))[-1]["id"]
    moved = await agent.post(f"/api/appointments/{booked}/reschedule", json={"slotId": free})
    assert moved.status_code == 428


async def test_reads_older_than_a_day_are_deleted_when_another_patient_is_read(world: World) -> None:
    agent = await world.client()
    await patient_id(agent, "Ada")
    await advance(world, agent, hours=25)
    grace = await patient_id(agent, "Grace")
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT patient_id FROM patient_read")
    assert [row["patient_id"] for row in rows] == [grace]


async def test_a_patient_counts_for_an_hour_after_the_last_read(world: World) -> None:
    agent = await world.client(access_limits=AccessLimits(patients_per_hour=1))
    ada = await patient_id(agent, "Ada")
    for minutes in (50, 59.5, 50):
        await advance(world, agent, minutes=minutes)
        assert (await agent.get(f"/api/patients/{ada}")).status_code == 200
        match = {"firstName": "Grace", "lastName": "Hopper", "dob": "1986-12-09", "phone": "555 010 0142"}
        assert (await agent.post("/api/patients/match", json=match)).status_code == 429
    await advance(world, agent, minutes=61)
    await patient_id(agent, "Grace")
    assert (await agent.get(f"/api/patients/{ada}")).status_code == 429


async def advance(world: World, client: httpx.AsyncClient, **by: float) -> None:
    world.clock.advance(**by)
    await world.renew(client)
