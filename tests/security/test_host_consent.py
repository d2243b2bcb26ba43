"""A program that passes itself off as an MCP host: it declares what hosts can do and answers for people who do not exist."""

from dataclasses import replace

import httpx

from frontdesk.app import build_app
from frontdesk.doors.fhir.addresses import fhir_id
from tests.doors.elicitation_hosts import CARDS, modern
from tests.doors.test_elicitation import booked, booking
from tests.engine.test_consent import demand, recorded
from tests.fhir_server.fhir_calls import BASE
from tests.support.world import World, book

TOOL = "book_appointment"


async def token_of_card(agent: httpx.AsyncClient, tool: str, wanted: dict[str, str]) -> str:
    """What the program reads from the `_meta` that is for the card."""
    token: str = (await modern(agent, tool, wanted, CARDS))["_meta"]["frontdesk/card"]["confirmationToken"]
    return token


async def test_a_cards_token_is_good_at_the_mcp_address_and_for_its_client_only(world: World) -> None:
    """Also while the practice no longer demands a card, and after the token was used."""
    await demand(world, bookAppointment="card", cancelAppointment="card")
    agent, other = await world.client(), await world.client()
    wanted = await booking(agent)
    token = await token_of_card(agent, TOOL, wanted)
    confirmed = {**wanted, "confirmationToken": token}

    refused = await agent.post("/api/appointments", json=confirmed)
    assert (refused.status_code, refused.json()["code"]) == (403, "consent_required")
    stolen = await modern(other, TOOL, confirmed, CARDS)
    assert stolen["structuredContent"]["code"] == "confirmation_required", "a card of its own"
    without_cards = await modern(agent, TOOL, confirmed)
    assert without_cards["structuredContent"]["code"] == "consent_required"
    await demand(world)
    for client in (agent, other):
        unrecognized = await client.post("/api/appointments", json=confirmed)
        assert unrecognized.status_code == 428
        assert not unrecognized.json()["confirmationToken"].startswith("card-")
    assert await booked(world) == 0

    await demand(world, bookAppointment="card", cancelAppointment="card")
    world.clock.advance(seconds=6)
    done = (await modern(agent, TOOL, confirmed, CARDS))["structuredContent"]["appointmentId"]
    assert (await recorded(world, done))[-1] == (TOOL, "executed", "card")
    assert (await agent.post("/api/appointments", json=confirmed)).status_code == 403, "no stored result either"
    assert await booked(world) == 1


async def test_a_cards_token_confirms_nothing_over_fhir(world: World) -> None:
    service = replace(world.service, settings=world.service.settings.model_copy(update={"fhir_server": True}))
    served = World(service, world.clock, httpx.ASGITransport(app=build_app(service)))
    agent = await served.client()
    appointment = await book(agent)
    await demand(served, cancelAppointment="card")
    served.clock.advance(seconds=6)
    wanted = {"appointmentId": appointment}
    sent = {"Frontdesk-Confirmation-Token": await token_of_card(agent, "cancel_appointment", wanted)}
    address = f"{BASE}/Appointment/{fhir_id(appointment)}"
    resource = (await agent.get(address)).json()
    for demanded, status in (({"cancelAppointment": "card"}, 403), ({}, 428)):
        await demand(served, **demanded)
        served.clock.advance(seconds=6)
        cancel = await agent.post(f"{address}/$cancel", json={"resourceType": "Parameters"}, headers=sent)
        change = await agent.put(address, json={**resource, "status": "cancelled"}, headers=sent)
        assert (cancel.status_code, change.status_code) == (status, status), (cancel.text, change.text)
    assert (await agent.get(f"/api/appointments/{appointment}")).json()["status"] == "booked"
    await served.close()
