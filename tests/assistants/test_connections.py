"""The page of connected assistants: who sees what, and what disconnecting ends."""

import asyncio
import re

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits, ClientError, change_client, show_client
from tests.assistants.connecting import agreed, answer_of, client_of, connected, consent_page, decide, registered
from tests.console.desk import Document, records, words
from tests.console.signing_in import TEST_STAFF, signed_in, waiting_for
from tests.doors.mcp_speech import call, problem, send
from tests.support.shared_database import world_of_a_module
from tests.support.world import PRACTICE, World

world = world_of_a_module


async def rows(browser: httpx.AsyncClient) -> list[str]:
    page = await browser.get("/console/assistants")
    assert page.status_code == 200, page.text
    return [words(row.text) for row in Document(page.text).tagged("tr")[1:]]


async def test_staff_see_and_disconnect_their_own_and_admins_all(world: World) -> None:
    admin = await signed_in(world, role="admin", name="Ana")
    sam, eve = await signed_in(world, name="Sam"), await signed_in(world, name="Eve")
    assert await rows(sam) == []
    assert "http://test/mcp" in (await sam.get("/console/assistants")).text
    assert "need a public address with https" in (await sam.get("/console/assistants")).text
    of_sam, of_eve = await connected(world, sam, "patients", name="Claude"), await connected(world, eve, name="Codex")
    await call(of_sam.http, "get_practice")
    await world.service.usage.flush()
    [row] = await rows(sam)
    assert re.match(r"Claudeassistant.example Sam See the practice .*Read patients' data .* Active Disconnect", row), (
        row
    )
    assert "never" not in row
    assert len(await rows(admin)) == 2
    theirs = await client_of(world, of_eve)
    assert (await sam.post(f"/console/assistants/{theirs}/disconnect")).status_code == 404
    assert (await send(of_eve.http, "tools/list")).status_code == 200

    own = await client_of(world, of_sam)
    for browser, client_id, assistant in ((sam, own, of_sam), (admin, theirs, of_eve)):
        answer = await browser.post(f"/console/assistants/{client_id}/disconnect")
        assert answer.headers["location"] == "/console/assistants?notice=assistant_disconnected"
        world.service.authenticator.on_change("client", client_id)
        assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
        assert (await assistant.refresh()).json()["error"] == "invalid_grant"
        assert (await browser.post(f"/console/assistants/{client_id}/disconnect")).status_code == 404
    acts = await records(world, operation="console.disconnect_assistant")
    actors = [sam.headers[TEST_STAFF], admin.headers[TEST_STAFF]]
    assert [(act["actor"], act["subject_ids"]) for act in acts] == [(actors[0], [own]), (actors[1], [theirs])]
    assert "Disconnected" in (await rows(sam))[0]

    # Connected again, it is the same client; enabling it in the list of clients does not connect it.
    await admin.post(f"/console/clients/{own}/enable")
    assert "Disconnected" in (await rows(sam))[0]
    of_sam.use((await of_sam.redeem(await agreed(sam, of_sam))).json())
    assert await client_of(world, of_sam) == own
    assert (await send(of_sam.http, "tools/list")).status_code == 200
    page = (await admin.get(f"/console/clients/{own}")).text
    assert "Make a new secret" not in page
    assert "Connected by" in page


async def test_an_assistant_that_an_admin_has_disabled_cannot_be_connected_again(world: World) -> None:
    admin, sam = await signed_in(world, role="admin", name="Ana"), await signed_in(world, name="Sam")
    assistant = await connected(world, sam)
    client_id = await client_of(world, assistant)
    await admin.post(f"/console/clients/{client_id}/disable")
    for _ in range(2):
        page = await consent_page(sam, assistant)
        assert (await decide(sam, page.text, "connect")).status_code == 403
        await sam.post(f"/console/assistants/{client_id}/disconnect")  # does not lift it
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    await admin.post(f"/console/clients/{client_id}/enable")
    page = await consent_page(sam, assistant)
    assert "code" in answer_of(await decide(sam, page.text, "connect"))


async def test_an_admin_does_not_give_back_what_the_staff_member_takes_away_meanwhile(world: World) -> None:
    sam = await signed_in(world, name="Sam")
    client_id = await client_of(world, await connected(world, sam))
    before, narrower = (await show_client(world.database, client_id)).scopes, ["practices:read", "slots:read"]
    async with world.database.transaction() as connection:
        await connection.execute("SELECT FROM client WHERE client_id = $1 FOR UPDATE", client_id)
        change = asyncio.create_task(change_client(world.database, client_id, scopes=before, name="Renamed"))
        await waiting_for(connection, 1)
        await connection.execute("UPDATE client SET scopes = $2 WHERE client_id = $1", client_id, narrower)
    with pytest.raises(ClientError, match="give it more scopes"):
        await change
    assert list((await show_client(world.database, client_id)).scopes) == narrower


async def test_nobody_lets_an_assistant_see_patients_that_it_does_not_know(world: World) -> None:
    admin, sam = await signed_in(world, role="admin", name="Ana"), await signed_in(world, name="Sam")
    assistant = await connected(world, sam)
    client_id = await client_of(world, assistant)
    page = await admin.get(f"/console/clients/{client_id}")
    assert 'name="patients_per_day"' in page.text
    assert 'name="known_patients_only"' not in page.text
    held = {"name": "Claude", "grant": "agent", "per_minute": "10", "quota": "10", "scopes": ["slots:read"]}
    refused = await admin.post(f"/console/clients/{client_id}", data={**held, "known_patients_only": "no"})
    assert refused.status_code == 422
    assert "sees only patients that it matched" in refused.text
    with pytest.raises(ClientError, match="sees only patients that it matched"):
        await change_client(world.database, client_id, access_limits=AccessLimits())
    changed = await admin.post(f"/console/clients/{client_id}", data={**held, "patients_per_day": "7"})
    assert changed.status_code == 303, changed.text
    limits = (await show_client(world.database, client_id)).access_limits
    assert limits == AccessLimits(patients_per_day=7, known_patients_only=True)


async def state_of(browser: httpx.AsyncClient, client_id: str) -> str:
    """As the list says, and the page of the client."""
    page = Document((await browser.get("/console/assistants")).text)
    client = Document((await browser.get(f"/console/clients/{client_id}")).text)
    [listed] = [words(each.text) for each in page.of_class("badge")]
    assert listed == words(client.of_class("badge")[0].text)
    return listed


async def test_an_assistant_that_cannot_continue_must_be_connected_again(world: World) -> None:
    admin = await signed_in(world, role="admin", practice="other")
    assistant = await registered(world)
    code = await agreed(admin, assistant)
    client_id, again = await client_of(world, assistant), "Must be connected again"
    assert await state_of(admin, client_id) == "Active", "it has a code"
    world.clock.advance(minutes=2)
    assert await state_of(admin, client_id) == again
    assert (await assistant.redeem(code)).json()["error"] == "invalid_grant"

    assistant.use((await assistant.redeem(await agreed(admin, assistant))).json())
    assistant.use((await assistant.refresh()).json())
    assert await state_of(admin, client_id) == "Active"
    await admin.post(f"/console/clients/{client_id}/revoke-tokens")
    assert await state_of(admin, client_id) == again
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"

    assistant.use((await assistant.redeem(await agreed(admin, assistant))).json())
    assert await state_of(admin, client_id) == "Active"
    await admin.post(f"/console/clients/{client_id}/disable")
    assert await state_of(admin, client_id) == "Disabled"
    await admin.post(f"/console/clients/{client_id}/enable")
    assert await state_of(admin, client_id) == again


async def test_removing_a_staff_member_ends_their_assistants(world: World) -> None:
    admin, sam = await signed_in(world, role="admin", name="Ana"), await signed_in(world, name="Sam")
    assistant = await connected(world, sam)
    staff_id, client_id = sam.headers[TEST_STAFF], await client_of(world, assistant)
    for change in ("disable", "remove"):
        await admin.post(f"/console/staff/{staff_id}/change", data={"change": change})
    world.service.authenticator.on_change("client", client_id)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    assert any("a removed staff member" in row for row in await rows(admin))


async def test_resetting_the_sign_in_ends_assistants_that_a_lost_device_may_hold(world: World) -> None:
    admin, sam = await signed_in(world, role="admin", name="Ana"), await signed_in(world, name="Sam")
    assistant = await connected(world, sam)
    waiting = await registered(world)
    code, client_id = await agreed(sam, waiting), await client_of(world, assistant)
    assert (await admin.post(f"/console/staff/{sam.headers[TEST_STAFF]}/reset")).status_code == 200
    world.service.authenticator.on_change("client", client_id)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    assert (await waiting.redeem(code)).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("statement", ["UPDATE client SET grant_kind = 'integration' WHERE staff_id IS NOT NULL"])
async def test_the_database_itself_keeps_assistants_agents(world: World, statement: str) -> None:
    await connected(world, await signed_in(world, name="Sam"))
    with pytest.raises(Exception, match="client_assistant"):
        await world.database.write(statement)


async def test_a_practice_can_turn_assistants_off(world: World) -> None:
    admin = await signed_in(world, role="admin")
    assistant = await connected(world, admin)
    text = PRACTICE.replace("SLUG", "harbor")
    await world.import_file(text.replace("practice: {", "practice: {assistants: false, ", 1))
    try:
        assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
        assert (await assistant.refresh()).json()["error"] == "invalid_grant"
        page = await consent_page(admin, assistant)
        assert (page.status_code, "This practice does not connect assistants." in page.text) == (403, True)
        assert "turned off in the practice file" in (await admin.get("/console/assistants")).text
        agent = await world.client()
        assert (await send(agent, "tools/list")).status_code == 200, "other clients are not concerned"
    finally:
        await world.import_file(text)
    assert (await send(assistant.http, "tools/list")).status_code == 200
