"""Signing in to the console as a browser does: by a one-time link, with cookies, over HTTP."""

import asyncio
import re
from typing import Any

import httpx

from frontdesk.access.staff.links import new_link
from tests.desk.acting import audit_context, staff_member
from tests.support.world import World

TEST_STAFF = "X-Test-Staff"
ACCESS_TOKEN = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")  # its first letters alone may stand in any random id


async def link_token(world: World, staff_id: str) -> str:
    _, token = await new_link(world.database, staff_id, audit=audit_context(world.clock))
    return token


async def use_link(browser: httpx.AsyncClient, token: str, **fields: str) -> httpx.Response:
    """Opens the sign-in page and presses its button."""
    page = await browser.get("/console/sign-in")
    assert page.status_code == 200, page.text
    return await browser.post("/console/sign-in", data={"csrf": csrf_in(page.text), "link": token, **fields})


async def signed_in(
    world: World, role: str = "staff", *, practice: str = "harbor", name: str = "Ana"
) -> httpx.AsyncClient:
    """A browser with a session; its posts carry the session's CSRF token, and its staff id is in a header."""
    member = await staff_member(world, role, practice=practice, name=name)
    browser = world.anonymous()
    answer = await use_link(browser, await link_token(world, member.staff_id))
    assert answer.status_code == 303, answer.text
    browser.headers[TEST_STAFF] = member.staff_id
    browser.headers["X-CSRF-Token"] = csrf_in((await browser.get("/console/account")).text)
    return browser


def session_cookie(browser: httpx.AsyncClient) -> str | None:
    return browser.cookies.get("frontdesk_session")


def browser_at(world: World, address: str) -> httpx.AsyncClient:
    """A browser of somebody elsewhere."""
    transport = httpx.ASGITransport(app=world.transport.app, client=(address, 40_000))
    browser = httpx.AsyncClient(transport=transport, base_url="http://test", timeout=30)
    world.clients.append(browser)
    return browser


async def waiting_for(connection: Any, number: int) -> None:
    """Until so many others wait for locks, such as those that this connection holds."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(30):
        while await connection.fetchval(count) < number:
            await asyncio.sleep(0.02)
            await connection.execute("SELECT pg_stat_clear_snapshot()")


async def audited(world: World, practice: str = "harbor") -> list[tuple[str, str, str]]:
    """Operation, outcome and actor of what the console has recorded, the oldest first."""
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
    async with world.database.transaction(practice_id) as connection:
        rows = await connection.fetch(
            """SELECT operation, outcome, actor FROM audit_record
               WHERE practice_id = $1 AND operation LIKE 'console.%' ORDER BY record_id""",
            practice_id,
        )
    return [(row["operation"], row["outcome"], row["actor"]) for row in rows]


def csrf_in(html: str) -> str:
    """The token of the first form of a page."""
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', html)
    assert found is not None, "the page has no form"
    return found.group(1)
