"""The gateway in front of both doors: caps, quota, headers, addresses, origins, failed token calls."""

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.records import change_client
from frontdesk.access.limits import invalid_tokens
from frontdesk.access.limits.forwarded_headers import ForwardedHeaders, latest_ignored
from frontdesk.access.limits.rate_limiter import RateLimiter
from frontdesk.app import build_app
from frontdesk.doors.gateway import MAX_REQUEST_TARGET_LENGTH
from frontdesk.settings import Settings, SettingsError, load_settings
from frontdesk.store.notifications import NotificationListener
from frontdesk.store.practices import set_suspended
from tests.doors.gateway_answers import check_gateway_problem
from tests.support.running import running
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Host": "test"}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
LIMITS = re.compile(r'"minute";r=(\d+);t=(\d+), "quota";r=(\d+);t=(\d+)')


world = world_of_a_module


async def test_the_call_after_the_cap_is_refused_at_both_doors(world: World) -> None:
    client = await world.client(per_minute=3)
    for _ in range(2):
        assert (await client.get("/api/locations")).status_code == 200
    assert (await client.post("/mcp", json=LIST_TOOLS, headers=MCP_HEADERS)).status_code == 200
    for refused in (
        await client.get("/api/locations"),
        await client.post("/mcp", json=LIST_TOOLS, headers=MCP_HEADERS),
        await client.get("/api/no-such-path"),
    ):
        check_gateway_problem(refused, 429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.headers["ratelimit"].startswith('"minute";r=0;t=')


async def test_a_used_up_quota_is_forbidden_without_retry_after(world: World) -> None:
    client = await world.client(quota=2)
    for _ in range(2):
        assert (await client.get("/api/capabilities")).status_code == 200
    refused = await client.get("/api/capabilities")
    check_gateway_problem(refused, 403, "quota_exceeded")
    assert "retry-after" not in refused.headers
    assert LIMITS.fullmatch(refused.headers["ratelimit"])[3] == "0"  # type: ignore[index]


async def test_calls_to_a_suspended_practice_count_like_others(world: World) -> None:
    client = await world.client(per_minute=2)
    await set_suspended(world.database, "harbor", suspended=True)
    try:
        for left in (1, 0):
            answer = await client.get("/api/locations")
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden_tenant")
            assert answer.headers["ratelimit"].startswith(f'"minute";r={left};')
        check_gateway_problem(await client.get("/api/locations"), 429, "rate_limited")
    finally:
        await set_suspended(world.database, "harbor", suspended=False)


async def test_every_answer_to_a_known_client_says_what_is_left(world: World) -> None:
    client = await world.client(scopes=["slots:read"], per_minute=600)
    answers = [
        await client.get("/api/capabilities"),
        await client.get("/api/locations"),  # forbidden_scope
        await client.get("/api/slots"),  # validation
        await client.get("/api/slots/slt_unknown"),
        await client.delete("/api/slots"),
        await client.get("/api/nowhere"),
        await client.post("/mcp", json=LIST_TOOLS, headers=MCP_HEADERS),
        await client.post("/mcp", content=b"{", headers=MCP_HEADERS),
        await client.get("/mcp", headers=MCP_HEADERS),
    ]
    assert [answer.status_code for answer in answers] == [200, 403, 422, 404, 405, 404, 200, 400, 405]
    left = [int(LIMITS.fullmatch(answer.headers["ratelimit"])[1]) for answer in answers]  # type: ignore[index]
    assert left == [599 - n for n in range(len(answers))]
    policies = {answer.headers["ratelimit-policy"] for answer in answers}
    assert policies == {'"minute";q=600;w=60, "quota";q=1000000;w=2592000'}


async def test_calls_without_a_valid_token_are_the_doors_to_refuse_and_count_for_nobody(world: World) -> None:
    client = await world.client(per_minute=2)
    token = client.headers["Authorization"]
    for authorization in ("", "Bearer", "Bearer x", f"{token}x", token.replace("Bearer", "Basic"), "Bearer " * 3):
        answer = await world.anonymous().get("/api/locations", headers={"Authorization": authorization})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert answer.json()["requestId"] == answer.headers["x-svc-trace-id"]
        assert "ratelimit" not in answer.headers
    assert LIMITS.fullmatch((await client.get("/api/locations")).headers["ratelimit"])[1] == "1"  # type: ignore[index]


async def test_however_a_token_is_spelt_that_a_door_accepts_its_call_is_counted(world: World) -> None:
    client = await world.client(per_minute=1000)
    token = client.headers["Authorization"].removeprefix("Bearer ")
    seen = []
    for spelt in (f"bearer {token}", f"BEARER {token}", f"Bearer   {token}", f"Bearer {token}  "):
        for path in ("/api/capabilities", "/mcp"):
            answer = await world.anonymous().request(
                "POST" if path == "/mcp" else "GET",
                path,
                json=LIST_TOOLS if path == "/mcp" else None,
                headers={**MCP_HEADERS, "Authorization": spelt},
            )
            assert (answer.status_code == 200) == ("ratelimit" in answer.headers), (spelt, path)
            seen.append(answer.status_code)
    assert seen.count(200) >= 6
    doubled = [("Authorization", "Bearer nonsense"), ("Authorization", f"Bearer {token}")]
    for headers in (doubled, doubled[::-1]):
        answer = await world.anonymous().get("/api/capabilities", headers=headers)
        assert (answer.status_code == 200) == ("ratelimit" in answer.headers)


async def test_other_paths_are_not_counted(world: World) -> None:
    client = await world.client(per_minute=1)
    for path in ("/healthz", "/readyz", "/.well-known/jwks.json", "/errors.html", "/openapi/v1.json"):
        for _ in range(2):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert "ratelimit" not in answer.headers
    assert (await client.get("/api/capabilities")).status_code == 200


async def test_a_warm_call_costs_no_round_trip_for_being_counted(world: World) -> None:
    client = await world.client()
    await client.get("/api/capabilities")
    counted = []
    for _ in range(4):  # the least of several: every few seconds the client's status and limits are read beside a call
        before = world.database.statements
        for _ in range(3):
            assert (await client.get("/api/capabilities")).status_code == 200
        counted.append(world.database.statements - before)
    assert min(counted) == 0


async def test_a_limit_set_by_command_holds_within_seconds(world: World) -> None:
    client = await world.client(per_minute=1000)
    heard = asyncio.Event()

    def on_change(kind: str, id_: str) -> None:
        world.service.on_change(kind, id_)
        heard.set()

    listener = NotificationListener(world.database.hosts, on_change)
    async with running(listener.step):
        await asyncio.wait_for(listener.listening.wait(), 30)
        assert (await client.get("/api/capabilities")).status_code == 200
        await change_client(world.database, client.headers["X-Test-Client"], per_minute=1)
        await asyncio.wait_for(heard.wait(), 30)
        heard.clear()
        check_gateway_problem(await client.get("/api/capabilities"), 429, "rate_limited")
        await change_client(world.database, client.headers["X-Test-Client"], per_minute=1000)
        await asyncio.wait_for(heard.wait(), 30)
        assert (await client.get("/api/capabilities")).status_code == 200


async def test_without_the_database_the_gateway_answers_at_once_and_recovers(world: World) -> None:
    client = await world.client(per_minute=1000)
    await world.service.limiter.return_leases()
    await world.database.close()
    try:
        async with asyncio.timeout(30):
            refused = await client.get("/api/capabilities")
        check_gateway_problem(refused, 502, "upstream_unavailable")
        assert refused.headers["retry-after"] == "2"
    finally:
        await world.database.open()
    assert (await client.get("/api/capabilities")).status_code == 200


async def test_an_unexpected_error_is_answered_without_its_text(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_limiter: RateLimiter, _caller: object) -> None:
        raise RuntimeError("what went wrong inside")

    client = await world.client()
    monkeypatch.setattr(RateLimiter, "charge", broken)
    answer = await client.get("/api/capabilities")
    assert "inside" not in check_gateway_problem(answer, 500, "internal")["detail"]
    assert "unexpected error" in caplog.text


async def test_a_refused_write_has_not_been_executed(world: World) -> None:
    client = await world.client(grant="integration", per_minute=1)
    await client.get("/api/capabilities")
    person = {"firstName": "Not", "lastName": "There", "dob": "1990-01-01", "phone": "+1 555 019 9999"}
    check_gateway_problem(await client.post("/api/patients", json=person), 429, "rate_limited")
    looking = await world.client()
    assert (await looking.post("/api/patients/match", json=person)).status_code == 404


async def test_refusals_are_in_the_request_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    client = await world.client(per_minute=1)
    await client.get("/api/capabilities")
    caplog.clear()
    with caplog.at_level(logging.INFO, "frontdesk.request"):
        await client.get("/api/capabilities")
    (line,) = [record.__dict__ for record in caplog.records if record.name == "frontdesk.request"]
    assert (line["door"], line["status"], line["practice"]) == ("gateway", 429, "harbor")
    assert line["client"] == client.headers["X-Test-Client"]


async def test_an_address_beyond_the_limit_is_refused(world: World) -> None:
    client = await world.client()
    longest = "x" * (MAX_REQUEST_TARGET_LENGTH - len("/api/locations") - len("name="))
    assert (await client.get("/api/locations", params={"name": longest})).status_code == 422
    refused = await client.get("/api/locations", params={"name": longest + "x"})
    check_gateway_problem(refused, 414, "payload_too_large")


async def test_no_origin_is_allowed_unless_it_was_set(world: World) -> None:
    client = await world.client()
    for method in ("GET", "OPTIONS"):
        answer = await client.request(
            method,
            "/api/capabilities",
            headers={"Origin": "https://app.example", "Access-Control-Request-Method": "GET"},
        )
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.status_code == 405


async def test_a_set_origin_may_call_and_no_other(world: World, caller_at: Any) -> None:
    token = (await world.client(per_minute=1000)).headers["Authorization"]
    client = caller_at(allowed_origins=("https://app.example",))
    allowed, foreign = {"Origin": "https://app.example"}, {"Origin": "https://app.example.evil"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = await client.options("/api/appointments", headers={**allowed, **asks})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert {"authorization", "content-type", "accept", "idempotency-key", "frontdesk-simulate",
            "frontdesk-confirmation-token", "traceparent", "mcp-protocol-version", "mcp-method", "mcp-name",
            "mcp-session-id", "prefer", "if-none-match", "if-modified-since", "if-match",
            "if-none-exist"} <= {*preflight.headers["access-control-allow-headers"].lower().split(", ")}  # fmt: skip
    assert "access-control-allow-credentials" not in preflight.headers
    answer = await client.get("/api/capabilities", headers={**allowed, "Authorization": token})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "RateLimit" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "Origin"
    unauthorized = await client.get("/api/capabilities", headers=allowed)
    assert unauthorized.headers["access-control-allow-origin"] == "https://app.example"
    for origin in (foreign, {"Origin": "null"}, {"Origin": "http://app.example"}, {}):
        for method in ("OPTIONS", "GET"):
            answer = await client.request(method, "/api/capabilities", headers={**origin, **asks})
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "capped"),
    [
        ((), "192.0.2.1", "203.0.113.5", "192.0.2.1"),
        (("10.0.0.0/8",), "192.0.2.2", "203.0.113.5", "192.0.2.2"),
        (("192.0.2.3",), "192.0.2.3", "203.0.113.6", "203.0.113.6"),
        (("192.0.2.0/24",), "192.0.2.4", "1.1.1.1, 203.0.113.7, 192.0.2.9", "203.0.113.7"),
        (("192.0.2.0/24",), "192.0.2.5", "203.0.113.8, nonsense", "192.0.2.5"),
        (("192.0.2.0/24",), "192.0.2.6", "", "192.0.2.6"),
        (("2001:db8::/32",), "2001:db8::1", "203.0.113.10", "203.0.113.10"),
        (("192.0.2.7",), "::ffff:192.0.2.7", "203.0.113.11, ::ffff:192.0.2.7", "203.0.113.11"),  # on an IPv6 socket
    ],
)
async def test_only_trusted_proxies_are_believed_about_the_address(
    world: World, trusted: tuple[str, ...], peer: str, forwarded: str, capped: str
) -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    service = replace(world.service, settings=world.service.settings.model_copy(update={"trusted_proxies": trusted}))
    gateway = build_app(service)
    gateway._app = app
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "client": (peer, 1),
        "headers": [(b"host", b"test"), (b"x-forwarded-for", forwarded.encode())],
    }
    await gateway(scope, None, None)  # type: ignore[arg-type]
    assert seen == [capped]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FRONTDESK_TRUSTED_PROXIES", "10.0.0.0/8, somewhere"),
        ("FRONTDESK_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("FRONTDESK_ALLOWED_ORIGINS", "*"),
        ("FRONTDESK_ALLOWED_ORIGINS", "https://app.example/path"),
        ("FRONTDESK_METRICS_TOKEN", "short"),
    ],
)
def test_settings_that_would_open_more_than_meant_are_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load_settings()


async def test_the_quota_is_kept_by_another_process_after_a_restart(world: World) -> None:
    client = await world.client(quota=3)
    await client.get("/api/capabilities")
    await world.service.limiter.return_leases()
    restarted = replace(world.service, limiter=RateLimiter(world.database))
    transport = httpx.ASGITransport(app=build_app(restarted))
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=client.headers) as again:
        statuses = [(await again.get("/api/capabilities")).status_code for _ in range(3)]
    assert statuses == [200, 200, 403]


def test_the_default_settings_trust_nobody_and_open_nothing() -> None:
    settings = Settings()
    assert (settings.trusted_proxies, settings.allowed_origins, settings.metrics_token) == ((), (), None)


async def test_a_flood_of_forged_tokens_is_refused_and_valid_tokens_from_there_are_not(
    world: World, caller_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invalid_tokens, "PER_ADDRESS", 3)
    monkeypatch.setattr(world.service.tokens, "_check", counted := Counting(world.service.tokens._check))
    valid = (await world.client()).headers["Authorization"]
    forged = [f"{valid[:-40]}{n:04}{valid[-36:]}" for n in range(4)]
    client, elsewhere = caller_at("203.0.113.50"), caller_at("203.0.113.51")
    before = world.service.invalid_tokens.total
    for token in forged[:3]:
        assert (await client.get("/api/practice", headers={"Authorization": token})).status_code == 401
    assert counted.calls == 3, "a forged token is verified once, by the gateway and not again by the door"
    for path in ("/api/practice", "/mcp"):
        refused = await client.get(path, headers={"Authorization": forged[3]})
        check_gateway_problem(refused, 429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert (await client.get("/api/practice", headers={"Authorization": valid})).status_code == 200
    assert (await elsewhere.get("/api/practice", headers={"Authorization": forged[0]})).status_code == 401
    assert world.service.invalid_tokens.total == before + 6


class Counting:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.function(*args)


async def test_a_forwarded_header_of_a_peer_that_is_not_trusted_is_reported(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.database.write("UPDATE observation SET seen_at = now() - interval '8 days'")
    seen = ForwardedHeaders(world.database)
    settings = world.service.settings.model_copy(update={"trusted_proxies": ("10.0.0.0/8",)})
    app = build_app(replace(world.service, settings=settings, forwarded_headers=seen))
    for peer, reported in (("10.1.1.1", None), ("192.0.2.44", "192.0.2.44"), ("192.0.2.45", "192.0.2.45")):
        transport = httpx.ASGITransport(app=app, client=(peer, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.get("/healthz", headers={"X-Forwarded-For": "198.51.100.1"})
        await seen.report()
        assert await latest_ignored(world.database) == reported
    assert len([line for line in caplog.messages if "FRONTDESK_TRUSTED_PROXIES" in line]) == 1
