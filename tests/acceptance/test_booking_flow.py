"""The eight steps of the specification, end to end."""

from tests.support.world import MONDAY, World


async def test_an_agent_books_in_eight_steps(world: World) -> None:
    agent = await world.client()
    person = {"firstName": "ada", "lastName": "LOVELACE", "phone": "(555) 010-0199", "dob": "1985-12-10"}
    patient = (await agent.post("/api/patients/match", json=person)).json()["items"][0]
    location = (await agent.get("/api/locations", params={"name": "main st"})).json()["items"][0]
    provider = (await agent.get("/api/providers", params={"locationId": location["id"], "name": "Dr. bob"})).json()
    visit_type = (await agent.get("/api/visit-types", params={"name": "follow"})).json()["items"][0]
    procedure = (await agent.get(f"/api/visit-types/{visit_type['id']}/procedures")).json()["items"][0]
    query = {
        "providerId": provider["items"][0]["id"],
        "locationId": location["id"],
        "visitTypeId": visit_type["id"],
        "procedureId": procedure["id"],
        "from": MONDAY.isoformat(),
        "to": MONDAY.isoformat(),
    }
    found = (await agent.get("/api/slots", params=query)).json()
    assert found["limit"] == 50
    assert found["items"][0]["start"] == "2026-11-16T09:00:00-05:00"
    slot = (await agent.get(f"/api/slots/{found['items'][0]['id']}")).json()
    assert slot["available"] is True
    assert slot["providerName"] == "Dr. Robert Chen"

    body = {"patientId": patient["id"], "slotId": slot["id"]}
    challenge = await agent.post("/api/appointments", json=body)
    assert challenge.status_code == 428
    assert challenge.headers["content-type"] == "application/problem+json"
    document = challenge.json()
    assert document["code"] == "confirmation_required"
    assert document["readBack"]["weekday"] == "Monday"
    assert document["readBack"]["patientId"] == patient["id"]

    booked = await agent.post("/api/appointments", json={**body, "confirmationToken": document["confirmationToken"]})
    assert booked.status_code == 201
    again = await agent.post("/api/appointments", json={**body, "confirmationToken": document["confirmationToken"]})
    assert again.status_code == 201
    assert again.json() == booked.json()

    appointment = (await agent.get(f"/api/appointments/{booked.json()['appointmentId']}")).json()
    assert appointment["status"] == "booked"
    assert appointment["start"] == slot["start"]
    assert (await agent.get(f"/api/slots/{slot['id']}")).json()["available"] is False
