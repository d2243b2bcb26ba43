"""Passkeys: adding, using and removing them, and every answer that must not sign anybody in."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from frontdesk.access.staff import ceremonies
from frontdesk.access.staff.members import disable_staff, enable_staff, remove_staff
from frontdesk.access.staff.passkeys import MAX_PASSKEYS, list_passkeys, prune_challenges
from frontdesk.access.staff.relying_party import RelyingParty, relying_party_of
from frontdesk.app import build_app, build_service
from tests.console.admin_pages import text_of
from tests.console.authenticator import PRESENT, VERIFIED, Authenticator, decoded, encoded
from tests.console.signing_in import (
    audit_context,
    audited,
    csrf_in,
    link_token,
    staff_member,
    use_link,
    waiting_for,
)
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

ORIGIN = "https://desk.example"
SESSION = "__Host-frontdesk_session"
CHALLENGE = "__Host-frontdesk_challenge"

world = world_of_a_module


@dataclass
class Console:
    """The console at an address where browsers have passkeys."""

    world: World
    transport: httpx.ASGITransport
    browsers: list[httpx.AsyncClient] = field(default_factory=list)

    def browser(self) -> httpx.AsyncClient:
        opened = httpx.AsyncClient(transport=self.transport, base_url=ORIGIN, timeout=30)
        self.browsers.append(opened)
        return opened

    async def by_link(self, staff_id: str) -> httpx.AsyncClient:
        browser = self.browser()
        answer = await use_link(browser, await link_token(self.world, staff_id))
        assert answer.status_code == 303, answer.text
        browser.headers["X-CSRF-Token"] = csrf_in((await browser.get("/console/account")).text)
        return browser

    async def person(self, name: str, **options: Any) -> tuple[str, httpx.AsyncClient, Authenticator]:
        """A staff member, their browser, and the passkey that they have added."""
        member = await staff_member(self.world, name=name, **options)
        browser = await self.by_link(member.staff_id)
        holder = Authenticator(ORIGIN, credential_id=secrets.token_bytes(16))
        assert (await add(browser, holder)).status_code == 303
        return member.staff_id, browser, holder


@pytest.fixture(scope="module")
async def console(world: World) -> AsyncIterator[Console]:
    settings = world.service.settings.model_copy(update={"base_url": ORIGIN})
    service = build_service(settings, world.database, world.clock)
    opened = Console(world, httpx.ASGITransport(app=build_app(service)))
    yield opened
    for browser in opened.browsers:
        await browser.aclose()


async def add(browser: httpx.AsyncClient, holder: Authenticator, name: str = "Tablet") -> httpx.Response:
    options = await browser.post("/console/passkeys/options")
    assert options.status_code == 200, options.text
    return await browser.post("/console/passkeys", data={"credential": holder.create(options.json()), "name": name})


async def challenged(browser: httpx.AsyncClient) -> tuple[str, dict[str, Any]]:
    """The token of the sign-in form, and the options that it gets."""
    csrf = csrf_in((await browser.get("/console/sign-in")).text)
    options = await browser.post("/console/sign-in/passkey/options", data={"csrf": csrf})
    assert options.status_code == 200, options.text
    return csrf, options.json()


async def sign_in(browser: httpx.AsyncClient, holder: Authenticator, **form: str) -> httpx.Response:
    csrf, options = await challenged(browser)
    return await browser.post(
        "/console/sign-in/passkey", data={"csrf": csrf, "credential": holder.get(options), **form}
    )


async def test_a_passkey_signs_its_person_in(console: Console) -> None:
    staff_id, first, holder = await console.person("Ana Costa", role="admin")
    options = (await first.post("/console/passkeys/options")).json()
    assert options["rp"]["id"] == "desk.example"
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert [each["id"] for each in options["excludeCredentials"]] == [encoded(holder.credential_id)]
    assert options["user"]["name"] == "Ana Costa, Harbor Family Medicine"
    browser = console.browser()
    answer = await sign_in(browser, holder, next="/console/patients")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/patients")
    page = (await browser.get("/console/account")).text
    assert "with a passkey" in page
    assert "Tablet" in page
    recorded = await audited(console.world)
    assert ("console.add_passkey", "executed", staff_id) in recorded
    assert recorded[-1] == ("console.sign_in", "executed", staff_id)
    _, asked = await challenged(console.browser())
    assert asked["userVerification"] == "required"
    assert asked["allowCredentials"] == []


async def test_a_session_that_ends_meanwhile_adds_no_passkey(console: Console) -> None:
    member = await staff_member(console.world, name="Otto")
    browser = await console.by_link(member.staff_id)
    async with console.world.database.transaction() as connection:
        await connection.execute("SELECT FROM staff WHERE staff_id = $1 FOR UPDATE", member.staff_id)
        adding = asyncio.create_task(add(browser, Authenticator(ORIGIN, credential_id=secrets.token_bytes(16))))
        await waiting_for(connection, 1)
        await connection.execute("DELETE FROM staff_session WHERE staff_id = $1", member.staff_id)
    assert (await adding).status_code == 401
    assert await list_passkeys(console.world.database, member.staff_id) == []


async def test_staff_without_a_passkey_are_offered_one_after_a_link(console: Console) -> None:
    member = await staff_member(console.world, name="Newcomer")
    browser = console.browser()
    answer = await use_link(browser, await link_token(console.world, member.staff_id), next="/console/patients")
    assert answer.headers["location"] == "/console/passkeys/new?next=%2Fconsole%2Fpatients"
    page = await browser.get(answer.headers["location"])
    assert 'href="/console/patients">Not now' in page.text
    browser.headers["X-CSRF-Token"] = csrf_in(page.text)
    holder = Authenticator(ORIGIN, credential_id=secrets.token_bytes(16))
    assert (await add(browser, holder)).headers["location"] == "/console/account?notice=passkey_added"
    again = await use_link(console.browser(), await link_token(console.world, member.staff_id))
    assert again.headers["location"] == "/console/"


async def test_staff_of_two_practices_choose_by_the_passkey(console: Console) -> None:
    here, _, ours = await console.person("Bea", email="bea@example.com")
    there, _, theirs = await console.person("Bea", practice="other", email="bea@example.com")
    assert ours.user_handle != theirs.user_handle
    for holder, staff_id in ((ours, here), (theirs, there)):
        browser = console.browser()
        assert (await sign_in(browser, holder)).status_code == 303
        assert staff_id in (await browser.get("/console/account")).text


Lie = Callable[[Authenticator, Authenticator], None]


def other_origin(mine: Authenticator, _other: Authenticator) -> None:
    mine.origin = "https://desk.example.evil"


def other_domain(mine: Authenticator, _other: Authenticator) -> None:
    mine.rp_id = "example"


def another_persons_name(mine: Authenticator, other: Authenticator) -> None:
    mine.user_handle = other.user_handle


def another_persons_passkey(mine: Authenticator, other: Authenticator) -> None:
    mine.credential_id = other.credential_id


def not_verified(mine: Authenticator, _other: Authenticator) -> None:
    mine.flags = PRESENT


def not_present(mine: Authenticator, _other: Authenticator) -> None:
    mine.flags = VERIFIED


def a_copy_that_lags_behind(mine: Authenticator, _other: Authenticator) -> None:
    mine.count = 0


def an_unknown_passkey(mine: Authenticator, _other: Authenticator) -> None:
    mine.credential_id = secrets.token_bytes(16)


LIES = (other_origin, other_domain, another_persons_name, another_persons_passkey, not_verified, not_present,
        a_copy_that_lags_behind, an_unknown_passkey)  # fmt: skip


async def test_no_lie_signs_anybody_in(console: Console) -> None:
    staff_id, _, mine = await console.person("Cara")
    _, _, other = await console.person("Dan", practice="other")
    assert (await sign_in(console.browser(), mine)).status_code == 303  # the count stands at 1
    for lie in LIES:
        holder = Authenticator(ORIGIN, mine.rp_id, mine.credential_id, mine.user_handle, 10, key=mine.key)
        lie(holder, other)
        browser = console.browser()
        answer = await sign_in(browser, holder)
        assert answer.status_code == 401, lie.__name__
        assert "This passkey may not sign in" in answer.text
        assert browser.cookies.get(SESSION) is None, lie.__name__
    refused = [each for each in await audited(console.world) if each == ("console.sign_in", "unauthorized", staff_id)]
    assert len(refused) == len(LIES) - 2, "of what names a passkey of hers"
    assert (await sign_in(console.browser(), mine)).status_code == 303, "nobody has locked her out"


async def test_a_challenge_is_answered_once_in_the_browser_that_it_was_made_for(console: Console) -> None:
    _, _, holder = await console.person("Eve")
    browser, thief = console.browser(), console.browser()
    csrf, options = await challenged(browser)
    kept, answer = browser.cookies[CHALLENGE], holder.get(options)
    stolen_csrf, _ = await challenged(thief)
    stolen = await thief.post("/console/sign-in/passkey", data={"csrf": stolen_csrf, "credential": answer})
    assert stolen.status_code == 401, "a challenge of another browser"
    form = {"csrf": csrf, "credential": answer}
    assert (await browser.post("/console/sign-in/passkey", data=form)).status_code == 303
    holder.count += 5
    csrf = csrf_in((await browser.get("/console/sign-in")).text)
    browser.cookies.set(CHALLENGE, kept, domain="desk.example", path="/")
    replayed = await browser.post("/console/sign-in/passkey", data={"csrf": csrf, "credential": holder.get(options)})
    assert replayed.status_code == 401, "a challenge that was answered"
    csrf, options = await challenged(thief)
    console.world.clock.advance(minutes=5, seconds=1)
    late = await thief.post("/console/sign-in/passkey", data={"csrf": csrf, "credential": holder.get(options)})
    assert late.status_code == 403, "a challenge of long ago"
    await prune_challenges(console.world.database, console.world.clock(), 1000)
    assert await console.world.database.fetchval("SELECT count(*) FROM used_challenge") == 0


async def test_a_form_of_another_browser_or_site_is_refused(console: Console) -> None:
    _, _, holder = await console.person("Fay")
    browser = console.browser()
    csrf, options = await challenged(browser)
    form = {"csrf": csrf, "credential": holder.get(options)}
    for headers, sent in (({"Origin": "https://evil.example"}, form), ({}, {**form, "csrf": "0" * 64})):
        answer = await browser.post("/console/sign-in/passkey", data=sent, headers=headers)
        assert answer.status_code == 403
        assert browser.cookies.get(SESSION) is None
    assert (await browser.post("/console/sign-in/passkey/options", data={"csrf": "0" * 64})).status_code == 403


async def test_a_passkey_ends_with_its_owner(console: Console) -> None:
    world = console.world
    staff_id, browser, holder = await console.person("Gus")
    await disable_staff(world.database, staff_id, audit=audit_context(world.clock))
    assert (await sign_in(console.browser(), holder)).status_code == 401
    await enable_staff(world.database, staff_id, audit=audit_context(world.clock))
    browser = console.browser()
    assert (await sign_in(browser, holder)).status_code == 303
    page = (await browser.get("/console/account")).text
    (passkey_id,) = {part.split("/")[0] for part in page.split('action="/console/passkeys/')[1:]}
    _, stranger, _ = await console.person("Hal")
    assert (await stranger.post(f"/console/passkeys/{passkey_id}/remove")).status_code == 404
    browser.headers["X-CSRF-Token"] = csrf_in(page)
    assert (await browser.post(f"/console/passkeys/{passkey_id}/remove")).status_code == 303
    assert (await sign_in(console.browser(), holder)).status_code == 401, "removed"
    assert ("console.remove_passkey", "executed", staff_id) in await audited(world)
    assert (await add(browser, holder)).status_code == 303
    await remove_staff(world.database, staff_id, audit=audit_context(world.clock))
    assert (await sign_in(console.browser(), holder)).status_code == 401


async def test_an_admin_recovers_a_person_who_lost_a_device(console: Console) -> None:
    _, admin, _ = await console.person("Ida", role="admin")
    staff_id, browser, holder = await console.person("Jon")
    second = console.browser()
    assert (await sign_in(second, holder)).status_code == 303
    page = await admin.get(f"/console/staff/{staff_id}")
    assert page.text.count("/end") == 2
    number = page.text.split("/sessions/", 1)[1].split("/", 1)[0]
    assert (await admin.post(f"/console/staff/{staff_id}/sessions/{number}/end")).status_code == 303
    alive = [(await each.get("/console/account")).status_code for each in (browser, second)]
    assert sorted(alive) == [200, 303], "one of the two was ended"
    reset = await admin.post(f"/console/staff/{staff_id}/reset")
    assert "/console/sign-in#" in reset.text
    assert [(await each.get("/console/account")).status_code for each in (browser, second)] == [303, 303]
    assert (await sign_in(console.browser(), holder)).status_code == 401
    token = reset.text.split("/console/sign-in#", 1)[1].split("<", 1)[0]
    assert (await use_link(console.browser(), token)).status_code == 303
    recorded = [operation for operation, _, _ in await audited(console.world)]
    assert {"console.end_session", "console.reset_sign_in", "console.new_link"} <= set(recorded)
    themselves = (await admin.get("/console/account")).text.split("<code>op_", 1)[1].split("<", 1)[0]
    assert (await admin.post(f"/console/staff/op_{themselves}/reset")).status_code == 409


async def test_what_cannot_be_registered(console: Console) -> None:
    staff_id, browser, holder = await console.person("Kim")
    assert "registered already" in (await add(browser, holder)).text
    fresh = Authenticator(ORIGIN, credential_id=secrets.token_bytes(16))
    unverified = Authenticator(ORIGIN, credential_id=secrets.token_bytes(16), flags=PRESENT)
    elsewhere = Authenticator("https://evil.example", credential_id=secrets.token_bytes(16))
    for liar in (unverified, elsewhere):
        assert "could not be checked" in (await add(browser, liar)).text
    for name in ("", "x" * 101, "two\nlines"):
        assert (await add(browser, fresh, name)).status_code == 422
    _, other, _ = await console.person("Lou", practice="other")
    options = (await browser.post("/console/passkeys/options")).json()
    other.cookies.set(CHALLENGE, browser.cookies[CHALLENGE], domain="desk.example", path="/")
    form = {"credential": fresh.create(options), "name": "Tablet"}
    assert (await other.post("/console/passkeys", data=form)).status_code == 403, "a challenge of another session"
    kept = browser.cookies[CHALLENGE]
    assert (await browser.post("/console/passkeys", data=form)).status_code == 303
    browser.cookies.set(CHALLENGE, kept, domain="desk.example", path="/")
    again = Authenticator(ORIGIN, credential_id=secrets.token_bytes(16)).create(options)
    assert (await browser.post("/console/passkeys", data={**form, "credential": again})).status_code == 422
    await console.world.database.write(
        """INSERT INTO staff_passkey SELECT 'pk_' || n, $1, decode(lpad(n::text, 6, '0'), 'hex'), '', 0, 'x', now()
           FROM generate_series(1, $2) n""",
        staff_id,
        MAX_PASSKEYS,
    )
    many = Authenticator(ORIGIN, credential_id=secrets.token_bytes(16))
    assert "at most" in (await add(browser, many)).text


async def test_unreadable_answers_are_refused_like_wrong_ones(console: Console) -> None:
    _, _, holder = await console.person("Max")
    csrf, options = await challenged(console.browser())
    whole = json.loads(holder.get(options))
    broken: list[Any] = ["", "{", "[]", "null", "[" * 20_000, '"x"', "{}"]
    for part in ("rawId", "id", "type"):
        broken += [{**whole, part: value} for value in (None, 1, "", "é", "A", [])]
    for part in ("clientDataJSON", "authenticatorData", "signature", "userHandle"):
        for value in (None, 1, "", "é", "A", encoded(b"\xff" * 40), encoded(b"[" * 5000)):
            broken.append({**whole, "response": {**whole["response"], part: value}})
    extended = decoded(whole["response"]["authenticatorData"])
    for tail in (b"\x9f", b"\xbf", b"\xff", b"\x81" * 3000):
        data = extended[:32] + bytes([0xC5]) + extended[33:] + tail
        broken.append({**whole, "response": {**whole["response"], "authenticatorData": encoded(data)}})
    party = RelyingParty("desk.example", ORIGIN)
    for each in broken:
        text = each if isinstance(each, str) else json.dumps(each)
        with pytest.raises(ceremonies.PasskeyRefused):
            ceremonies.verified_sign_in(party, b"challenge", text, b"\xa0", 0)
        with contextlib.suppress(ceremonies.PasskeyRefused):
            ceremonies.claimed(text)
        with pytest.raises(ceremonies.PasskeyRefused):
            ceremonies.verified_registration(party, b"challenge", text)
    refused = await console.browser().post("/console/sign-in/passkey", data={"csrf": csrf, "credential": "{"})
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("url", "party"),
    [
        ("https://desk.example", ("desk.example", "https://desk.example")),
        ("https://Desk.Example:8443", ("desk.example", "https://desk.example:8443")),
        ("https://desk.example:443", ("desk.example", "https://desk.example")),
        ("http://localhost:8080", ("localhost", "http://localhost:8080")),
        ("http://desk.example", None),
        ("http://127.0.0.1:8080", None),
        ("https://10.0.0.1", None),
        ("https://[::1]:8443", None),
    ],
)
def test_passkeys_are_offered_where_browsers_have_them(url: str, party: tuple[str, str] | None) -> None:
    assert relying_party_of(url) == party


async def test_elsewhere_there_is_no_sign_of_passkeys(world: World) -> None:
    assert "passkey" not in text_of(await world.anonymous().get("/console/sign-in")).lower()
    member = await staff_member(world, name="Nan")
    browser = world.anonymous()
    answer = await use_link(browser, await link_token(world, member.staff_id))
    assert answer.headers["location"] == "/console/"
    assert "passkey" not in text_of(await browser.get("/console/account")).lower()
    assert (await browser.get("/console/passkeys/new")).status_code == 404
