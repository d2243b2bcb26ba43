"""Whatever a stranger sends is never an internal error: tries every parser that reads before authentication."""

import itertools
import os
from collections.abc import Iterable
from random import Random
from typing import Any
from urllib.parse import unquote

import orjson
import pytest

from frontdesk.app import build_app, build_service
from frontdesk.console.cookies import CHOICE, IDENTITY, SESSION, SIGN_IN
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module

Headers = list[tuple[bytes, bytes]]
HOST = (b"host", b"test")
JSON = (b"content-type", b"application/json")
FORM = (b"content-type", b"application/x-www-form-urlencoded")
PARTS = (b"content-type", b"multipart/form-data; boundary=b")
EVENTS = (b"accept", b"application/json, text/event-stream")

NASTY = [
    b"", b" ", b"\xff", b"\xff\xfe\x80", b"\xc3\x28", "\U0001f4a9".encode(), b"\x00", b"a\x00b", b"\t", b"%", b"%ff",
    b"%00", b"%u0000", b"%ed%a0%80", b"\xed\xa0\x80", b"=?base64?\xff?=", b"=?base64?AA=A?=", b"=?base64?/w==?=",
    b"=?base64??=", b"http://[", b"http://[::1", b"http://]", b"//[", b"http://a:b", b"http://test:99999999",
    b"http://\xff", b"null", b"[", b"[::1", b"a@b", b"a b", b"test:x", b"test:-1", b"9" * 400, b"-1", b"1e999",
    b"NaN", b"Infinity", b"\xb2", b"0x10", b"1_000", "\u0663".encode(), b";", b",", b"=", b";=;=", b",,,,", b"a;q=",
    b"*/*;q=\xff", b"a/b;q=1;q=2", b"text/html;charset", b"application/json;charset=utf-7",
    b"application/json;charset=\xff", b"application/json;charset=unknown", b"multipart/form-data",
    b"multipart/form-data;boundary=", b"multipart/form-data; boundary=\xff", b"multipart/form-data;boundary*=x''%ff",
    b"multipart/form-data; boundary=b; charset=x", b"Basic", b"Basic ", b"Basic \xff", b"Basic /w==", b"Basic Og==",
    b"Basic YTpi", b"Bearer", b"Bearer ", b"Bearer \xff", b"Bearer a.b.c", b"Bearer e30.e30.e30", b"Bearer ..",
    b"Bearer " + b"e30" * 50 + b".e30.e30", b"Bearer W10.W10.W10", b"Bearer MQ.MQ.MQ", b"bearer  x", b"Digest x",
    b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01", b"00-\xff", b"ff-" + b"a" * 52, b"00-" + b"A" * 52,
    b"1.2.3.4", b"1.2.3.4:80", b"999.1.1.1", b"::1%eth0", b"[::1]:80", b"unknown", b"1.2.3.4,\xff", b", ,",
    b"::ffff:1.2.3.4", b'W/"', b'"' * 300, b"\\", b"..", b"../../etc/passwd", b"{", b"a" * 3000,
]  # fmt: skip
NAMES = [
    b"host", b"origin", b"authorization", b"accept", b"accept-encoding", b"content-type", b"content-length",
    b"traceparent", b"x-forwarded-for", b"cookie", b"if-none-match", b"idempotency-key", b"frontdesk-simulate",
    b"mcp-name", b"mcp-method", b"mcp-protocol-version", b"sec-fetch-site", b"sec-fetch-dest", b"user-agent",
    b"x-csrf-token", b"access-control-request-method", b"x-forwarded-proto", b"x-forwarded-host", b"forwarded",
    b"range", b"te", b"expect",
]  # fmt: skip
META = "io.modelcontextprotocol/"


def _modern(**params: Any) -> bytes:
    meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, **params}})


MODERN = [
    EVENTS, JSON, (b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"tools/call"), (b"mcp-name", b"get_slot"),
]  # fmt: skip
ENTRANCES: list[tuple[str, bytes, Headers, bytes]] = [
    ("GET", b"/api/capabilities", [], b""),
    ("GET", b"/api/slots?providerId=1", [], b""),
    ("GET", b"/api/slots/slt_x", [], b""),
    ("POST", b"/api/patients/match", [JSON], b"{}"),
    ("POST", b"/api/appointments", [JSON], b"{}"),
    ("PATCH", b"/api/patients/pat_x", [JSON], b"{}"),
    ("GET", b"/api/problems/x", [], b""),
    ("GET", b"/api/nowhere", [], b""),
    ("POST", b"/mcp", [EVENTS, JSON], b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
    ("POST", b"/mcp", MODERN, _modern(name="get_slot", arguments={})),
    ("GET", b"/mcp", [EVENTS], b""),
    ("POST", b"/oauth/token", [FORM], b"grant_type=client_credentials&client_id=a&client_secret=b"),
    ("POST", b"/oauth/token", [FORM], b"grant_type=client_credentials"),
    ("GET", b"/oauth/authorize", [], b""),
    ("GET", b"/.well-known/oauth-protected-resource", [], b""),
    ("GET", b"/docs", [], b""),
    ("GET", b"/docs/guides/quick-start", [], b""),
    ("GET", b"/docs/assets/x.css", [], b""),
    ("GET", b"/openapi/v1.json", [], b""),
    ("GET", b"/healthz", [], b""),
    ("GET", b"/metrics", [], b""),
    ("GET", b"/feeds/x.ics", [], b""),
    ("GET", b"/console", [], b""),
    ("GET", b"/console/sign-in?next=/console/x", [], b""),
    ("POST", b"/console/sign-in", [FORM], b"link=x&csrf=y"),
    ("POST", b"/console/sign-in/practice", [FORM], b"staff=x"),
    ("GET", b"/console/sign-in/identity/callback?state=x&code=y&iss=z", [], b""),
    ("GET", b"/console/calendar", [], b""),
    ("POST", b"/console/clients", [FORM], b"name=x"),
    ("GET", b"/console/assets/x.js", [], b""),
    ("OPTIONS", b"/api/slots", [(b"origin", b"https://app.example"), (b"access-control-request-method", b"GET")], b""),
    ("GET", b"/nowhere", [], b""),
]  # fmt: skip
PATHS = [
    b"/%", b"/%ff", b"/%00", b"/api/%ff", b"/api/slots/%ff", b"/api/slots/%00", b"/api/slots/%ed%a0%80",
    b"/api/appointments/%2e%2e", b"/api/visit-types/%D9%A3/procedures", b"/api/locations/" + b"9" * 500,
    b"/api/locations/-1", b"/api/slots/\xff", b"/docs/guides/%ff", b"/docs/assets/%2e%2e", b"/feeds/%ff.ics",
    b"/feeds/.ics", b"/console/%ff", b"/console/sign-in%00", b"/api/problems/%ff", b"//", b"/.", b"/api/",
]  # fmt: skip
QUERIES = [
    b"%", b"%ff=%ff", b"a=%ff", b"%ed%a0%80=%ed%a0%80", b"\xff", b"a=\x00", b"&" * 200, b"a=1&" * 200, b"=",
    b"next=%ff", b"next=//[", b"state=%ed%a0%80&code=%ff", b"state=\xff", b"limit=" + b"9" * 5000, b"limit=%D9%A3",
    b"cursor=%ff", b"cursor=" + b"A" * 400, b"from=%ff", b"providerId=1e5", b"left", b"code=\x00",
]  # fmt: skip
BODIES = [
    b"", b" ", b"\xff", b"\x00", b"{", b"[]", b"null", b'""', b"1", b"{}" * 2, b'{"a":' * 300 + b"1" + b"}" * 300,
    b"[" * 2000, b"[" * 200 + b"]" * 200, b'{"\\ud800":1}', b'{"firstName":"\\ud800"}', b'{"\xff":1}',
    b'{"firstName":' + b"9" * 400 + b"}", b'{"firstName":1e999}', b'{"a":1,"a":2}', b"\xef\xbb\xbf{}",
    b"a=%ff", b"%ff=1", b"link=%ed%a0%80&csrf=%ff", b"grant_type=client_credentials&client_id=%00&client_secret=%ff",
    b"grant_type=client_credentials&client_id=%C3%A9&client_secret=%F0%9F%92%A9&scope=%00&resource=http://[",
    b"grant_type=client_credentials&client_id=%00&client_secret=%00", b"&" * 600, b"=" * 600,
    b"--b\r\nContent-Disposition: form-data; name=x\r\n\r\n\xff\r\n--b--",
    b"--b\r\nContent-Disposition: form-data; name*=x''%ff\r\n\r\n1\r\n--b--",
    b"--b\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name=x\r\n\r\n=\r\n--b--",
    b"--b\r\nContent-Type: text/plain; charset=nope\r\nContent-Disposition: form-data; name=x\r\n\r\nx\r\n--b--",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', b'{"jsonrpc":"2.0","id":[],"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{}}}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 300 + b',"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":["x"]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":{}}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":'
    + b'{"a":' * 300 + b"1" + b"}" * 304,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":'
    + b'{"a":' * 40 + b"1" + b"}" * 42,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":{"name":"\x7f\xc2\x85"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_practice","_meta":{"frontdesk-simulate":{}}}}',
]  # fmt: skip


class Stranger:
    """Sends requests past any HTTP client, which would refuse to send them."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._addresses = (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in itertools.count(1))

    async def send(self, method: str, target: bytes, headers: Headers, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition(b"?")
        given = {name for name, _ in headers}
        if body and b"content-length" not in given:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(path.decode("latin-1")), "raw_path": path, "query_string": query, "root_path": "",
            "headers": headers if b"host" in given else [HOST, *headers],
            "client": (next(self._addresses), 1), "server": ("test", 80), "state": {},
        }  # fmt: skip
        status, received = 0, bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def sent(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            received.extend(message.get("body", b""))

        await self._app(scope, receive, sent)
        return status, bytes(received)


@pytest.fixture(scope="module")
async def stranger(world: World) -> Stranger:
    """Everything that can be switched on reads requests, too."""
    settings = world.service.settings.model_copy(
        update={
            "oidc_issuer": "http://127.0.0.1:1",
            "oidc_client_id": "frontdesk",
            "oidc_client_secret": "secret",
            "trusted_proxies": ("10.0.0.0/8",),
            "allowed_origins": ("https://app.example",),
            "metrics_token": "0123456789abcdef",
        }
    )
    service = build_service(settings, world.database, world.clock)
    await service.ring.load()
    return Stranger(build_app(service))


def _requests(token: bytes) -> Iterable[tuple[str, bytes, Headers, bytes]]:
    bearer = (b"authorization", b"Bearer " + token)
    cookies = [
        b"%s=%s" % (name.encode(), value)
        for name in (SESSION, SIGN_IN, IDENTITY, CHOICE)
        for value in (b"\xff", b"%ff", b"====", b"A" * 5000, b'"\\377"', b'"\\ud800"', b"\x00", b"")
    ]
    for method, target, headers, body in ENTRANCES:
        for other in ("HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "POST", "GET"):
            yield other, target, headers, body
            yield other, target, [bearer, *headers], body
        for name, values in (*((name, NASTY) for name in NAMES), (b"cookie", cookies)):
            rest = [each for each in headers if each[0] != name]
            for value in values:
                yield method, target, [*rest, (name, value)], body
                if target.startswith((b"/api", b"/mcp")) and name != b"authorization":
                    yield method, target, [*rest, bearer, (name, value)], body
        for query in QUERIES:
            yield method, target.partition(b"?")[0] + b"?" + query, headers, body
        if method in ("POST", "PATCH"):
            for given, content_type in itertools.product(BODIES, (JSON, FORM, PARTS)):
                rest = [each for each in headers if each[0] != b"content-type"]
                yield method, target, [*rest, content_type], given
                yield method, target, [*rest, content_type, bearer], given
    for method, target in itertools.product(("GET", "POST"), PATHS):
        yield method, target, [], b""
        yield method, target, [bearer], b""


@pytest.mark.parametrize("one_in", [40, pytest.param(int(os.environ.get("ONE_IN", "1")), marks=pytest.mark.heavy)])
async def test_nothing_that_a_stranger_sends_is_an_internal_error(
    world: World, stranger: Stranger, caplog: pytest.LogCaptureFixture, one_in: int
) -> None:
    token = (await world.client(grant="integration")).headers["Authorization"].removeprefix("Bearer ").encode()
    requests, choose = list(_requests(token)), Random(22)
    for request in choose.sample(requests, len(requests) // one_in):
        status, answer = await stranger.send(*request)
        assert status in (502, *range(200, 500)), request  # 502: no identity provider answers here
        assert b"Traceback" not in answer, request
        surprises = [each for each in caplog.records if each.message == "unexpected error"]
        assert not surprises, (request, surprises[0].exc_info)


@pytest.mark.parametrize(
    ("method", "target", "headers", "body"),
    [
        ("POST", b"/mcp", [*MODERN[:-1], (b"mcp-name", b"=?base64?\xff?=")], _modern(name="get_slot", arguments={})),
        ("POST", b"/mcp", [EVENTS, JSON, (b"origin", b"http://[")], b"{}"),
        ("POST", b"/mcp", [EVENTS, JSON], BODIES[-4]),
        ("POST", b"/console/sign-in", [FORM, (b"origin", b"http://[")], b"link=x&csrf=y"),
        ("POST", b"/console/sign-in/practice", [FORM, (b"origin", b"//]")], b"staff=x"),
        ("GET", b"/console/calendar?\xff", [], b""),
    ],
)
async def test_known_culprits(
    stranger: Stranger,
    caplog: pytest.LogCaptureFixture,
    method: str,
    target: bytes,
    headers: Headers,
    body: bytes,
) -> None:
    status, _ = await stranger.send(method, target, headers, body)
    assert 300 <= status < 500
    assert not [each for each in caplog.records if each.message == "unexpected error"]


@pytest.mark.parametrize(
    ("parser", "method", "target", "headers", "body"),
    [
        ("frontdesk.doors.gateway._check_headers", "GET", b"/healthz", [], b""),
        ("frontdesk.doors.rest.response_type", "GET", b"/api/capabilities", [], b""),
        ("frontdesk.doors.rest.read_body", "POST", b"/api/patients/match", [JSON], b"{}"),
        ("frontdesk.doors.mcp.door.read_message", "POST", b"/mcp", [EVENTS, JSON], b"{}"),
        ("frontdesk.doors.oauth.parse_qsl", "POST", b"/oauth/token", [FORM], b"a=b"),
        ("frontdesk.doors.oauth._credentials", "POST", b"/oauth/token", [FORM], b"a=b"),
        ("frontdesk.console.pages.sign_in.read_form", "POST", b"/console/sign-in", [FORM], b"a=b"),
        ("frontdesk.console.guard.read_cookie", "GET", b"/console/calendar", [], b""),
        ("frontdesk.doors.pages._answer", "GET", b"/docs", [], b""),
    ],
)
async def test_a_parser_that_forgets_a_case_makes_a_bad_request(
    stranger: Stranger,
    monkeypatch: pytest.MonkeyPatch,
    parser: str,
    method: str,
    target: bytes,
    headers: Headers,
    body: bytes,
) -> None:
    for error in (ValueError("secret"), UnicodeDecodeError("utf-8", b"secret", 0, 1, "secret"), RecursionError()):

        def fail(*_args: Any, error: Exception = error, **_kwargs: Any) -> Any:
            raise error

        monkeypatch.setattr(parser, fail)
        status, answer = await stranger.send(method, target, headers, body)
        assert status == 400
        assert b"secret" not in answer


async def test_arguments_that_cannot_be_read_are_a_bad_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await world.client()

    def fail(*_args: Any) -> Any:
        raise ValueError("secret")

    monkeypatch.setattr("frontdesk.engine.execute.read_arguments", fail)
    answer = await agent.get("/api/locations")
    assert (answer.status_code, answer.json()["code"]) == (400, "validation")
    assert "secret" not in answer.text


async def test_host_authorization_and_key_are_given_once(stranger: Stranger) -> None:
    for headers, field in (
        ([(b"host", b"test"), (b"host", b"test")], "Host"),
        ([(b"host", b"test"), (b"host", b"evil.example")], "Host"),
        ([(b"host", b"http://[")], "Host"),
        ([(b"host", b"")], "Host"),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")], "Authorization"),
        ([(b"idempotency-key", b"a"), (b"idempotency-key", b"a")], "Idempotency-Key"),
    ):
        for method, target in (
            ("GET", b"/api/capabilities"),
            ("POST", b"/mcp"),
            ("GET", b"/docs"),
            ("POST", b"/oauth/token"),
        ):
            status, answer = await stranger.send(method, target, headers, b"")
            problem = orjson.loads(answer)
            assert (status, problem["code"]) == (400, "validation")
            assert [(each["field"], each["rule"]) for each in problem["errors"]] == [(field, "Binding")]


async def test_an_encoded_slash_separates_nothing(world: World, stranger: Stranger) -> None:
    token = (await world.client()).headers["Authorization"].encode()
    for path in (
        b"/api%2Fcapabilities", b"/api%2fcapabilities", b"/api/visit-types/21%2Fprocedures", b"/%2fapi/capabilities",
        b"/api/slots%2Ffirst-available", b"/docs%2Fguides", b"/.well-known%2Fjwks.json", b"/oauth%2Ftoken", b"/%2Fmcp",
        b"/console%2Fsign-in", b"/console/x%2Fy", b"/api/appointments/a%2Fb", b"/api%2Fproblems/not_found",
        b"/api/problems%2Fnot_found",
    ):  # fmt: skip
        for headers in ([], [(b"authorization", token)]):
            status, answer = await stranger.send("GET", path, headers, b"")
            assert status == 404, path
            assert orjson.loads(answer)["code"] == "not_found"
