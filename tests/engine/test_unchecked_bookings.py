"""A booking that the committing statement checks gets the refusals of one that is checked first."""

from typing import Any

import httpx
import orjson
import pytest

from frontdesk.access.clients.records import PatientAccess
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

# Bookings of such a client are checked first: it has to know the patient.
CHECKED = PatientAccess(known_patients_only=True)
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
    clients = [await world.client(grant=grant), await world.client(grant=grant, patient_access=CHECKED)]
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
    ("given", "newer", "issued"),
    [({}, 0, True), ({}, 1, False), ({"providerId": 999}, 0, False), ({"patientId": "pat_" + "0" * 22}, 0, False)],
    ids=["as looked up", "another version", "unknown provider", "unknown patient"],
)
async def test_a_challenge_is_stored_only_for_what_the_directory_has(
    world: World, given: dict[str, Any], newer: int, issued: bool
) -> None:
    ada = await patient_id(await world.client())
    practice = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    async with world.database.transaction(practice) as connection:
        current = await connection.fetchval("SELECT version FROM practice WHERE practice_id = $1", practice)
        times = {"startsAt": "2030-01-07T15:00Z", "endsAt": "2030-01-07T15:15Z", "busyUntil": "2030-01-07T15:15Z"}
        booking = {"patientId": ada, "providerId": 10, **times, **given}
        stored = await connection.fetchrow(
            "SELECT * FROM challenge_booking($1, $2, $3, 'i', 'c', 'book', 'f', now(), now(), '{}', 'r', 0, 0)",
            practice,
            current + newer,
            orjson.dumps(booking).decode(),
        )
    assert bool(stored["issued"]) is issued
