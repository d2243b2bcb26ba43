"""Confirmations: who proposed what, how it stands, and nothing of what it said."""

import httpx

from tests.console.admin_pages import text_of
from tests.console.signing_in import signed_in
from tests.support.world import World, book, patient_id, slots


async def propose(agent: httpx.AsyncClient, number: int = 0) -> str:
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[number]["id"]}
    answer = await agent.post("/api/appointments", json=body)
    assert answer.status_code == 428
    token: str = answer.json()["confirmationToken"]
    return token


async def test_a_proposal_waits_and_an_executed_one_leads_to_its_appointment(
    world: World, staff: httpx.AsyncClient
) -> None:
    agent = await world.client()
    appointment = await book(agent)
    token = await propose(agent, 3)
    page = await staff.get("/console/confirmations")
    text = text_of(page)
    assert "agent of harbor Book an appointment Waiting can be confirmed until 15 Nov 2026, 03:10" in text
    assert "agent of harbor Book an appointment Executed executed 15 Nov 2026, 03:00 Open" in text
    assert f'href="/console/appointments/{appointment}"' in page.text
    for hidden in (token, "Lovelace", "pat_", "readBack"):
        assert hidden not in page.text


async def test_states_can_be_looked_at_alone(world: World, staff: httpx.AsyncClient) -> None:
    agent = await world.client()
    await book(agent)
    await propose(agent, 3)
    for state, rows in (("pending", 1), ("executed", 1), ("expired", 0), ("executing", 0), ("", 2), ("odd", 2)):
        page = await staff.get("/console/confirmations", params={"state": state})
        assert page.text.count("Book an appointment") == rows, state
    world.clock.advance(minutes=11)
    assert (await staff.get("/console/confirmations?state=expired")).text.count("Book an appointment") == 1
    mine = await staff.get("/console/confirmations", params={"client": agent.headers["X-Test-Client"]})
    assert mine.text.count("Waiting</span>") + mine.text.count("Expired</span>") == 1
    assert "Nothing here" in (await staff.get("/console/confirmations?client=fd_nobody")).text


async def test_forms_of_the_console_are_not_confirmations(world: World) -> None:
    admin = await signed_in(world, role="admin")
    await admin.post(
        "/console/clients",
        data={"name": "n", "grant": "agent", "scopes": "slots:read", "per_minute": "1", "quota": "1", "once": "k"},
    )
    assert "Nothing here" in (await admin.get("/console/confirmations")).text
