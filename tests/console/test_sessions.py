"""Sessions: how long they hold, what ends them, and that nobody can choose or read one."""

from datetime import timedelta

import httpx
import pytest

from frontdesk.access.staff.members import disable_staff, remove_staff, set_role
from frontdesk.access.staff.sessions import IDLE, SESSION_LIFETIME, prune_sessions
from frontdesk.app import build_app, build_service
from frontdesk.store.practices import set_suspended
from tests.console.signing_in import (
    TEST_STAFF,
    audit_context,
    audited,
    csrf_in,
    link_token,
    session_cookie,
    signed_in,
    staff_member,
    use_link,
)
from tests.support.world import World

ACCOUNT = "/console/account"


async def is_in(browser: httpx.AsyncClient, path: str = ACCOUNT) -> bool:
    answer = await browser.get(path)
    assert answer.status_code in (200, 204, 303, 401), answer.text
    return answer.status_code in (200, 204)


async def test_a_session_that_nobody_uses_ends(world: World, staff: httpx.AsyncClient) -> None:
    world.clock.now += IDLE - timedelta(seconds=1)
    assert await is_in(staff)
    world.clock.now += IDLE - timedelta(seconds=1)
    assert await is_in(staff), "use keeps it alive"
    world.clock.now += IDLE
    assert not await is_in(staff)


async def test_a_script_that_asks_keeps_nobody_signed_in(world: World, staff: httpx.AsyncClient) -> None:
    for _ in range(3):
        world.clock.now += IDLE / 3 - timedelta(seconds=1)
        assert await is_in(staff, "/console/alive")
    world.clock.now += timedelta(seconds=10)
    answer = await staff.get("/console/alive", headers={"Sec-Fetch-Dest": "empty"})
    assert answer.status_code == 401


async def test_a_session_ends_at_the_latest_after_half_a_day(world: World, staff: httpx.AsyncClient) -> None:
    began = world.clock.now
    while world.clock.now + IDLE / 2 < began + SESSION_LIFETIME:
        world.clock.now += IDLE / 2
        assert await is_in(staff)
    world.clock.now = began + SESSION_LIFETIME
    assert not await is_in(staff)


async def test_signing_out_ends_the_session_on_the_server(world: World, staff: httpx.AsyncClient) -> None:
    token = session_cookie(staff)
    answer = await staff.post("/console/sign-out")
    assert answer.status_code == 303
    assert session_cookie(staff) is None, "the browser forgets it"
    thief = world.anonymous()
    thief.cookies.set("frontdesk_session", token or "")
    assert not await is_in(thief)
    assert ("console.sign_out", "executed", staff.headers[TEST_STAFF]) in await audited(world)


async def test_signing_out_everywhere_ends_every_session_of_that_person_only(world: World) -> None:
    member, other = await staff_member(world), await signed_in(world)
    browsers = [world.anonymous() for _ in range(3)]
    for browser in browsers:
        await use_link(browser, await link_token(world, member.staff_id))
        assert await is_in(browser)
    page = await browsers[0].get(ACCOUNT)
    assert page.text.count("<strong>A browser</strong>") == 3
    unused = await link_token(world, member.staff_id)
    await browsers[0].post("/console/sign-out-everywhere", data={"csrf": csrf_in(page.text)})
    assert [await is_in(browser) for browser in browsers] == [False, False, False]
    assert (await use_link(browsers[0], unused)).status_code == 401, "a link that lies about is no way back in"
    assert await is_in(other)
    assert ("console.sign_out_everywhere", "executed", member.staff_id) in await audited(world)


async def test_disabling_removing_and_suspending_end_sessions_at_once(world: World) -> None:
    disabled, removed, suspended = [await signed_in(world, practice=slug) for slug in ("harbor", "harbor", "other")]
    await disable_staff(world.database, disabled.headers[TEST_STAFF], audit=audit_context(world.clock))
    await remove_staff(world.database, removed.headers[TEST_STAFF], audit=audit_context(world.clock))
    await set_suspended(world.database, "other", suspended=True)
    assert [await is_in(browser) for browser in (disabled, removed, suspended)] == [False, False, False]


async def test_a_role_that_changes_holds_from_the_next_request_on(world: World, admin: httpx.AsyncClient) -> None:
    assert (await admin.get("/console/staff")).status_code == 200
    await set_role(world.database, admin.headers[TEST_STAFF], "staff", audit=audit_context(world.clock))
    assert (await admin.get("/console/staff")).status_code == 403


async def test_a_session_that_was_planted_is_not_taken_over(world: World) -> None:
    """Session fixation: a cookie known before the sign-in is worth nothing after it."""
    member = await staff_member(world)
    browser = world.anonymous()
    browser.cookies.set("frontdesk_session", "planted" * 7, domain="test.local", path="/console")
    assert not await is_in(browser)
    await use_link(browser, await link_token(world, member.staff_id))
    first = {cookie.value for cookie in browser.cookies.jar if cookie.name == "frontdesk_session"}
    thief = world.anonymous()
    thief.cookies.set("frontdesk_session", "planted" * 7)
    assert not await is_in(thief)
    assert "planted" * 7 not in first


async def test_signing_in_again_makes_a_new_session_and_ends_the_old_one(world: World) -> None:
    victim, attacker = await staff_member(world, name="Victim"), await signed_in(world, name="Attacker")
    planted = session_cookie(attacker)
    assert planted is not None
    await use_link(attacker, await link_token(world, victim.staff_id))
    assert session_cookie(attacker) != planted
    assert "Victim" in (await attacker.get(ACCOUNT)).text
    thief = world.anonymous()
    thief.cookies.set("frontdesk_session", planted)
    assert not await is_in(thief)


async def test_tokens_are_stored_only_as_hashes(world: World, staff: httpx.AsyncClient) -> None:
    link = await link_token(world, staff.headers[TEST_STAFF])
    stored = ""
    for table in ("staff", "staff_link", "staff_session"):
        rows = await world.database.fetch(f"SELECT t::text FROM {table} t")
        assert rows
        stored += "".join(row[0] for row in rows)
    for token in (link, session_cookie(staff) or "-"):
        assert token not in stored
        assert token.encode().hex() not in stored


async def test_a_session_check_is_one_statement_and_seldom_a_write(world: World, staff: httpx.AsyncClient) -> None:
    await staff.get("/console/alive")
    before = world.database.statements
    await staff.get("/console/alive")
    assert world.database.statements - before == 1


async def test_while_the_database_is_away_nobody_is_signed_out_or_let_in(
    world: World, staff: httpx.AsyncClient
) -> None:
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    await world.database.close()
    answer = await staff.get(ACCOUNT)
    assert answer.status_code == 502
    assert "not possible at the moment" in answer.text
    assert session_cookie(staff) is not None
    browser = world.anonymous()
    form = csrf_in((await browser.get("/console/sign-in")).text)
    refused = await browser.post("/console/sign-in", data={"csrf": form, "link": token})
    assert refused.status_code == 502
    await world.database.open()
    assert await is_in(staff)
    assert (await use_link(browser, token)).status_code == 303


async def test_a_person_has_a_bounded_number_of_sessions(world: World) -> None:
    member = await staff_member(world)
    browsers = [world.anonymous() for _ in range(22)]
    for browser in browsers:
        world.clock.advance(seconds=1)
        await use_link(browser, await link_token(world, member.staff_id))
    assert [await is_in(browser) for browser in browsers] == [False] * 2 + [True] * 20


async def test_housekeeping_removes_what_is_over_and_nothing_else(world: World, staff: httpx.AsyncClient) -> None:
    await prune_sessions(world.database, world.clock.now, 10)
    assert await is_in(staff)
    await signed_in(world)
    world.clock.now += timedelta(days=2)
    await prune_sessions(world.database, world.clock.now, 1)
    count = "SELECT (SELECT count(*) FROM staff_session) || ' ' || (SELECT count(*) FROM staff_link)"
    assert await world.database.fetchval(count) == "1 1"
    await prune_sessions(world.database, world.clock.now, 10)
    assert await world.database.fetchval(count) == "0 0"


@pytest.mark.parametrize(
    ("address", "name", "attributes"),
    [
        ("http://test", "frontdesk_session", {"path=/console", "httponly", "samesite=lax", "max-age=43200"}),
        (
            "https://test",
            "__Host-frontdesk_session",
            {"path=/", "httponly", "samesite=lax", "secure", "max-age=43200"},
        ),
    ],
)
async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    world: World, address: str, name: str, attributes: set[str]
) -> None:
    service = build_service(
        world.service.settings.model_copy(update={"base_url": address}), world.database, world.clock
    )
    browser = httpx.AsyncClient(transport=httpx.ASGITransport(app=build_app(service)), base_url=address)
    member = await staff_member(world)
    answer = await use_link(browser, await link_token(world, member.staff_id))
    (cookie,) = [each for each in answer.headers.get_list("set-cookie") if each.startswith(f"{name}=")]
    value, *given = [part.strip() for part in cookie.split(";")]
    assert {part.lower() for part in given} == attributes
    assert len(value.partition("=")[2]) >= 43, "256 bits"
    assert await is_in(browser)
    await browser.aclose()
