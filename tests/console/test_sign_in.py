"""Signing in by a one-time link: what works, how often and how long, and what does not."""

import asyncio
import contextlib
import logging

import pytest

from frontdesk.access.limits import failed_attempts
from frontdesk.access.staff.members import StaffError, disable_staff, enable_staff
from frontdesk.store.practices import set_suspended
from tests.console.signing_in import (
    audit_context,
    audited,
    csrf_in,
    link_token,
    session_cookie,
    staff_member,
    use_link,
)
from tests.support.world import World

SIGN_IN = "/console/sign-in"


async def test_a_link_signs_its_person_in(world: World) -> None:
    member = await staff_member(world, "admin", name="Ana Costa")
    browser = world.anonymous()
    answer = await use_link(browser, await link_token(world, member.staff_id))
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/"
    page = await browser.get("/console/account")
    assert page.status_code == 200
    assert "Ana Costa" in page.text
    assert member.staff_id in page.text
    assert ("console.sign_in", "executed", member.staff_id) in await audited(world)


async def test_the_whole_address_may_be_pasted(world: World) -> None:
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    answer = await use_link(world.anonymous(), f" http://test/console/sign-in#{token} ")
    assert answer.status_code == 303


async def test_a_link_works_once(world: World) -> None:
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    assert (await use_link(world.anonymous(), token)).status_code == 303
    browser = world.anonymous()
    again = await use_link(browser, token)
    assert again.status_code == 401
    assert "already used" in again.text
    assert session_cookie(browser) is None
    assert ("console.sign_in", "unauthorized", member.staff_id) in await audited(world)


async def test_of_many_who_use_a_link_at_once_one_comes_in(world: World) -> None:
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    answers = await asyncio.gather(*(use_link(world.anonymous(), token) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [303] + [401] * 7


async def test_links_changes_and_sign_ins_at_once_do_not_wait_in_a_circle(world: World) -> None:
    member = await staff_member(world)

    async def come_and_go(number: int) -> None:
        for _ in range(4):
            if number % 3 == 0:
                await disable_staff(world.database, member.staff_id, audit=audit_context(world.clock))
                await enable_staff(world.database, member.staff_id, audit=audit_context(world.clock))
            else:
                with contextlib.suppress(StaffError):  # disabled just now
                    await use_link(world.anonymous(), await link_token(world, member.staff_id))

    await asyncio.gather(*(come_and_go(number) for number in range(6)))


async def test_a_link_of_a_quarter_of_an_hour_ago_does_not_work(world: World) -> None:
    member = await staff_member(world)
    token, later = await link_token(world, member.staff_id), await link_token(world, member.staff_id)
    assert (await use_link(world.anonymous(), token)).status_code == 401, "a newer link replaces one that was not used"
    world.clock.advance(minutes=14, seconds=59)
    assert (await use_link(world.anonymous(), later)).status_code == 303
    last = await link_token(world, member.staff_id)
    world.clock.advance(minutes=15)
    assert (await use_link(world.anonymous(), last)).status_code == 401


async def test_opening_a_link_does_not_use_it_up(world: World) -> None:
    """A preview or a scanner fetches the address; what stands behind the # never reaches the server."""
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    for _ in range(3):
        page = await world.anonymous().get(f"{SIGN_IN}#{token}")
        assert page.status_code == 200
        assert token not in page.text
    assert (await use_link(world.anonymous(), token)).status_code == 303


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 5000, "\udcff", "é'--", "#"])
async def test_what_is_no_link_is_refused_and_kept_in_no_page(world: World, token: str) -> None:
    browser = world.anonymous()
    page = await browser.get(SIGN_IN)
    body = {"csrf": csrf_in(page.text), "link": token.encode("utf-8", "surrogateescape").decode("latin-1")}
    answer = await browser.post(SIGN_IN, data=body)
    assert answer.status_code == 401
    assert session_cookie(browser) is None
    assert len(token) < 5 or token not in answer.text


async def test_nobody_signs_in_who_is_disabled_or_whose_practice_is_suspended(world: World) -> None:
    first, second = await staff_member(world), await staff_member(world, practice="other")
    token, other = await link_token(world, first.staff_id), await link_token(world, second.staff_id)
    await disable_staff(world.database, first.staff_id, audit=audit_context(world.clock))
    await set_suspended(world.database, "other", suspended=True)
    assert (await use_link(world.anonymous(), token)).status_code == 401
    assert (await use_link(world.anonymous(), other)).status_code == 401
    await set_suspended(world.database, "other", suspended=False)
    assert (await use_link(world.anonymous(), other)).status_code == 303


async def test_guessing_links_is_capped_for_an_address_and_locks_nobody_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_attempts, "PER_ADDRESS", 5)  # so that they all fall into one minute
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    guesser = world.anonymous()
    page = csrf_in((await guesser.get(SIGN_IN)).text)
    for number in range(5):
        answer = await guesser.post(SIGN_IN, data={"csrf": page, "link": f"guess{number}"})
        assert answer.status_code == 401
    refused = await guesser.post(SIGN_IN, data={"csrf": page, "link": "guess"})
    assert refused.status_code == 429
    assert "Wait a minute" in refused.text
    assert (await use_link(world.anonymous(), token)).status_code == 303, "a right link is not refused there either"


async def test_a_sign_in_form_is_good_only_in_its_own_browser(world: World) -> None:
    """Or somebody could sign others in as themselves, and read what they then type."""
    member = await staff_member(world)
    token = await link_token(world, member.staff_id)
    mine, theirs = world.anonymous(), world.anonymous()
    form = csrf_in((await mine.get(SIGN_IN)).text)
    await theirs.get(SIGN_IN)
    for browser, fields in (
        (theirs, {"csrf": form, "link": token}),
        (theirs, {"link": token}),
        (world.anonymous(), {"csrf": form, "link": token}),
    ):
        answer = await browser.post(SIGN_IN, data=fields)
        assert answer.status_code == 403
        assert session_cookie(browser) is None
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ):
        answer = await mine.post(SIGN_IN, data={"csrf": form, "link": token}, headers=headers)
        assert answer.status_code == 403
    answer = await mine.post(
        SIGN_IN, data={"csrf": form, "link": token}, headers={"Sec-Fetch-Site": "same-origin", "Origin": "null"}
    )
    assert answer.status_code == 303


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/console/account", "/console/account"),
        ("/console/staff?page=2&x=a%20b", "/console/staff?page=2&x=a%20b"),
        ("https://evil.example/", "/console/"),
        ("//evil.example/console/", "/console/"),
        ("/console//evil.example", "/console//evil.example"),  # a path on this host
        ("/console\\..\\evil", "/console/"),
        ("/console/\r\nSet-Cookie: a=b", "/console/"),
        ("/elsewhere", "/console/"),
        ("javascript:alert(1)", "/console/"),
    ],
)
async def test_after_signing_in_one_is_where_one_wanted_to_be_within_the_console(
    world: World, wanted: str, reached: str
) -> None:
    member = await staff_member(world)
    answer = await use_link(world.anonymous(), await link_token(world, member.staff_id), next=wanted)
    assert answer.status_code == 303
    assert answer.headers["location"] == reached


async def test_signing_in_leads_back_to_the_page_that_was_opened(world: World) -> None:
    browser = world.anonymous()
    answer = await browser.get("/console/account?tab=1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2Faccount%3Ftab%3D1"
    page = await browser.get(answer.headers["location"])
    assert 'name="next" value="/console/account?tab=1"' in page.text


async def test_neither_tokens_nor_names_reach_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    member = await staff_member(world, name="Ana Quixote")
    token = await link_token(world, member.staff_id)
    browser = world.anonymous()
    await use_link(browser, token)
    await browser.get("/console/account")
    await use_link(browser, token)
    lines = [repr(record.__dict__) for record in caplog.records if record.name.startswith("frontdesk")]
    assert any(member.staff_id in line for line in lines), "the log was listened to"
    session = session_cookie(browser)
    assert session is not None
    for secret in (token, session, "Quixote"):
        assert not any(secret in line for line in lines)
