"""Many at once: exactly one wins, everyone gets the documented answer."""

import asyncio
from collections import Counter

import httpx
import pytest

from frontdesk.engine import fair_limiter
from tests.support.world import World, patient_id, slots

CALLERS = 64


@pytest.fixture(autouse=True)
def patient_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many wait their turn; how long that takes is up to the machine."""
    monkeypatch.setattr(fair_limiter, "WAIT_SECONDS", 60)


async def _people(integration: httpx.AsyncClient, count: int) -> list[str]:
    made = []
    for number in range(count):
        person = {
            "firstName": f"Person{number}",
            "lastName": "Crowd",
            "phone": f"+1 555 020 {number:04}",
            "dob": "1980-01-01",
        }
        made.append((await integration.post("/api/patients", json=person)).json()["patientId"])
    return made


async def _live(world: World) -> list[tuple[str, int]]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch(
            "SELECT appointment_id, lane FROM appointment WHERE practice_id = 1 AND status <> 'cancelled'"
        )
    return [(row["appointment_id"], row["lane"]) for row in rows]


async def test_many_bookers_of_one_slot(world: World) -> None:
    integration = await world.client(grant="integration")
    people = await _people(integration, CALLERS)
    slot = (await slots(integration, visitTypeId=22, procedureId=103))[0]["id"]
    answers = await asyncio.gather(
        *(integration.post("/api/appointments", json={"patientId": p, "slotId": slot}) for p in people)
    )
    codes = Counter(a.json().get("code", a.status_code) for a in answers)
    assert codes == {201: 1, "slot_unavailable": CALLERS - 1}
    assert len(await _live(world)) == 1


async def test_many_bookers_of_one_slot_fill_a_capacity_of_two(world: World) -> None:
    integration = await world.client(grant="integration")
    people = await _people(integration, CALLERS)
    slot = (await slots(integration, providerId=11, visitTypeId=22, procedureId=103))[0]["id"]
    answers = await asyncio.gather(
        *(integration.post("/api/appointments", json={"patientId": p, "slotId": slot}) for p in people)
    )
    codes = Counter(a.json().get("code", a.status_code) for a in answers)
    assert codes == {201: 2, "slot_unavailable": CALLERS - 2}
    assert sorted(lane for _, lane in await _live(world)) == [1, 2]


async def test_many_bookers_of_overlapping_slots_of_different_length(world: World) -> None:
    integration = await world.client(grant="integration")
    people = [await patient_id(integration, name) for name in ("Ada", "José", "Alan")]
    long = await slots(integration, procedureId=102)
    short = await slots(integration, procedureId=101)
    nine = [s["id"] for s in (*long, *short) if s["start"] < "2026-11-16T09:45" and s["end"] > "2026-11-16T09:30"]
    answers = await asyncio.gather(
        *(
            integration.post("/api/appointments", json={"patientId": people[n % 3], "slotId": nine[n % len(nine)]})
            for n in range(CALLERS)
        )
    )
    codes = Counter(a.json().get("code", a.status_code) for a in answers)
    assert set(codes) <= {201, "slot_unavailable", "validation"}
    async with world.database.transaction(1) as connection:
        clashes = await connection.fetchval(
            """SELECT count(*) FROM appointment a JOIN appointment b
               ON a.practice_id = 1 AND b.practice_id = 1 AND a.appointment_id < b.appointment_id
               AND (a.provider_id = b.provider_id OR a.patient_id = b.patient_id)
               AND a.starts_at < b.busy_until AND b.starts_at < a.busy_until"""
        )
    assert codes[201] == len(await _live(world))
    assert codes[201] >= 1
    assert clashes == 0


async def test_many_confirmations_with_one_token(world: World) -> None:
    agent = await world.client()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    body["confirmationToken"] = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for _ in range(CALLERS)))
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["appointmentId"] for a in answers}) == 1
    assert len(await _live(world)) == 1


async def test_one_person_cannot_be_created_twice_at_once(world: World) -> None:
    integration = await world.client(grant="integration")
    person = {"firstName": "Mary", "lastName": "Seacole", "phone": "+1 555 010 0111", "dob": "1980-05-14"}
    answers = await asyncio.gather(*(integration.post("/api/patients", json=person) for _ in range(16)))
    assert Counter(a.status_code for a in answers) == {201: 1, 409: 15}


async def test_one_patient_cannot_be_in_two_places_at_once(world: World) -> None:
    integration = await world.client(grant="integration")
    ada = await patient_id(integration)
    wanted = [(await slots(integration, providerId=provider))[0]["id"] for provider in (10, 11, 12)]
    answers = await asyncio.gather(
        *(integration.post("/api/appointments", json={"patientId": ada, "slotId": slot}) for slot in wanted)
    )
    assert Counter(a.status_code for a in answers) == {201: 1, 422: 2}


async def test_two_appointments_cannot_swap_into_each_other(world: World) -> None:
    """Both want the other's time at once: no deadlock, no double booking, and the refused one keeps its old time."""
    integration = await world.client(grant="integration")
    ada, alan = await patient_id(integration), await patient_id(integration, "Alan")
    first, second = (await slots(integration))[:2]
    one = (await integration.post("/api/appointments", json={"patientId": ada, "slotId": first["id"]})).json()
    two = (await integration.post("/api/appointments", json={"patientId": alan, "slotId": second["id"]})).json()
    answers = await asyncio.gather(
        integration.post(f"/api/appointments/{one['appointmentId']}/reschedule", json={"slotId": second["id"]}),
        integration.post(f"/api/appointments/{two['appointmentId']}/reschedule", json={"slotId": first["id"]}),
    )
    assert {a.json()["code"] for a in answers} == {"slot_unavailable"}
    kept = [(await integration.get(f"/api/appointments/{a['appointmentId']}")).json()["start"] for a in (one, two)]
    assert kept == [first["start"], second["start"]]


async def test_many_reschedules_across_providers_do_not_deadlock(world: World) -> None:
    integration = await world.client(grant="integration")
    people = [await patient_id(integration, name) for name in ("Ada", "José", "Alan")]
    chen, okafor = await slots(integration, providerId=10), await slots(integration, providerId=12)
    booked = []
    for number, person in enumerate(people):
        body = {"patientId": person, "slotId": (chen if number % 2 else okafor)[number]["id"]}
        booked.append((await integration.post("/api/appointments", json=body)).json()["appointmentId"])
    answers = await asyncio.gather(
        *(
            integration.post(
                f"/api/appointments/{booked[n % 3]}/reschedule",
                json={"slotId": (okafor if n % 2 else chen)[n % 6]["id"]},
            )
            for n in range(48)
        )
    )
    assert {a.json().get("code", a.status_code) for a in answers} <= {200, "slot_unavailable", "validation"}
