"""Limits on reading patients and on writing hold where the calendar is in a FHIR server, too."""

import asyncio

import pytest

from frontdesk.access.clients.records import AccessLimits
from tests.security.test_match_misses import ADA, MISSES, Ask, over_mcp, over_rest, seen
from tests.support.world import World, book, confirmed, page_through, patient_id, slots


async def test_only_known_patients_are_seen_listed_and_booked(fhir: World) -> None:
    everyone = await fhir.client()
    booked = {first: await book(everyone, first) for first in ("Ada", "Alan")}
    ada, alan = await patient_id(everyone), await patient_id(everyone, "Alan")
    agent = await fhir.client(access_limits=AccessLimits(known_patients_only=True))
    slot = (await slots(agent))[0]["id"]
    assert await page_through(agent, "/api/appointments") == []
    assert (await agent.get(f"/api/patients/{ada}")).status_code == 404
    assert (await agent.get(f"/api/appointments/{booked['Ada']}")).status_code == 404
    assert (await agent.post(f"/api/appointments/{booked['Ada']}/cancel", json={})).status_code == 404
    assert (await agent.post("/api/appointments", json={"patientId": ada, "slotId": slot})).status_code == 404
    assert await patient_id(agent) == ada
    assert (await agent.get(f"/api/patients/{ada}")).status_code == 200
    assert (await agent.get(f"/api/patients/{alan}")).status_code == 404
    assert [item["id"] for item in await page_through(agent, "/api/appointments", limit=1)] == [booked["Ada"]]
    assert (await agent.post(f"/api/appointments/{booked['Ada']}/cancel", json={})).status_code == 428


async def test_budgets_and_failed_matches_are_counted(fhir: World) -> None:
    agent = await fhir.client(access_limits=AccessLimits(patients_per_hour=1, match_misses=1))
    ada = await patient_id(agent)
    assert (await agent.get(f"/api/patients/{ada}")).status_code == 200
    alan = {"firstName": "Alan", "lastName": "Turing", "dob": "1990-06-23"}
    codes = [
        (await agent.post("/api/patients/match", json={**alan, "phone": phone})).status_code
        for phone in ("0123", "2001", "2002")
    ]
    assert codes == [429, 404, 429], "over budget, a miss, a lock"


async def test_writes_are_limited(fhir: World) -> None:
    agent = await fhir.client(access_limits=AccessLimits(writes_per_hour=3, upcoming_per_patient=2))
    ada, alan = await patient_id(agent), await patient_id(agent, "Alan")
    free = [slot["id"] for slot in await slots(agent)]
    bodies = []
    for patient, slot in ((ada, free[0]), (ada, free[1]), (ada, free[2]), (alan, free[3]), (alan, free[4])):
        body = {"patientId": patient, "slotId": slot}
        challenge = await agent.post("/api/appointments", json=body)
        assert challenge.status_code == 428, challenge.text
        bodies.append({**body, "confirmationToken": challenge.json()["confirmationToken"]})
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for body in bodies[:3]))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 429]
    refusal = next(answer for answer in answers if answer.status_code == 429)
    assert "2 upcoming appointments for one patient" in refusal.json()["detail"]
    booked = next(answer.json()["appointmentId"] for answer in answers if answer.status_code == 201)
    refused = next(body for body, answer in zip(bodies, answers, strict=False) if answer.status_code == 429)
    assert (await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})).status_code == 200
    assert (await agent.post("/api/appointments", json=refused)).status_code == 201, "its token is still good"
    answers = [await agent.post("/api/appointments", json=body) for body in bodies[3:]]
    assert [answer.status_code for answer in answers] == [429, 429]
    assert "execute book_appointment 3 times an hour" in answers[0].json()["detail"]
    assert 0 < int(answers[0].headers["retry-after"]) <= 3660
    assert await upstream_bookings(fhir) == 3


async def upstream_bookings(fhir: World) -> int:
    everyone = await fhir.client(access_limits=AccessLimits(patients_per_hour=0))
    return len(await page_through(everyone, "/api/appointments"))


async def test_few_digits_end_a_number(fhir: World) -> None:
    ada = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10"}
    practice = (await fhir.database.fetchrow("SELECT slug FROM practice LIMIT 1"))["slug"]
    agent = await fhir.client(practice)
    codes = []
    for rule in ("anywhere", "ending"):
        await fhir.database.write("UPDATE practice SET phone_match = $1", rule)
        fhir.service.authenticator.on_change("practice", practice)
        asked = [{**ada, "phone": phone} for phone in ("0199", "5550")]
        codes += [(await agent.post("/api/patients/match", json=each)).status_code for each in asked]
    assert codes == [200, 200, 200, 404]


@pytest.mark.parametrize("ask", [over_rest, over_mcp])
async def test_a_miss_at_a_fhir_server_does_not_tell_which_field_was_wrong(fhir: World, ask: Ask) -> None:
    await fhir.database.write("UPDATE practice SET phone_match = 'ending'")
    practice = (await fhir.database.fetchrow("SELECT slug FROM practice LIMIT 1"))["slug"]
    agent = await fhir.client(practice, access_limits=AccessLimits(match_misses=0))
    assert "pat_" in (await ask(agent, ADA)).text
    answers = [seen(await ask(agent, {**ADA, **changes})) for changes in MISSES]
    assert [each for each in answers if each != answers[0]] == []
