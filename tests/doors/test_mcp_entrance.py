"""Who may enter the MCP door: only with a token, and only under names and origins that are the server's own."""

from typing import Any

import httpx
import pytest

from frontdesk.doors.mcp import McpDoor, messages
from frontdesk.settings import Settings
from frontdesk.store.practices import set_suspended
from tests.doors.mcp_speech import ACCEPT, error, framed, problem, request, send
from tests.support.world import World


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer nonsense", "Basic YTpi", "bearer a.b.c"])
async def test_nobody_enters_without_a_token(world: World, authorization: str | None) -> None:
    nobody = world.anonymous()
    if authorization is not None:
        nobody.headers["Authorization"] = authorization
    for method in ("initialize", "ping", "tools/list", "tools/call", "nonsense", "notifications/initialized"):
        answer = await send(nobody, method, {"name": "get_practice", "protocolVersion": "2025-11-25"})
        assert problem(answer, 401) == "unauthorized", method
        challenge = answer.headers["www-authenticate"]
        assert challenge.startswith('Bearer resource_metadata="http://test/.well-known/oauth-protected-resource/mcp"')


UNREADABLE: list[tuple[bytes, dict[str, str]]] = [
    (b"{", {}),
    (b"[]", {}),
    (b"x" * 70_000, {}),
    (b"{}", {"Content-Type": "text/plain"}),
    (b"{}", {"Accept": "application/json"}),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', {"MCP-Protocol-Version": "v9"}),
]


async def test_the_token_is_asked_for_before_anything_else_is_said(world: World) -> None:
    nobody = world.anonymous()
    for body, sent in UNREADABLE:
        answer = await nobody.post("/mcp", content=body, headers={**ACCEPT, "Content-Type": "application/json", **sent})
        assert problem(answer, 401) == "unauthorized", (body[:80], sent)


async def test_the_challenge_leads_to_the_token_endpoint(world: World) -> None:
    nobody = world.anonymous()
    challenge = (await send(nobody, "tools/list")).headers["www-authenticate"]
    resource = (await nobody.get(challenge.split('"')[1])).json()
    assert resource["resource"] == "http://test/mcp"
    server = await nobody.get(f"{resource['authorization_servers'][0]}/.well-known/oauth-authorization-server")
    assert server.json()["token_endpoint"] == "http://test/oauth/token"


async def test_an_expired_token_is_refused(agent: httpx.AsyncClient, world: World) -> None:
    framed(await send(agent, "tools/list"))
    world.clock.advance(hours=2)
    for method in ("tools/list", "tools/call"):
        assert problem(await send(agent, method, {"name": "get_practice"}), 401) == "unauthorized"


async def test_a_suspended_practice_is_refused(agent: httpx.AsyncClient, world: World) -> None:
    await set_suspended(world.database, "harbor", suspended=True)
    world.service.authenticator.on_change("practice", "harbor")
    for method in ("initialize", "tools/list", "tools/call"):
        assert problem(await send(agent, method, {"name": "get_practice"}), 403) == "forbidden_tenant"


def door(world: World, **settings: Any) -> httpx.AsyncClient:
    """A client at a door of its own, with these settings."""
    built = McpDoor(world.service.engine, Settings(**settings), world.service.requests)
    opened = httpx.AsyncClient(transport=httpx.ASGITransport(app=built), base_url="http://127.0.0.1:8080")
    world.clients.append(opened)
    return opened


LOCAL: dict[str, Any] = {}
PUBLIC = {"host": "0.0.0.0", "base_url": "https://desk.example.org"}
BEHIND = {**PUBLIC, "allowed_hosts": ("Frontdesk.internal",), "allowed_origins": ("https://app.example.org",)}


KNOCKS: list[tuple[dict[str, Any], str, str | None, int]] = [
    (LOCAL, "127.0.0.1:8080", None, 200),
    (LOCAL, "localhost:9999", None, 200),
    (LOCAL, "[::1]:8080", None, 200),
    (LOCAL, "LOCALHOST", None, 200),
    (LOCAL, "127.0.0.1:8080", "http://localhost:6274", 200),
    (LOCAL, "127.0.0.1:8080", "http://127.0.0.1:8080", 200),
    (LOCAL, "evil.example.com", None, 421),
    (LOCAL, "evil.example.com", "http://evil.example.com", 421),
    (LOCAL, "127.0.0.1.evil.example.com", None, 421),
    (LOCAL, "", None, 421),
    (LOCAL, "[::1", None, 421),
    (LOCAL, "127.0.0.1:8080", "http://evil.example.com", 403),
    (LOCAL, "127.0.0.1:8080", "null", 403),
    (LOCAL, "127.0.0.1:8080", "", 403),
    (LOCAL, "127.0.0.1:8080", "http://[::1", 403),
    (PUBLIC, "desk.example.org", None, 200),
    (PUBLIC, "desk.example.org", "https://desk.example.org", 200),
    (PUBLIC, "desk.example.org", "http://desk.example.org", 403),
    (PUBLIC, "desk.example.org", "https://desk.example.org:8443", 403),
    (PUBLIC, "desk.example.org", "http://localhost:6274", 403),
    (PUBLIC, "127.0.0.1:8080", None, 421),
    (BEHIND, "frontdesk.internal:8080", None, 200),
    (BEHIND, "desk.example.org", "https://app.example.org", 200),
    (BEHIND, "desk.example.org", "https://evil.example.org", 403),
]


async def test_foreign_names_and_origins_are_refused(world: World) -> None:
    token = (await world.client()).headers["Authorization"]
    for settings, host, origin, status in KNOCKS:
        named = {**ACCEPT, "Authorization": token, "Host": host} | ({} if origin is None else {"Origin": origin})
        answer = await door(world, **settings).post("/mcp", json=request("ping"), headers=named)
        assert answer.status_code == status, (settings, host, origin)
        if status == 200:
            framed(answer)
        else:
            assert error(answer, status)["code"] == messages.INVALID_REQUEST
            assert answer.json()["id"] is None


async def test_a_foreign_origin_is_refused_before_the_token_is_looked_at(world: World) -> None:
    answer = await send(world.anonymous(), "ping")
    assert answer.status_code == 401
    assert (await world.anonymous().post("/mcp", headers={"Origin": "https://evil.example.com"})).status_code == 403


async def test_a_caller_without_a_host_is_refused(world: World) -> None:
    sent: list[Any] = []

    async def keep(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": []}
    await McpDoor(world.service.engine, Settings(), world.service.requests)(scope, None, keep)  # type: ignore[arg-type]
    assert sent[0]["status"] == 421


async def test_both_doors_count_against_the_same_cap(world: World) -> None:
    client = await world.client(per_minute=2)
    assert (await client.get("/api/capabilities")).status_code == 200
    framed(await send(client, "tools/call", {"name": "get_capabilities"}))
    answer = await send(client, "tools/list")
    assert answer.status_code == 429
    assert answer.json()["code"] == "rate_limited"
    assert int(answer.headers["retry-after"]) > 0
    assert "x-svc-trace-id" not in answer.headers
