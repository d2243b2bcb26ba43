"""A write that staff have to approve, where the calendar is in a FHIR server."""

import asyncio

import httpx

from tests.console.desk import records
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.features.approvals.test_approvals import code, decide, proposed
from tests.fhir.test_client_limits import upstream_bookings
from tests.support.world import World, patient_id, slots

_DEMAND = """UPDATE practice SET consent = '{"book_appointment": "staff"}' WHERE slug = 'harbor'"""


async def wanted(agent: httpx.AsyncClient, at: int) -> dict[str, str]:
    return {"patientId": await patient_id(agent), "slotId": (await slots(agent))[at]["id"]}


async def test_what_staff_approve_is_sent_once_and_what_they_refuse_never(fhir: World) -> None:
    await fhir.database.write(_DEMAND)
    agent, staff = await fhir.client(), await signed_in(fhir)
    approved, refused = [await proposed(agent, await wanted(agent, at)) for at in (0, 4)]
    for confirmed in (approved, refused):
        assert code(await agent.post("/api/appointments", json=confirmed)) == (403, "consent_required")
    assert "Ada Lovelace" in (await staff.get("/console/approvals")).text
    assert (await decide(staff, approved, "approve"), await decide(staff, refused, "refuse")) == (303, 303)
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=approved) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    # Also where only the statement that begins the write sees the refusal.
    await fhir.database.write("UPDATE practice SET consent = '{}' WHERE slug = 'harbor'")
    fhir.service.on_change("client", agent.headers["X-Test-Client"])
    assert code(await agent.post("/api/appointments", json=refused)) == (403, "consent_required")
    assert await upstream_bookings(fhir) == 1
    [act] = await records(fhir, operation="book_appointment", outcome="executed")
    assert act["consent"] == "staff"
    assert staff.headers[TEST_STAFF] in act["subject_ids"]
