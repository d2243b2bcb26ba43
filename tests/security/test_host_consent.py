"""A program that passes itself off as an MCP host: it declares what hosts can do, and answers for people."""

from dataclasses import replace

import httpx

from frontdesk.access.clients.records import distrust_client, show_client, trust_client
from frontdesk.app import build_app
from frontdesk.doors.fhir.addresses import fhir_id
from tests.assistants.connecting import REDIRECT, agreed, client_of, connected, registered
from tests.console.desk import records, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.doors.elicitation_hosts import CARDS, FORMS, YES, answered, modern, open_call, reply, session_of
from tests.doors.test_elicitation import booked, booking
from tests.engine.test_consent import demand, recorded
from tests.fhir_server.fhir_calls import BASE
from tests.support.world import World, book

ADA = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
TOOL = "book_appointment"


async def token_of_card(agent: httpx.AsyncClient, tool: str, wanted: dict[str, str]) -> str:
    """What the program reads from the `_meta` that is for the card."""
    token: str = (await modern(agent, tool, wanted, CARDS))["_meta"]["frontdesk/card"]["confirmationToken"]
    return token


async def test_a_cards_token_is_good_at_the_mcp_address_and_for_its_client_only(world: World) -> None:
    """Also while the practice no longer demands a card, and after the token was used."""
    await demand(world, bookAppointment="card", cancelAppointment="card")
    agent, other = await world.client(trusted_to_ask=True), await world.client(trusted_to_ask=True)
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
    agent = await served.client(trusted_to_ask=True)
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


async def test_nobody_counts_what_an_untrusted_program_says_of_people(world: World) -> None:
    """It declares everything that hosts can do, in both generations of the protocol."""
    agent = await world.client()
    assistant = await connected(world, await signed_in(world, "admin"))
    await modern(assistant.http, "match_patient", ADA)
    for number, caller in enumerate((agent, assistant.http)):
        wanted = await booking(agent, at=number)
        for demanded in ("elicitation", "card"):
            await demand(world, bookAppointment=demanded)
            world.clock.advance(seconds=6)
            for capabilities in (FORMS, CARDS, {**FORMS, **CARDS}):
                refused = await modern(caller, TOOL, wanted, capabilities)
                assert refused["structuredContent"]["code"] == "consent_required"
                assert "trusts to ask people" in refused["structuredContent"]["detail"]
                session = await session_of(caller, capabilities)
                async with open_call(world.transport.app, caller, session, TOOL, wanted) as call:
                    result = call.messages[0]["result"]
                assert result["structuredContent"]["code"] == "consent_required"
        await demand(world, bookAppointment="token")
        world.clock.advance(seconds=6)
        proposed = await modern(caller, TOOL, wanted, {**FORMS, **CARDS})
        token = proposed["structuredContent"]["confirmationToken"]
        done = await modern(caller, TOOL, {**wanted, "confirmationToken": token}, {**FORMS, **CARDS})
        assert (await recorded(world, done["structuredContent"]["appointmentId"]))[-1][2] == "token"
    refused = await agent.post("/api/appointments", json=await booking(agent, at=5))
    assert refused.status_code == 428
    assert await booked(world) == 2


async def test_an_answer_that_comes_after_the_trust_has_ended_does_not_count(world: World) -> None:
    await demand(world, bookAppointment="elicitation")
    agent = await world.client(trusted_to_ask=True)
    client_id, wanted = agent.headers["X-Test-Client"], await booking(agent)
    asked, session = await modern(agent, TOOL, wanted), await session_of(agent)
    async with open_call(world.transport.app, agent, session, TOOL, wanted) as call:
        await distrust_client(world.database, client_id)
        world.service.on_change("client", client_id)
        await reply(agent, call.messages[0], YES)
        await call.until_ended()
    assert call.messages[-1]["result"]["structuredContent"]["code"] == "consent_required"
    again = await answered(agent, TOOL, wanted, asked, YES)
    assert again["structuredContent"]["code"] == "consent_required"
    assert await booked(world) == 0


async def test_an_admin_trusts_the_assistants_of_a_host(world: World) -> None:
    admin, staff = await signed_in(world, "admin"), await signed_in(world)
    agent, assistant = await world.client(), await connected(world, staff)
    await modern(assistant.http, "match_patient", ADA)
    wanted = await booking(agent)

    async def is_asked(http: httpx.AsyncClient) -> bool:
        await modern(http, "match_patient", ADA)
        return (await modern(http, TOOL, wanted))["resultType"] == "input_required"

    assert not await is_asked(assistant.http)
    host = {"host": "assistant.example"}
    assert (await staff.post("/console/assistants/trust", data=host)).status_code == 403
    for other in ("localhost", "127.0.0.1", "anysphere.cursor-mcp", "nobody.example", ""):
        assert (await admin.post("/console/assistants/trust", data={"host": other})).status_code == 404
    assert (await admin.post("/console/assistants/trust", data=host)).status_code == 303
    world.service.on_change("practice", "harbor")
    assert await is_asked(assistant.http)
    assert await is_asked((await connected(world, admin, name="Later")).http), "also those that are connected later"
    page = await admin.get("/console/assistants")
    assert "Trusted to ask people" in page.text
    client_id = await client_of(world, assistant)
    assert "Every assistant of assistant.example is trusted" in (await admin.get(f"/console/clients/{client_id}")).text

    assert (await admin.post("/console/assistants/distrust", data=host)).status_code == 303
    world.service.on_change("practice", "harbor")
    assert not await is_asked(assistant.http)
    acts = [*await records(world, operation="console.trust_assistants"),
            *await records(world, operation="console.distrust_assistants")]  # fmt: skip
    assert [(each["actor"], each["subject_ids"]) for each in acts] == [
        (admin.headers[TEST_STAFF], ["assistant.example"])
    ] * 2


async def test_a_program_does_not_get_the_trust_in_a_host_by_sending_a_later_code_there(world: World) -> None:
    """It registers the address of the host beside its own, and asks twice: the first answer goes to itself."""
    admin = await signed_in(world, "admin")
    await connected(world, admin)  # the host that the practice trusts
    await admin.post("/console/assistants/trust", data={"host": "assistant.example"})
    program = await registered(world, "http://127.0.0.1:7000/callback", REDIRECT)
    program.use((await program.redeem(await agreed(admin, program))).json())
    await trust_client(world.database, await client_of(world, program))
    before = dict(program.tokens)
    program.redirect_uri = REDIRECT
    await agreed(admin, program)
    world.service.on_change("client", await client_of(world, program))
    assert (await program.http.post("/mcp", json={})).status_code == 401, "tokens of the first answer have ended"
    assert (await program.refresh(before["refresh_token"])).status_code == 400
    assert not (await show_client(world.database, await client_of(world, program))).trusted_to_ask


async def test_no_spelling_of_the_loopback_interface_can_be_trusted(world: World) -> None:
    """Browsers send a code there to any program of their machine."""
    admin = await signed_in(world, "admin")
    named = ("localhost.", "app.localhost", "127.0.0.2", "127.1", "0x7f.1", "2130706433", "127.0.0.1.")
    for host in (*named, "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"):
        await agreed(admin, await registered(world, f"https://{host}/callback"))
        answer = await admin.post("/console/assistants/trust", data={"host": host.strip("[]")})
        assert answer.status_code == 404, host
        assert f'value="{host.strip("[]")}"' not in (await admin.get("/console/assistants")).text


async def test_what_a_host_reports_is_shown_as_its_report(world: World) -> None:
    staff, agent = await signed_in(world, "admin"), await world.client(trusted_to_ask=True)
    for number, (demanded, shown) in enumerate(
        (
            ("card", "agreed on a card, reported by the host"),
            ("elicitation", "agreed when the assistant asked, reported by the host"),
        )
    ):
        await demand(world, bookAppointment=demanded)
        world.clock.advance(seconds=6)
        wanted = await booking(agent, at=number * 2)
        if demanded == "card":
            confirmed = {**wanted, "confirmationToken": await token_of_card(agent, TOOL, wanted)}
            done = await modern(agent, TOOL, confirmed, CARDS)
        else:
            done = await answered(agent, TOOL, wanted, await modern(agent, TOOL, wanted), YES)
        appointment = done["structuredContent"]["appointmentId"]
        assert shown in words((await staff.get(f"/console/appointments/{appointment}")).text)
        assert f"consent: {shown}" in words((await staff.get(f"/console/audit?subject={appointment}")).text)
