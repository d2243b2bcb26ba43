"""Headers that keep answers from being stored, guessed at, framed or read by strangers' pages."""

import httpx
import pytest

from frontdesk.operations import OPERATIONS
from tests.security.two_practices import Side, arguments, attacker, call, call_tool
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

PAGES = ("/docs", "/errors.html")
PUBLIC = (
    "/openapi/v1.json",
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
)


world = world_of_a_module


@pytest.fixture(scope="module")
async def mine(world: World) -> Side:
    return await attacker(world)


def check_private(answer: httpx.Response) -> None:
    assert "no-store" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers
    assert "etag" not in answer.headers


async def test_no_answer_of_an_operation_may_be_stored(mine: Side) -> None:
    for operation in OPERATIONS:
        given = arguments(operation.name, mine.ids)
        for client in (mine.agent, mine.integration):
            check_private(await call(client, operation, given))
        check_private(await call_tool(mine.agent, operation, given))
        check_private(await call(mine.agent, operation, {**given, "unknown": "field"}))


async def test_no_problem_and_no_token_may_be_stored(world: World, mine: Side) -> None:
    anonymous = world.anonymous()
    form = {"grant_type": "client_credentials", "client_id": "fd_" + "0" * 20, "client_secret": "x"}
    for answer in (
        await anonymous.get("/api/patients/pat_0000000000000000000000"),
        await anonymous.post("/mcp", json={}),
        await anonymous.post("/oauth/token", data=form),
        await anonymous.get("/nowhere"),
        await anonymous.delete("/docs"),
        await mine.agent.get("/api/nowhere"),
    ):
        assert answer.status_code >= 400
        check_private(answer)
    secret = world.secrets[mine.agent.headers["X-Test-Client"]]
    form = {**form, "client_id": mine.agent.headers["X-Test-Client"], "client_secret": secret}
    issued = await anonymous.post("/oauth/token", data=form)
    assert issued.status_code == 200
    check_private(issued)


async def test_pages_allow_no_script_frame_or_form_but_their_own(world: World) -> None:
    for path in PAGES:
        answer = await world.anonymous().get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == "'none'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "*" not in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text


async def test_everything_public_says_what_it_is(world: World) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for path in (*PAGES, *PUBLIC, "/healthz", "/readyz"):
        answer = await world.anonymous().get(path, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        assert answer.headers["x-svc-trace-id"] == trace, path
        assert answer.status_code == 200, path
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert answer.headers["content-type"].split(";")[0] in ("text/html", "application/json"), path


async def test_a_redirect_stays_here(world: World) -> None:
    for path in ("/", "/docs/", "/api/problems/not_found", "//evil.example/%2e%2e", "/api/problems//evil.example"):
        answer = await world.anonymous().get(f"http://test{path}")
        if answer.is_redirect:
            assert answer.headers["location"].startswith(("/docs", "/errors.html")), path
