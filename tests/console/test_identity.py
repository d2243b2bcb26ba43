"""Signing in through an identity provider, over real HTTP: who comes in, and every lie that must not work."""

import base64
import hashlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from frontdesk.access.staff.members import StaffError, disable_staff
from frontdesk.app import build_app, build_service
from tests.console.identity_provider import (
    ANOTHER_KEY,
    CLIENT_ID,
    CLIENT_SECRET,
    PUBLISHED,
    Provider,
    running_provider,
)
from tests.console.signing_in import audited, csrf_in, session_cookie
from tests.desk.acting import audit_context, staff_member
from tests.support.world import World

BEGIN = "/console/sign-in/identity"
CALLBACK = "/console/sign-in/identity/callback"
CHOICE = "/console/sign-in/practice"
VERIFIED = {"email": "Ana@Example.com", "email_verified": True}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider(time.time) as running:
        running.claims = dict(VERIFIED)
        yield running


@dataclass
class Desk:
    """The console of a service that has the provider in its settings, and browsers to open it with."""

    transport: httpx.ASGITransport
    browsers: list[httpx.AsyncClient]

    def browser(self) -> httpx.AsyncClient:
        opened = httpx.AsyncClient(transport=self.transport, base_url="http://test", timeout=30)
        self.browsers.append(opened)
        return opened


@pytest.fixture
async def desk(world: World, provider: Provider) -> AsyncIterator[Desk]:
    settings = world.service.settings.model_copy(
        update={
            "oidc_issuer": provider.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": CLIENT_SECRET,
        }
    )
    service = build_service(settings, world.database, world.clock)
    built = Desk(httpx.ASGITransport(app=build_app(service)), [])
    yield built
    for browser in built.browsers:
        await browser.aclose()


async def begin(browser: httpx.AsyncClient, **query: str) -> str:
    """To the provider and through it; returns the address that it sends the browser back to."""
    answer = await browser.get(BEGIN, params=query)
    assert answer.status_code == 303, answer.text
    async with httpx.AsyncClient(timeout=30) as outside:
        agreed = await outside.get(answer.headers["location"])
    assert agreed.status_code == 302
    return agreed.headers["location"]


async def sign_in(browser: httpx.AsyncClient) -> httpx.Response:
    return await browser.get(await begin(browser))


async def refused(browser: httpx.AsyncClient, status: int = 401) -> None:
    answer = await sign_in(browser)
    assert answer.status_code == status, answer.text
    assert session_cookie(browser) is None


async def test_somebody_whose_verified_address_is_known_comes_in(world: World, desk: Desk, provider: Provider) -> None:
    member = await staff_member(world, "admin", name="Ana Costa", email="ana@example.com")
    browser = desk.browser()
    page = await browser.get("/console/sign-in")
    assert "Continue with your practice" in page.text
    back = await begin(browser, next="/console/account")
    assert back.startswith(f"http://test{CALLBACK}?")
    answer = await browser.get(back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/account")
    account = await browser.get("/console/account")
    assert "Ana Costa" in account.text
    assert "with the practice's account" in account.text
    assert (await audited(world))[-2:] == [
        ("console.link_identity", "executed", member.staff_id),
        ("console.sign_in", "executed", member.staff_id),
    ]


async def test_after_the_first_time_the_providers_own_name_counts(world: World, desk: Desk, provider: Provider) -> None:
    await staff_member(world, name="Ana Costa", email="ana@example.com")
    assert (await sign_in(desk.browser())).status_code == 303
    provider.claims = {"email": "married@example.com", "email_verified": False}
    assert (await sign_in(desk.browser())).status_code == 303, "the same subject under a new address"
    provider.claims = {"sub": "another", **VERIFIED}
    await refused(desk.browser())  # somebody who was given the address later
    assert ("console.sign_in", "unauthorized") in [each[:2] for each in await audited(world)]


async def test_nobody_is_made_staff_by_signing_in(world: World, desk: Desk, provider: Provider) -> None:
    await staff_member(world, email="somebody.else@example.com")
    await staff_member(world)
    await refused(desk.browser())
    assert await world.database.fetchval("SELECT count(*) FROM staff WHERE oidc_subject IS NOT NULL") == 0


@pytest.mark.parametrize("verified", [False, None, "true", 1])
async def test_an_address_that_is_not_verified_proves_nothing(
    world: World, desk: Desk, provider: Provider, verified: object
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.claims["email_verified"] = verified
    await refused(desk.browser())


@pytest.mark.parametrize(
    "lie",
    [
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "another client"},
        {"aud": ["another client"]},
        {"aud": None},
        {"aud": [CLIENT_ID, "another client"], "azp": "another client"},
        {"aud": [CLIENT_ID, "another client"]},
        {"azp": "another client"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": None},
        {"exp": 1},
        {"exp": "soon"},
        {"nbf": 99_999_999_999},
        {"at_hash": "of another access token"},
        {"iat": 99_999_999_999},
    ],
    ids=str,
)
async def test_an_id_token_with_a_wrong_claim_is_refused(
    world: World, desk: Desk, provider: Provider, lie: dict[str, Any]
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.claims |= lie
    await refused(desk.browser())
    provider.claims = dict(VERIFIED)
    assert (await sign_in(desk.browser())).status_code == 303


@pytest.mark.parametrize("algorithm", ["none", "HS256", "another key"])
async def test_an_id_token_that_the_provider_did_not_sign_is_refused(
    world: World, desk: Desk, provider: Provider, algorithm: str
) -> None:
    await staff_member(world, email="ana@example.com")
    if algorithm == "another key":
        provider.signing_key = ANOTHER_KEY
    else:
        provider.algorithm = algorithm
    await refused(desk.browser())


@pytest.mark.parametrize(
    "published",
    [
        [],
        ["no key"],
        [PUBLISHED | {"kid": "two"}],
        [PUBLISHED | {"use": "enc"}],
        [PUBLISHED | {"alg": "RS512"}],
        [PUBLISHED, PUBLISHED],
        [{"kty": "oct", "kid": "one", "k": "c2VjcmV0"}],
    ],
    ids=["none", "no object", "another id", "for encryption", "another algorithm", "ambiguous", "a shared secret"],
)
async def test_an_id_token_is_checked_with_the_published_key_that_it_names(
    world: World, desk: Desk, provider: Provider, published: list[Any]
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.keys = published
    await refused(desk.browser())
    provider.keys = [PUBLISHED | {"use": "sig", "alg": "RS256"}, PUBLISHED | {"kid": "two"}]
    assert (await sign_in(desk.browser())).status_code == 303


async def test_an_id_token_without_a_key_id_needs_a_single_published_key(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.key_id = None
    assert (await sign_in(desk.browser())).status_code == 303
    provider.keys = [PUBLISHED, PUBLISHED | {"kid": "two"}]
    await refused(desk.browser())


async def test_an_id_token_may_name_several_audiences_and_its_access_token(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    half = hashlib.sha256(b"opaque").digest()[:16]
    provider.claims |= {
        "aud": ["another client", CLIENT_ID],
        "azp": CLIENT_ID,
        "at_hash": base64.urlsafe_b64encode(half).rstrip(b"=").decode(),
    }
    assert (await sign_in(desk.browser())).status_code == 303


async def test_an_algorithm_that_the_provider_does_not_offer_is_refused(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.metadata = {"id_token_signing_alg_values_supported": ["ES256", "HS256", "none"]}
    await refused(desk.browser())


async def test_an_id_token_that_has_expired_is_refused(world: World, desk: Desk, provider: Provider) -> None:
    await staff_member(world, email="ana@example.com")
    provider.now = lambda: time.time() - 600
    await refused(desk.browser())


async def test_an_answer_counts_once_and_only_in_the_browser_that_asked(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    mine, theirs = desk.browser(), desk.browser()
    back = await begin(mine)
    kept = mine.cookies.get("frontdesk_identity") or ""
    await begin(theirs)
    for browser in (desk.browser(), theirs):
        answer = await browser.get(back)
        assert answer.status_code == 403
        assert session_cookie(browser) is None
    assert (await mine.get(back)).status_code == 303
    replaying = desk.browser()
    assert (await mine.get(back)).status_code == 403, "the cookie went with its use"
    replaying.cookies.set("frontdesk_identity", kept)
    assert (await replaying.get(back)).status_code == 401, "and the provider takes a code once"
    assert session_cookie(replaying) is None


@pytest.mark.parametrize("change", ["state", "code", "iss", "cookie"])
async def test_an_answer_that_was_altered_is_refused(world: World, desk: Desk, provider: Provider, change: str) -> None:
    await staff_member(world, email="ana@example.com")
    browser = desk.browser()
    back = httpx.URL(await begin(browser))
    if change == "cookie":
        kept = browser.cookies.get("frontdesk_identity") or ""
        browser.cookies.clear()
        browser.cookies.set("frontdesk_identity", kept[:-6] + "AAAAA=")
    else:
        back = back.copy_set_param(change, "x" + back.params[change])
    answer = await browser.get(back)
    assert answer.status_code in (401, 403)
    assert session_cookie(browser) is None


async def test_a_sign_in_that_took_too_long_is_begun_again(world: World, desk: Desk, provider: Provider) -> None:
    await staff_member(world, email="ana@example.com")
    browser = desk.browser()
    back = await begin(browser)
    world.clock.advance(minutes=11)
    assert (await browser.get(back)).status_code == 403
    assert session_cookie(browser) is None


async def test_a_person_who_says_no_is_told_calmly(desk: Desk, provider: Provider) -> None:
    browser = desk.browser()
    state = httpx.URL(await begin(browser)).params["state"]
    answer = await browser.get(CALLBACK, params={"error": "access_denied", "state": state})
    assert answer.status_code == 403
    assert "access_denied" not in answer.text


async def test_the_address_may_come_from_the_userinfo_of_the_same_subject(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.claims = {}
    provider.userinfo = {"sub": "another", **VERIFIED}
    await refused(desk.browser())
    provider.userinfo = {"sub": "one", **VERIFIED}
    assert (await sign_in(desk.browser())).status_code == 303


async def test_a_disabled_person_does_not_come_in(world: World, desk: Desk, provider: Provider) -> None:
    member = await staff_member(world, email="ana@example.com")
    await disable_staff(world.database, member.staff_id, audit=audit_context(world.clock))
    await refused(desk.browser())


async def test_a_provider_that_wants_the_secret_in_the_body_gets_it_there(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    provider.takes_basic = False
    assert (await sign_in(desk.browser())).status_code == 303


async def test_a_provider_that_is_down_or_claims_to_be_another_is_not_gone_to(desk: Desk, provider: Provider) -> None:
    provider.broken = True
    answer = await desk.browser().get(BEGIN)
    assert answer.status_code == 502
    assert "cannot be checked" in answer.text
    provider.broken = False
    for lie in ({"issuer": "https://evil.example"}, {"token_endpoint": None}, {"jwks_uri": "ftp://evil.example"}):
        provider.metadata = lie
        assert (await desk.browser().get(BEGIN)).status_code == 502
    provider.metadata = {}
    assert (await desk.browser().get(BEGIN)).status_code == 303, "asked again, not remembered"
    before = len(provider.asked)
    await desk.browser().get(BEGIN)
    assert len(provider.asked) == before, "what it says of itself is kept for a while"


async def test_a_provider_that_fails_between_is_told_apart_from_a_refusal(
    world: World, desk: Desk, provider: Provider
) -> None:
    await staff_member(world, email="ana@example.com")
    browser = desk.browser()
    back = await begin(browser)
    provider.broken = True
    answer = await browser.get(back)
    assert answer.status_code == 502
    assert session_cookie(browser) is None


async def choose(browser: httpx.AsyncClient, page: httpx.Response, staff_id: str, **fields: str) -> httpx.Response:
    return await browser.post(CHOICE, data={"csrf": csrf_in(page.text), "staff": staff_id, **fields})


async def test_an_address_claimed_by_another_practice_keeps_nobody_out_and_lures_nobody_in(
    world: World, desk: Desk, provider: Provider
) -> None:
    squatter = await staff_member(world, practice="other", name="Ana Claimed", email="ana@example.com")
    member = await staff_member(world, "admin", name="Ana Costa", email="ana@example.com")
    with pytest.raises(StaffError, match="Another staff member"):
        await staff_member(world, name="Ana Twice", email="ANA@example.com")
    browser = desk.browser()
    page = await browser.get(await begin(browser, next="/console/account"))
    assert (page.status_code, session_cookie(browser)) == (200, None), "nobody is signed in anywhere unasked"
    assert page.text.count("first sign-in") == 2
    assert await world.database.fetchval("SELECT count(*) FROM staff WHERE oidc_subject IS NOT NULL") == 0
    answer = await choose(browser, page, member.staff_id)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/account")
    assert "Ana Costa" in (await browser.get("/console/account")).text
    linked = await world.database.fetch("SELECT staff_id FROM staff WHERE oidc_subject IS NOT NULL")
    assert [row["staff_id"] for row in linked] == [member.staff_id]
    assert (await audited(world))[-2:] == [
        ("console.link_identity", "executed", member.staff_id),
        ("console.sign_in", "executed", member.staff_id),
    ]
    again = await sign_in(desk.browser())
    assert again.text.index(member.staff_id) < again.text.index(squatter.staff_id), "the practice they know comes first"
    assert again.text.count("first sign-in") == 1
    await disable_staff(world.database, squatter.staff_id, audit=audit_context(world.clock))
    assert (await sign_in(desk.browser())).status_code == 303, "where only one is left there is nothing to choose"


async def test_staff_of_two_practices_sign_in_to_the_one_they_choose(
    world: World, desk: Desk, provider: Provider
) -> None:
    members = [await staff_member(world, practice=slug, email="ana@example.com") for slug in ("harbor", "other")]
    for member in (*members, *members):
        browser = desk.browser()
        assert (await choose(browser, await sign_in(browser), member.staff_id)).status_code == 303
        session = await world.service.staff_sessions.find(session_cookie(browser))
        assert session is not None
        assert session.staff_id == member.staff_id


async def test_a_choice_belongs_to_the_browser_and_the_identity_that_it_was_shown_to(
    world: World, desk: Desk, provider: Provider
) -> None:
    members = [await staff_member(world, practice=slug, email="ana@example.com") for slug in ("harbor", "other")]
    stranger = await staff_member(world, "admin", name="Rosa", email="rosa@example.com")
    mine, theirs = desk.browser(), desk.browser()
    page = await sign_in(mine)
    kept = mine.cookies.get("frontdesk_choice") or ""
    assert (await choose(theirs, page, members[0].staff_id)).status_code == 403, "without the cookie"
    assert (await choose(mine, page, members[0].staff_id, csrf="x")).status_code == 403, "without the form"
    for staff_id in (stranger.staff_id, "", "op_nobody"):
        mine.cookies.set("frontdesk_choice", kept)
        assert (await choose(mine, page, staff_id)).status_code == 401
    for forged in (kept[:-6] + "AAAAA=", "", theirs.cookies.get("frontdesk_identity") or "x"):
        theirs.cookies.set("frontdesk_choice", forged)
        assert (await choose(theirs, page, members[0].staff_id)).status_code == 403
    await disable_staff(world.database, members[0].staff_id, audit=audit_context(world.clock))
    mine.cookies.set("frontdesk_choice", kept)
    assert (await choose(mine, page, members[0].staff_id)).status_code == 401, "disabled while choosing"
    assert ("console.sign_in", "unauthorized", members[0].staff_id) in await audited(world)
    world.clock.advance(minutes=11)
    mine.cookies.set("frontdesk_choice", kept)
    assert (await choose(mine, page, members[1].staff_id)).status_code == 403, "too late"
    assert session_cookie(mine) is None
    assert session_cookie(theirs) is None


async def test_practices_are_named_only_to_the_owner_of_the_address(
    world: World, desk: Desk, provider: Provider
) -> None:
    for slug in ("harbor", "other"):
        await staff_member(world, practice=slug, email="ana@example.com")
    provider.claims["email_verified"] = False
    browser = desk.browser()
    answer = await sign_in(browser)
    assert answer.status_code == 401
    assert "Harbor Family Medicine" not in answer.text
    assert "harbor" not in answer.text


async def test_without_a_provider_there_is_no_such_way_in(world: World) -> None:
    browser = world.anonymous()
    assert "Continue with" not in (await browser.get("/console/sign-in")).text
    assert (await browser.get(BEGIN)).headers["location"].startswith("/console/sign-in?next=")
