"""Limits on reading patients hold where the patients are in a FHIR server, too."""

from frontdesk.access.clients.records import PatientAccess
from tests.support.world import World, book, page_through, patient_id, slots


async def test_only_known_patients_are_seen_listed_and_booked(fhir: World) -> None:
    everyone = await fhir.client()
    booked = {first: await book(everyone, first) for first in ("Ada", "Alan")}
    ada, alan = await patient_id(everyone), await patient_id(everyone, "Alan")
    agent = await fhir.client(patient_access=PatientAccess(known_patients_only=True))
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
    agent = await fhir.client(patient_access=PatientAccess(patients_per_hour=1, match_misses=1))
    ada = await patient_id(agent)
    assert (await agent.get(f"/api/patients/{ada}")).status_code == 200
    alan = {"firstName": "Alan", "lastName": "Turing", "dob": "1990-06-23"}
    codes = [
        (await agent.post("/api/patients/match", json={**alan, "phone": phone})).status_code
        for phone in ("0123", "2001", "2002")
    ]
    assert codes == [429, 404, 429], "over budget, a miss, a lock"
