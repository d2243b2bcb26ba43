"""A booking that only the committing statement checks gets the refusals of one that is checked first."""

from typing import Any

import httpx
import orjson
import pytest

from frontdesk.access.clients.records import AccessLimits
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

# Bookings of such a client are checked first: it has to know the patient.
CHECKED = AccessLimits(known_patients_only=True)
NEW_EXAM = {"visitTypeId": 20, "procedureId": 100}


async def outcomes(world: World, client: httpx.AsyncClient) -> list[str]:
    """Of the client's bookings, as the audit trail has them."""
    practice = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    async with world.database.transaction(practice) as connection:
        rows = await connection.fetch(
            "SELECT outcome FROM audit_record WHERE actor = $1 AND operation = 'book_appointment' ORDER BY record_id",
            client.headers["X-Test-Client"],
        )
    return [row["outcome"] for row in rows]


async def set_seen(world: World, patient: str, *, seen: bool) -> None:
    practice = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    async with world.database.transaction(practice) as connection:
        await connection.execute("UPDATE patient SET seen = $2 WHERE patient_id = $1", patient, seen)


@pytest.mark.parametrize("grant", ["agent", "integration"])
async def test_refusals_and_their_records_are_the_same(world: World, grant: str) -> None:
    clients = [await world.client(grant=grant), await world.client(grant=grant, access_limits=CHECKED)]
    known = [{name: await patient_id(client, name) for name in ("Ada", "Grace", "José")} for client in clients]
    ada, grace, jose = known[0].values()
    assert known[0] == known[1]
    front = await world.client()
    taken = (await slots(front))[0]["id"]
    closing = (await slots(front))[1]["id"]
    beside = (await slots(front, providerId=12))[0]["id"]
    exam = (await slots(front, **NEW_EXAM))[-1]["id"]
    unknown_patient, unknown_slot = "pat_" + "0" * 22, "slt_" + "A" * 40
    await book(front)
    refused = {
        (ada, taken): "slot_unavailable",  # and Ada is busy
        (jose, taken): "slot_unavailable",
        (grace, taken): "validation",  # for existing patients
        (ada, beside): "validation",
        (ada, exam): "validation",
        (unknown_patient, taken): "not_found",
        (unknown_patient, unknown_slot): "not_found",
        (ada, unknown_slot): "not_found",
        ("nobody", beside): "not_found",
        (jose, closing): "slot_unavailable",
    }
    await world.import_file(
        PRACTICE.replace("SLUG", "harbor").replace('from: "09:00", to: "12:00"', 'from: "09:00", to: "09:15"')
    )
    answers: list[list[Any]] = []
    for client in clients:
        got = []
        for (patient, slot), code in refused.items():
            answer = await client.post("/api/appointments", json={"patientId": patient, "slotId": slot})
            problem = answer.json()
            assert problem["code"] == code, (patient, slot, problem)
            problem.pop("requestId"), problem.pop("instance", None)
            got.append((answer.status_code, problem))
        answers.append(got)
    assert answers[0] == answers[1]
    assert await outcomes(world, clients[0]) == await outcomes(world, clients[1]) == list(refused.values())


async def test_a_patient_who_was_seen_meanwhile_is_refused_and_the_token_stays_valid(world: World) -> None:
    agent = await world.client()
    grace = await patient_id(agent, "Grace")
    body = {"patientId": grace, "slotId": (await slots(agent, **NEW_EXAM))[0]["id"]}
    challenge = (await agent.post("/api/appointments", json=body)).json()
    body["confirmationToken"] = challenge["confirmationToken"]
    await set_seen(world, grace, seen=True)
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["rule"]) == (422, "declined")
    await set_seen(world, grace, seen=False)
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert await outcomes(world, agent) == ["confirmation_required", "validation", "executed"]


async def test_a_slot_that_was_taken_meanwhile_is_refused_at_the_confirmation(world: World) -> None:
    agent, other = await world.client(), await world.client()
    slot = (await slots(agent))[0]["id"]
    body = {"patientId": await patient_id(agent, "José"), "slotId": slot}
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    taken = {"patientId": await patient_id(other, "Ada"), "slotId": slot}
    assert (await confirmed(other, "POST", "/api/appointments", taken)).status_code == 201
    refused = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_unavailable")
    assert await outcomes(world, agent) == ["confirmation_required", "slot_unavailable"]


@pytest.mark.parametrize(
    ("given", "newer", "outcome"),
    [
        ({}, 0, "challenged"),
        ({}, 1, "stale"),
        ({"providerId": 999}, 0, "refused"),
        ({"patientId": "pat_" + "0" * 22}, 0, "refused"),
        ({"patientSeen": False}, 0, "refused"),
    ],
    ids=["as looked up", "another version", "unknown provider", "unknown patient", "a patient of another kind"],
)
async def test_a_challenge_is_stored_only_for_what_would_succeed(
    world: World, given: dict[str, Any], newer: int, outcome: str
) -> None:
    ada = await patient_id(await world.client())
    practice = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    async with world.database.transaction(practice) as connection:
        current = await connection.fetchval("SELECT version FROM practice WHERE practice_id = $1", practice)
        times = {"startsAt": "2030-01-07T15:00Z", "endsAt": "2030-01-07T15:15Z", "busyUntil": "2030-01-07T15:15Z"}
        booking = {"version": current + newer, "patientId": ada, "providerId": 10, **times, **given}
        row = await connection.fetchrow(
            "SELECT * FROM issue_challenge($1, 'i', 'c', 'book', 'f', now(), now(), '{}', 'r', '{}', $2, '{}', NULL)",
            practice,
            orjson.dumps(booking).decode(),
        )
        assert await connection.fetchval("SELECT count(*) FROM intent") == (outcome == "challenged")
    assert row["outcome"] == outcome


async def test_a_refused_booking_costs_one_statement_and_its_record(world: World) -> None:
    agent, integration = await world.client(), await world.client(grant="integration")
    ada, jose = await patient_id(agent), await patient_id(agent, "José")
    taken, closing = [each["id"] for each in (await slots(agent))[:2]]
    await book(agent)
    token = (await agent.post("/api/appointments", json={"patientId": jose, "slotId": closing})).json()
    body = {"patientId": jose, "slotId": closing, "confirmationToken": token["confirmationToken"]}
    assert (await integration.post("/api/appointments", json={"patientId": ada, "slotId": closing})).status_code == 201

    async def cost(client: httpx.AsyncClient, **sent: str) -> int:
        before = world.database.statements
        answer = await client.post("/api/appointments", json=sent)
        assert answer.json()["code"] == "slot_unavailable", answer.text
        return world.database.statements - before

    assert await cost(agent, patientId=jose, slotId=taken) == 2
    assert await cost(agent, **body) == 2
    assert await cost(integration, patientId=jose, slotId=taken) == 2
    closed = PRACTICE.replace("SLUG", "harbor").replace('from: "09:00", to: "12:00"', 'from: "11:00", to: "12:00"')
    await world.import_file(closed)
    await slots(agent)  # reads the new directory
    assert await cost(agent, patientId=jose, slotId=taken) == 2, "the look at a slot outside hours, and the record"


async def test_a_directory_that_has_changed_costs_a_booking_its_load_and_one_more_statement(world: World) -> None:
    agent = await world.client()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    practice = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    async with world.database.transaction(practice) as connection:
        await connection.execute("UPDATE practice SET version = version + 1 WHERE practice_id = $1", practice)
    before = world.database.statements
    assert (await agent.post("/api/appointments", json=body)).status_code == 428
    assert world.database.statements - before == 3
