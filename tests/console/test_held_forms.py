"""Forms that take their time: what their sender may do is decided when they have arrived."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

import httpx
import pytest

from frontdesk.access.clients.records import list_clients
from frontdesk.access.staff.links import new_link
from frontdesk.access.staff.members import disable_staff, list_staff, set_role
from tests.assistants.connecting import consent_page, registered, request_in
from tests.console.signing_in import TEST_STAFF, audited, signed_in, waiting_for
from tests.desk.acting import audit_context, staff_member
from tests.support.held_bodies import HeldRequest, held_post
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module
NEW_CLIENT = {
    "name": "Left behind",
    "grant": "integration",
    "scopes": "patients:read",
    "per_minute": "600",
    "quota": "100000",
    "once": "k1",
}
NEW_ADMIN = {"name": "Mallory", "role": "admin", "email": "mallory@practice.example"}
Change = Callable[[World, str], Awaitable[object]]


async def held_form(browser: httpx.AsyncClient, path: str, form: dict[str, str] | list[tuple[str, str]]) -> HeldRequest:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return await held_post(browser, path, urlencode(form).encode(), headers)


async def disable(world: World, staff_id: str) -> None:
    await disable_staff(world.database, staff_id, audit=audit_context(world.clock))


async def demote(world: World, staff_id: str) -> None:
    await set_role(world.database, staff_id, "staff", audit=audit_context(world.clock))


async def reset(world: World, staff_id: str) -> None:
    await new_link(world.database, staff_id, audit=audit_context(world.clock), reset=True)


async def tried_while(
    world: World, browser: httpx.AsyncClient, path: str, form: dict[str, str] | list[tuple[str, str]], change: str
) -> httpx.Response:
    """The answer to a form that was let in and then waited for the row of its sender, who was changed meanwhile."""
    staff_id = browser.headers[TEST_STAFF]
    async with world.database.transaction() as connection:
        await connection.execute("SELECT FROM staff WHERE staff_id = $1 FOR UPDATE", staff_id)
        held = await held_form(browser, path, form)
        answer = asyncio.create_task(held.let_go())
        await waiting_for(connection, 1)
        await connection.execute(change, staff_id)
    return await answer


@pytest.mark.parametrize(("change", "status"), [(disable, 401), (demote, 403), (reset, 401)])
async def test_an_admin_who_loses_their_rights_meanwhile_gets_nothing(
    world: World, change: Change, status: int
) -> None:
    admin, other = await signed_in(world, "admin", name="Leaving"), await staff_member(world, "admin", name="Staying")
    held = [
        await held_form(admin, f"/console/staff/{other.staff_id}/link", {"x": "1"}),
        await held_form(admin, "/console/staff", NEW_ADMIN),
        await held_form(admin, "/console/clients", NEW_CLIENT),
    ]
    await change(world, admin.headers[TEST_STAFF])
    for request in held:
        answer = await request.let_go()
        assert answer.status_code == status, answer.text
        assert "/console/sign-in#" not in answer.text
        assert 'href="/console/staff"' not in answer.text, "the navigation of an admin"
    assert "Mallory" not in [member.name for member in await list_staff(world.database)]
    assert "Left behind" not in [client.name for client in await list_clients(world.database)]


async def test_a_desk_that_is_locked_meanwhile_does_nothing(world: World) -> None:
    browser = await signed_in(world, name="Ana")
    minutes = {"pin": "2580", "again": "2580", "minutes": "5"}
    assert (await browser.post("/console/pin", data=minutes)).status_code == 303
    held = await held_form(browser, "/console/sign-out-everywhere", {"x": "1"})
    assert (await browser.post("/console/lock")).status_code == 303
    answer = await held.let_go()
    assert answer.status_code == 401
    assert "Ana" not in answer.text
    done = [operation for operation, _, actor in await audited(world) if actor == browser.headers[TEST_STAFF]]
    assert done[-1] == "console.lock"


async def test_a_person_whose_sign_in_is_reset_meanwhile_connects_no_assistant(world: World) -> None:
    browser = await signed_in(world, name="Sam")
    page = await consent_page(browser, await registered(world))
    form = [("request", request_in(page.text)), ("decision", "connect"), ("groups", "patients")]
    held = await held_form(browser, "/console/connect", form)
    await reset(world, browser.headers[TEST_STAFF])
    assert (await held.let_go()).status_code == 401
    assert browser.headers[TEST_STAFF] not in [client.staff_id for client in await list_clients(world.database)]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("UPDATE staff SET role = 'staff' WHERE staff_id = $1", 403),
        ("DELETE FROM staff_session WHERE staff_id = $1", 401),
    ],
)
async def test_who_loses_their_rights_before_the_commit_hands_out_nothing(
    world: World, change: str, status: int
) -> None:
    other, client = await staff_member(world, "admin"), await world.client()
    client_id = client.headers["X-Test-Client"]
    before = await world.database.fetchval("SELECT count(*) FROM client")
    for path, form in (
        (f"/console/staff/{other.staff_id}/link", {}),
        ("/console/staff", NEW_ADMIN),
        ("/console/clients", NEW_CLIENT),
        (f"/console/clients/{client_id}/rotate", {"overlap": "24", "once": "k1"}),
    ):
        admin = await signed_in(world, "admin", name="Leaving")
        answer = await tried_while(world, admin, path, {"x": "1", **form}, change)
        assert answer.status_code == status, path
    assert await world.database.fetchval("SELECT count(*) FROM staff WHERE name = 'Mallory'") == 0
    assert await world.database.fetchval("SELECT count(*) FROM client") == before
    secrets = "SELECT count(*) FROM client_secret WHERE client_id = $1"
    assert await world.database.fetchval(secrets, client_id) == 1


async def test_whose_session_ends_before_the_commit_connects_no_assistant(world: World) -> None:
    browser = await signed_in(world, name="Tom")
    page = await consent_page(browser, await registered(world))
    form = [("request", request_in(page.text)), ("decision", "connect"), ("groups", "patients")]
    end = "DELETE FROM staff_session WHERE staff_id = $1"
    answer = await tried_while(world, browser, "/console/connect", form, end)
    assert answer.status_code == 401
    assert "Tom" not in answer.text
