"""Consent receipts of writes that a FHIR server executed: the same as those of the native calendar."""

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.features.receipts.verifying import verify_receipt
from tests.support.world import World, book, confirmed, patient_id


async def test_writes_at_a_fhir_server_have_receipts(fhir: World) -> None:
    agent = await fhir.client(scopes=(*SCOPES, "receipts:read"))
    booked, ada = await book(agent), await patient_id(agent)
    challenge = await agent.post(f"/api/appointments/{booked}/cancel", json={})
    await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})
    listed = (await agent.get(f"/api/patients/{ada}/receipts")).json()["items"]
    assert [(each["operation"], each["appointmentId"]) for each in listed] == [
        ("cancel_appointment", booked),
        ("book_appointment", booked),
    ]
    keys = (await agent.get("/.well-known/jwks.json")).json()
    stated = [
        verify_receipt((await agent.get(f"/api/receipts/{each['id']}")).json()["receipt"], keys) for each in listed
    ]
    assert stated[0]["readBack"] == challenge.json()["readBack"]
    assert [each["record"]["subjectIds"] for each in stated] == [[booked, ada]] * 2
    consumed = "SELECT count(*) FROM intent WHERE state = 'consumed' AND challenge IS NOT NULL"
    async with fhir.database.transaction(1) as connection:
        assert await connection.fetchval(f"{consumed} AND practice_id = 1") == 0
