"""A shared desk: sessions are locked, unlocked with a PIN in their own browser, and switched between people."""

import asyncio
import re
from typing import Any

import httpx
import pytest

from frontdesk.access.staff.desk_lock import MAX_WRONG_PINS
from frontdesk.access.staff.members import disable_staff, enable_staff
from frontdesk.access.staff.sessions import prune_sessions
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
    waiting_for,
)
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

ACCOUNT = "/console/account"
world = world_of_a_module


async def person(world: World, name: str, pin: str = "2580", **options: Any) -> httpx.AsyncClient:
    browser = await signed_in(world, name=name, **options)
    answer = await set_pin(browser, pin)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/account?notice=pin_set")
    return browser


async def set_pin(browser: httpx.AsyncClient, pin: str, **fields: str) -> httpx.Response:
    return await browser.post("/console/pin", data={"pin": pin, "again": pin, "minutes": "5", **fields})


async def unlock(browser: httpx.AsyncClient, pin: str, name: str = "") -> httpx.Response:
    page = await browser.get("/console/locked")
    assert page.status_code == 200, page.headers.get("location")
    (number, *_) = [
        part.split('"', 1)[0] for part in page.text.split('name="session" value="')[1:] if f"<bdi>{name}" in part
    ]
    form = {"csrf": csrf_in(page.text), "session": number, "pin": pin, "next": ACCOUNT}
    return await browser.post("/console/unlock", data=form)


def offered(locked: httpx.Response) -> str:
    """The person who only has to enter the PIN."""
    [name] = re.findall(r" checked><span><bdi>(\w+)", locked.text)
    return str(name)


async def is_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get(ACCOUNT)).status_code == 200


async def test_a_locked_session_shows_nothing_until_its_pin(world: World) -> None:
    browser = await person(world, "Ana")
    assert (await browser.post("/console/lock")).headers["location"] == "/console/locked"
    answer = await browser.get("/console/patients")
    assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2Fpatients"
    answer = await browser.get(answer.headers["location"])
    assert answer.headers["location"] == "/console/locked?next=%2Fconsole%2Fpatients"
    for path in ("/console/alive", "/console/live"):
        assert (await browser.get(path, headers={"Sec-Fetch-Dest": "empty"})).status_code == 401
    assert (await browser.post("/console/sign-out-everywhere")).status_code == 401
    forged = await browser.post("/console/unlock", data={"csrf": "0" * 64, "session": "0" * 8, "pin": "2580"})
    assert forged.status_code == 403
    wrong = await unlock(browser, "1379")
    assert wrong.status_code == 401
    assert "The PIN is wrong" in wrong.text
    right = await unlock(browser, "2580")
    assert (right.status_code, right.headers["location"]) == (303, ACCOUNT)
    assert await is_in(browser)
    staff_id = browser.headers[TEST_STAFF]
    recorded = [each[:2] for each in await audited(world) if each[2] == staff_id]
    assert recorded[-3:] == [
        ("console.lock", "executed"), ("console.unlock", "unauthorized"), ("console.unlock", "executed"),
    ]  # fmt: skip


async def test_idle_sessions_are_locked_instead_of_ended_and_last_for_the_day(world: World) -> None:
    browser, without = await person(world, "Bea"), await signed_in(world, name="Cal")
    world.clock.advance(minutes=4, seconds=59)
    assert await is_in(browser)
    world.clock.advance(minutes=5)
    assert not await is_in(browser)
    assert await is_in(without)
    world.clock.advance(hours=2)
    await prune_sessions(world.database, world.clock(), 1000)
    assert not await is_in(without)
    assert (await unlock(browser, "2580")).status_code == 303, "after lunch"
    assert await is_in(browser)
    world.clock.advance(hours=12)
    assert (await browser.get("/console/locked")).headers["location"] == "/console/sign-in"


async def signed_in_elsewhere(world: World, desk: httpx.AsyncClient) -> httpx.AsyncClient:
    """Another session of the same person."""
    elsewhere = world.anonymous()
    assert (await use_link(elsewhere, await link_token(world, desk.headers[TEST_STAFF]))).status_code == 303
    elsewhere.headers["X-CSRF-Token"] = csrf_in((await elsewhere.get(ACCOUNT)).text)
    return elsewhere


@pytest.mark.parametrize("change", [{"pin": "2580", "again": "2580", "minutes": "30"}, {"remove": "yes"}])
async def test_an_idle_desk_stays_locked_when_its_person_changes_the_pin_elsewhere(
    world: World, change: dict[str, str]
) -> None:
    desk = await person(world, "Ida")
    elsewhere = await signed_in_elsewhere(world, desk)
    world.clock.advance(minutes=4)
    assert await is_in(elsewhere)
    world.clock.advance(minutes=3)
    changed = await elsewhere.post("/console/pin", data={"current": "2580", **change})
    assert changed.status_code == 303
    assert not await is_in(desk)
    assert await is_in(elsewhere)


async def test_a_first_pin_does_not_bring_back_a_session_that_has_ended(world: World) -> None:
    desk = await signed_in(world, name="Mia")
    elsewhere = await signed_in_elsewhere(world, desk)
    world.clock.advance(minutes=20)
    assert await is_in(elsewhere)
    world.clock.advance(minutes=10)
    assert (await set_pin(elsewhere, "2580")).status_code == 303
    assert (await desk.get("/console/locked")).headers["location"] == "/console/sign-in"
    assert not await is_in(desk)
    assert await is_in(elsewhere)


async def test_people_switch_at_one_browser(world: World) -> None:
    browser = await person(world, "Dan", "2580")
    dan = browser.headers[TEST_STAFF]
    eve = await staff_member(world, name="Eve")
    assert (await use_link(browser, await link_token(world, eve.staff_id))).status_code == 303
    page = (await browser.get(ACCOUNT)).text
    assert eve.staff_id in page
    browser.headers["X-CSRF-Token"] = csrf_in(page)
    assert (await set_pin(browser, "9713")).status_code == 303
    eves = session_cookie(browser)
    assert (await browser.post("/console/lock")).status_code == 303
    assert offered(await browser.get("/console/locked")) == "Eve", "who locked it"
    refused = await unlock(browser, "9713", "Dan")
    assert refused.status_code == 401, "another person's PIN"
    assert offered(refused) == "Dan", "who was chosen"
    assert (await unlock(browser, "2580", "Dan")).status_code == 303
    assert dan in (await browser.get(ACCOUNT)).text
    assert session_cookie(browser) != eves
    thief = world.anonymous()
    thief.cookies.set("frontdesk_session", eves or "", domain="test.local", path="/console")
    assert not await is_in(thief), "a locked session's token opens nothing"
    assert (await thief.get("/console/locked")).headers["location"] == "/console/sign-in", "nor in another browser"


async def test_wrong_pins_end_the_session_and_are_not_forgiven(world: World) -> None:
    browser = await person(world, "Fay")
    await browser.post("/console/lock")
    for _ in range(MAX_WRONG_PINS - 2):
        assert (await unlock(browser, "0000")).status_code == 401
    assert (await unlock(browser, "2580")).status_code == 303
    await browser.post("/console/lock")
    assert (await unlock(browser, "")).status_code == 401
    last = await unlock(browser, "2581")
    assert (last.status_code, last.headers["location"]) == (303, "/console/sign-in"), "no session is left to unlock"
    assert not await is_in(browser)
    changing = await person(world, "Gil")
    for _ in range(MAX_WRONG_PINS):
        await set_pin(changing, "9713", current="0000")
    assert not await is_in(changing), "guessing by changing the PIN"


async def test_a_pin_is_checked_changed_and_removed(world: World) -> None:
    browser = await signed_in(world, name="Hal")
    assert (await browser.post("/console/lock")).status_code == 409
    for pin in ("123", "1234", "8765", "1111", "123456789", "12a4", "２５８０", ""):
        assert (await set_pin(browser, pin)).status_code == 422, pin
    assert "differ" in (await set_pin(browser, "2580", again="2581")).text
    for minutes in ("0", "31", "x", "", "9" * 30):
        assert (await set_pin(browser, "2580", minutes=minutes)).status_code == 422
    assert (await set_pin(browser, "2580")).status_code == 303
    assert "current PIN is wrong" in (await set_pin(browser, "9713")).text
    assert (await set_pin(browser, "9713", current="2580")).status_code == 303
    assert (await browser.post("/console/pin", data={"remove": "yes", "current": "2580"})).status_code == 422
    assert (await browser.post("/console/pin", data={"remove": "yes", "current": "9713"})).status_code == 303
    assert (await browser.post("/console/lock")).status_code == 409
    stored = await world.database.fetch("SELECT sealed FROM staff_pin")
    assert all(len(row["sealed"]) > 64 and b"2580" not in row["sealed"] for row in stored)


async def test_disabled_people_do_not_unlock_and_a_reset_forgets_the_pin(world: World) -> None:
    admin, browser = await signed_in(world, role="admin"), await person(world, "Ida")
    staff_id = browser.headers[TEST_STAFF]
    page = await browser.get("/console/locked")
    await disable_staff(world.database, staff_id, audit=audit_context(world.clock))
    assert (await browser.get("/console/locked")).status_code == 303
    await enable_staff(world.database, staff_id, audit=audit_context(world.clock))
    number = page.text.split('name="session" value="')[1].split('"', 1)[0]
    form = {"csrf": csrf_in(page.text), "session": number, "pin": "2580"}
    assert (await browser.post("/console/unlock", data=form)).headers["location"] == "/console/sign-in"
    assert not await is_in(browser)
    assert (await admin.post(f"/console/staff/{staff_id}/reset")).status_code == 200
    assert await world.database.fetchval("SELECT count(*) FROM staff_pin WHERE staff_id = $1", staff_id) == 0


async def test_a_pin_of_a_former_secret_key_can_be_set_again(world: World) -> None:
    browser = await person(world, "Jonah")
    replaced = (
        "UPDATE staff_pin n SET sealed = sha256(sealed) FROM staff s WHERE s.staff_id = n.staff_id AND s.name = $1"
    )
    async with world.database.transaction() as connection:
        await connection.execute(replaced, "Jonah")
    assert (await set_pin(browser, "9713")).status_code == 303
    await browser.post("/console/lock")
    assert (await unlock(browser, "9713")).status_code == 303


@pytest.mark.parametrize("change", [{"pin": "9713", "again": "9713", "minutes": "5"}, {"remove": "yes"}])
async def test_wrong_pins_at_the_same_time_end_the_session_and_change_nothing(
    world: World, change: dict[str, str]
) -> None:
    browser = await person(world, "Kim")
    sent = [browser.post("/console/pin", data={"current": "0000", **change}) for _ in range(12)]
    answers = sorted(answer.status_code for answer in await asyncio.gather(*sent))
    assert answers == [401] * (12 - MAX_WRONG_PINS) + [422] * MAX_WRONG_PINS
    assert not await is_in(browser)
    assert (await use_link(browser, await link_token(world, browser.headers[TEST_STAFF]))).status_code == 303
    browser.headers["X-CSRF-Token"] = csrf_in((await browser.get(ACCOUNT)).text)
    assert (await set_pin(browser, "9713", current="2580")).status_code == 303, "the PIN is what it was"


async def test_a_session_that_is_locked_meanwhile_neither_changes_the_pin_nor_is_locked_again(world: World) -> None:
    browser = await person(world, "Lou")
    staff_id = browser.headers[TEST_STAFF]
    async with world.database.transaction() as connection:
        await connection.execute("SELECT FROM staff WHERE staff_id = $1 FOR UPDATE", staff_id)
        waiting = [
            asyncio.create_task(set_pin(browser, "9713", current="2580")),
            asyncio.create_task(browser.post("/console/lock")),
        ]
        await waiting_for(connection, len(waiting))
        lock = "UPDATE staff_session SET locked_at = $2 WHERE staff_id = $1"
        await connection.execute(lock, staff_id, world.clock())
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [401, 401]
    assert (await unlock(browser, "2580")).status_code == 303
    assert ("console.lock", "executed", staff_id) not in await audited(world)
