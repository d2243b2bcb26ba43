"""The guard, walked over every page: who is let in, as what, and under which headers the answer leaves."""

import re

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.console import guard
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.navigation import navigation
from frontdesk.console.routes import pages
from frontdesk.domain.errors import Problem
from frontdesk.feature import features
from frontdesk.logs import RequestLabels
from frontdesk.store.database import DatabaseUnavailable
from frontdesk.systems.port import SystemUnavailable
from tests.console.signing_in import TEST_STAFF, csrf_in, signed_in
from tests.console.walking import address_of
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

STREAMS = {page.path for page in pages() if page.path.startswith("/live")}  # they go on for as long as somebody listens

# Other pages show 200, or 404 for an id that nobody has. Those that need a parameter in their query get none here.
OTHER_ANSWERS = {
    "/": 303,
    "/alive": 204,
    "/connect": 400,
    "/book/at": 404,
    "/passkeys/new": 404,
    "/practice/visit-types/procedure": 404,
    "/reports/csv": 404,
    "/practice/file.{ending}": 200,
}


world = world_of_a_module


@pytest.fixture(scope="module")
async def staff(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="staff")


@pytest.fixture(scope="module")
async def admin(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="admin")


async def ask(browser: httpx.AsyncClient, page: Page) -> httpx.Response:
    return await browser.request(page.method, address_of(page))


def check_headers(answer: httpx.Response) -> None:
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "no-store" in answer.headers["cache-control"]
    assert "access-control-allow-origin" not in answer.headers
    assert len(answer.headers["x-svc-trace-id"]) == 32


async def test_nobody_sees_a_page_without_a_session(world: World) -> None:
    for browser in (world.anonymous(), world.anonymous()):
        for page in pages():
            answer = await ask(browser, page)
            check_headers(answer)
            if page.method == "GET":
                assert answer.status_code == 303, page.path
                assert answer.headers["location"].startswith("/console/sign-in?next=%2Fconsole%2F")
            else:
                assert answer.status_code == 401, page.path
            assert "Harbor" not in answer.text
        browser.cookies.set("frontdesk_session", "A" * 43)


async def test_staff_reach_no_page_of_admins(staff: httpx.AsyncClient) -> None:
    for_admins = [page for page in pages() if page.role == "admin"]
    assert len(for_admins) > 3
    for page in for_admins:
        answer = await ask(staff, page)
        assert answer.status_code == 403, page.path
        assert "Not allowed" in answer.text
        check_headers(answer)


async def test_the_right_role_gets_every_page(admin: httpx.AsyncClient) -> None:
    for page in pages():
        if page.method == "GET" and page.path not in STREAMS:
            answer = await ask(admin, page)
            expected = OTHER_ANSWERS.get(page.path, 404 if "{" in page.path else 200)
            assert answer.status_code == expected, page.path
            check_headers(answer)


async def test_every_form_of_every_page_carries_the_sessions_proof(admin: httpx.AsyncClient) -> None:
    forms = 0
    for page in pages():
        if page.method == "GET" and page.path not in STREAMS:
            html = (await ask(admin, page)).text
            for form in re.findall(r"<form\b.*?</form>", html, re.DOTALL):
                forms += 1
                posts = 'method="post"' in form
                assert posts == ('name="csrf"' in form), f"{page.path}: {form[:120]}"
    assert forms > 20


async def test_what_staff_may_not_do_is_not_offered_to_them(staff: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    offered = {"staff": (await staff.get("/console/account")).text, "admin": (await admin.get("/console/account")).text}
    for _, places in navigation(features()):
        for place in places:
            assert f'href="/console{place.path}"' in offered["admin"]
            assert (f'href="/console{place.path}"' in offered["staff"]) == (place.role == "staff")


def test_every_place_of_the_navigation_is_a_page_for_its_role() -> None:
    roles = {page.path: page.role for page in pages() if page.method == "GET"}
    for _, places in navigation(features()):
        for place in places:
            assert roles.get(place.path) == place.role, place.path


def test_no_two_pages_share_an_address() -> None:
    addresses = [(page.method, page.path) for page in pages()]
    assert len(set(addresses)) == len(addresses)


async def test_an_unknown_page_is_told_apart_only_inside(world: World, staff: httpx.AsyncClient) -> None:
    for path in ("/console/nowhere", "/console/account/", "/console/%2e%2e/api", "/console/assets/nothing.css"):
        outside = await world.anonymous().get(path)
        inside = await staff.get(path)
        assert inside.status_code == 404, path
        assert outside.status_code in (303, 404), path
    assert "There is no such page" in (await staff.get("/console/nowhere")).text
    assert (await staff.post("/console/nowhere")).status_code == 404


@pytest.mark.parametrize("path", ["/patients/pat_%00", "/calendar?day=%00", "/sign-in?next=%00", "/appointments/%00"])
async def test_no_page_has_a_nul_in_its_address(staff: httpx.AsyncClient, path: str) -> None:
    answer = await staff.get(f"/console{path}")
    assert (answer.status_code, "There is no such page" in answer.text) == (404, True)


async def test_a_script_that_asks_for_a_signed_out_person_is_told(world: World) -> None:
    for destination in ("empty", "script", "iframe"):
        answer = await world.anonymous().get("/console/account", headers={"Sec-Fetch-Dest": destination})
        assert answer.status_code == 401
    answer = await world.anonymous().get("/console/account", headers={"Sec-Fetch-Dest": "document"})
    assert answer.status_code == 303


async def test_the_entrance_leads_to_the_first_page(staff: httpx.AsyncClient) -> None:
    answer = await staff.get("/console")
    assert (answer.status_code, answer.headers["location"]) == (308, "/console/")
    answer = await staff.get("/console/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/calendar")


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (Problem("not_found", "There is no such appointment."), 404, "There is no such appointment."),
        (Problem("upstream_unavailable", retry_after=7), 502, "cannot be reached"),
        (DatabaseUnavailable("SELECT"), 502, "cannot be reached"),
        (SystemUnavailable("SELECT"), 502, "cannot be reached"),
        (RuntimeError("SELECT secret FROM patient"), 500, "Something went wrong"),
    ],
)
async def test_whatever_goes_wrong_becomes_a_calm_page(
    world: World, staff: httpx.AsyncClient, error: Exception, status: int, shown: str
) -> None:
    async def fails(_visit: ConsoleRequest) -> Response:
        raise error

    page = Page("GET", "/fails", fails)
    (route,) = guard.guarded_routes([page], visit_console(world))
    answer = await call(route, staff)
    assert answer.status_code == status
    assert shown in answer.text
    assert "SELECT" not in answer.text
    assert "Traceback" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 502)
    check_headers(answer)
    if status >= 500:
        assert answer.headers["x-svc-trace-id"] in answer.text


async def test_a_request_is_in_the_request_log_like_any_other(world: World, staff: httpx.AsyncClient) -> None:
    seen: list[tuple[RequestLabels, str | None]] = []
    world.service.requests.observers.append(lambda labels, _milliseconds, request_id: seen.append((labels, request_id)))
    try:
        answers = [await staff.get(f"/console{path}") for path in ("/calendar", "/usage")]
        answers.append(await world.anonymous().get("/console/sign-in"))
    finally:
        world.service.requests.observers.pop()
    assert [request_id for _, request_id in seen] == [answer.headers["x-svc-trace-id"] for answer in answers]
    assert [(each.door, each.operation, each.status, each.code, each.client_id) for each, _ in seen] == [
        ("console", "/calendar", 200, None, staff.headers[TEST_STAFF]),
        ("console", "/usage", 403, "forbidden_scope", staff.headers[TEST_STAFF]),
        ("console", "/sign-in", 200, None, None),
    ]


def visit_console(world: World) -> guard.Console:
    service = world.service
    return guard.Console(
        settings=service.settings,
        desk=service.desk,
        staff_sessions=service.staff_sessions,
        passkeys=service.passkeys,
        encrypted_cookies=service.encrypted_cookies,
        desk_lock=service.desk_lock,
        sign_in_mail=service.sign_in_mail,
        failed_attempts=service.failed_attempts,
        clock=world.clock,
        requests=service.requests,
        has_identity_provider=False,
    )


async def call(route: Route, browser: httpx.AsyncClient) -> httpx.Response:
    """A page of the test's own, asked for with the session of a browser."""
    transport = httpx.ASGITransport(app=Starlette(routes=[route]))
    async with httpx.AsyncClient(transport=transport, base_url="http://test", cookies=browser.cookies) as asking:
        return await asking.get("/console/fails")


async def test_the_theme_that_was_chosen_is_in_the_first_byte(staff: httpx.AsyncClient) -> None:
    """The server renders it, so that no page flashes in the other one."""
    page = await staff.get("/console/account")
    assert "data-theme" not in page.text.partition("<head>")[0]
    await staff.post("/console/theme", data={"csrf": csrf_in(page.text), "next": "https://evil.example"})
    assert '<html lang="en" data-theme="dark"' in (await staff.get("/console/account")).text
    staff.cookies.set("frontdesk_theme", '"><script>', domain="test.local", path="/console")
    assert "<script>" not in (await staff.get("/console/account")).text
    staff.cookies.delete("frontdesk_theme", domain="test.local", path="/console")


async def test_files_are_kept_for_ever_under_names_of_their_content(staff: httpx.AsyncClient) -> None:
    page = await staff.get("/console/account")
    names = re.findall(r'(?:href|src)="(/console/assets/[^"]+)"', page.text)
    assert any(name.endswith(".css") for name in names)
    for name in names:
        answer = await staff.get(name)
        assert answer.status_code == 200
        assert re.search(r"\.[0-9a-f]{16}\.(css|js|svg)$", name)
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
