"""No form of another site, another session or nobody at all is acted on, whichever page it is sent to."""

import httpx
import pytest

from frontdesk.console.guard import Page
from frontdesk.console.routes import pages
from tests.console.signing_in import TEST_STAFF, csrf_in, session_cookie, signed_in
from tests.console.walking import address_of
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module

POSTS = [page for page in pages() if page.method == "POST"]


@pytest.fixture
async def browser(world: World) -> httpx.AsyncClient:
    opened = await signed_in(world, role="admin")
    opened.headers.pop("X-CSRF-Token")
    return opened


async def test_no_page_takes_a_form_without_the_sessions_own_proof(world: World, browser: httpx.AsyncClient) -> None:
    other = await signed_in(world, role="admin")
    mine = csrf_in((await browser.get("/console/account")).text)
    theirs = csrf_in((await other.get("/console/account")).text)
    assert mine != theirs
    for page in POSTS:
        for fields, headers in (
            ({}, {}),
            ({"csrf": ""}, {}),
            ({"csrf": "0" * 64}, {}),
            ({"csrf": mine[:-1]}, {}),
            ({"csrf": theirs}, {}),
            ({}, {"X-CSRF-Token": theirs}),
            ({"csrf": mine}, {"Sec-Fetch-Site": "cross-site"}),
            ({"csrf": mine}, {"Sec-Fetch-Site": "same-site"}),
            ({"csrf": mine}, {"Sec-Fetch-Site": "none"}),
            ({"csrf": mine}, {"Origin": "https://evil.example"}),
            ({"csrf": mine}, {"Origin": "http://test.evil.example"}),
        ):
            answer = await browser.post(address_of(page), data=fields, headers=headers)
            assert answer.status_code == 403, (page.path, fields, headers)
    assert session_cookie(browser) is not None, "nothing was done: not even the signing out"
    assert (await browser.get("/console/account")).status_code == 200


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_form_of_the_session_is_taken(browser: httpx.AsyncClient, by_header: bool) -> None:
    mine = csrf_in((await browser.get("/console/account")).text)
    fields, headers = ({}, {"X-CSRF-Token": mine}) if by_header else ({"csrf": mine}, {})
    headers |= {"Sec-Fetch-Site": "same-origin", "Origin": "http://test"}
    answer = await browser.post("/console/theme", data={**fields, "next": "/console/account"}, headers=headers)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/account"


async def test_no_page_that_is_only_looked_at_changes_anything() -> None:
    """A GET carries no proof; SameSite=Lax lets other sites' links cause one."""
    assert {page.method for page in pages()} == {"GET", "POST"}


async def test_the_proof_does_not_tell_the_session(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/console/account")
    assert (session_cookie(browser) or "-") not in page.text
    assert browser.headers[TEST_STAFF] in page.text


async def test_a_form_may_be_sent_as_parts_with_a_file(browser: httpx.AsyncClient) -> None:
    mine = csrf_in((await browser.get("/console/account")).text)
    parts = {"csrf": (None, mine), "next": (None, "/console/account"), "file": ("ä.yaml", "a: ü\r\nb: 2\n".encode())}
    answer = await browser.post("/console/theme", files=parts)
    assert answer.status_code == 303, answer.text
    without = {name: part for name, part in parts.items() if name != "csrf"}
    assert (await browser.post("/console/theme", files=without)).status_code == 403


@pytest.mark.parametrize("content", [b"\xff\xfe", b"csrf=%ff%fe", b"a=1&" * 600, b"\x00"])
async def test_a_form_that_cannot_be_read_is_refused_calmly(browser: httpx.AsyncClient, content: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await browser.post("/console/theme", content=content, headers=headers)
    assert answer.status_code in (400, 403)
    assert answer.headers["content-type"].startswith("text/html")


def test_every_page_that_posts_is_walked() -> None:
    assert len(POSTS) > 5
    assert all(isinstance(page, Page) for page in POSTS)
