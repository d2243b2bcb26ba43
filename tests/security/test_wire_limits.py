"""What the wire refuses, seen from a raw socket: sizes, shapes, slowness and numbers. Nobody else notices any of it."""

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from frontdesk.serving.connection import BODY_SECONDS
from frontdesk.store.database import Database
from tests.security.raw_wire import alive, dripping, exchange, prompt
from tests.security.real_server import RealServer, real_server

MEGABYTE = 1024 * 1024
GIGABYTE = 1024 * MEGABYTE
# What may be under way in the buffers of both kernels when the connection is cut; far below what was announced.
UNDER_WAY = 16 * MEGABYTE
JSON = "Content-Type: application/json\r\n"
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
CUT_OFF = 4 * BODY_SECONDS  # within which a slow sender is cut off, also on a busy machine
IDLE = 2500
OTHER_FILES = 300  # of the test process


@pytest.fixture(scope="module")
async def bearer(server: RealServer) -> str:
    return f"Authorization: Bearer {await server.token()}\r\n"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/patients/match", JSON), ("/api/appointments", JSON), ("/mcp", JSON), ("/oauth/token", FORM)],
)
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
async def test_a_gigabyte_is_refused_without_being_read(
    server: RealServer, bearer: str, path: str, kind: str, chunked: bool
) -> None:
    bearer = bearer if path != "/oauth/token" else ""
    length = "Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {GIGABYTE}\r\n"
    piece = b"x" * MEGABYTE
    if chunked:
        piece = b"100000\r\n" + piece + b"\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}{kind}{length}\r\n"
    answer = await asyncio.to_thread(exchange, server, head, piece, 1024)
    assert (answer.status, answer.code) == (413, "payload_too_large")
    assert b"connection: close" in answer.received.lower()
    assert answer.closed
    assert answer.sent < UNDER_WAY
    await alive(server)


async def test_expect_continue_for_a_gigabyte_is_refused(server: RealServer, bearer: str) -> None:
    head = (
        f"POST /api/patients/match HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}{JSON}"
        f"Content-Length: {GIGABYTE}\r\nExpect: 100-continue\r\n\r\n"
    )
    answer = await asyncio.to_thread(exchange, server, head)
    assert answer.status == 413
    assert b"100 Continue" not in answer.received


@pytest.mark.parametrize("request_line", ["GET /api/capabilities", "POST /healthz", "POST /nowhere", "GET /docs"])
async def test_a_gigabyte_that_nobody_asked_for_is_not_read_either(server: RealServer, request_line: str) -> None:
    head = f"{request_line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {GIGABYTE}\r\n\r\n"
    answer = await asyncio.to_thread(exchange, server, head, b"x" * MEGABYTE, 1024)
    assert answer.status in (200, 401, 404, 405)
    assert answer.closed
    assert answer.sent < UNDER_WAY
    await alive(server)


async def test_empty_lines_without_end_are_refused(server: RealServer) -> None:
    before = server.log.read_text()
    answer = await asyncio.to_thread(exchange, server, "\r\n" * 50_000)
    assert (answer.status, answer.code) == (431, "payload_too_large")
    assert answer.closed
    await alive(server)
    assert '"level":"error"' not in server.log.read_text().removeprefix(before)


async def test_the_largest_allowed_body_is_read(server: RealServer, bearer: str) -> None:
    for size, status in ((64 * 1024, 400), (64 * 1024 + 1, 413)):
        head = (
            f"POST /api/patients/match HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}{JSON}"
            f"Content-Length: {size}\r\nConnection: close\r\n\r\n"
        )
        assert (await asyncio.to_thread(exchange, server, head, b"x" * size)).status == status


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /api/capabilities?" + "y" * 9_000, 414),
        ("GET /api/" + "y" * 9_000, 414),
        ("GET /api/capabilities?" + "y" * 100_000, 414),
        ("GET /api/capabilities HTTP/1.1\r\nX: " + "y" * 40_000, 431),
        ("GET /api/capabilities HTTP/1.1\r\nX: " + "y" * 400_000, 431),
        ("GET /api/capabilities HTTP/1.1\r\n" + "\r\n".join(f"X{n}: y" for n in range(200)), 431),
        ("GET /api/capabilities HTTP/1.1\r\n" + "\r\n".join(f"X{n}: {'y' * 1000}" for n in range(50)), 431),
    ],
    ids=["query", "path", "huge query", "header", "huge header", "many headers", "many large headers"],
)
async def test_addresses_and_headers_have_limits(server: RealServer, head: str, status: int) -> None:
    version = "" if "HTTP/1.1" in head else " HTTP/1.1"
    answer = await asyncio.to_thread(
        exchange, server, f"{head}{version}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    )
    assert answer.status == status
    await alive(server)


@pytest.mark.parametrize(
    "message",
    [
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nBad Name: x\r\n\r\n",
        "GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "POST /api/patients HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        "POST /api/patients HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "POST /api/patients HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 6\r\n\r\nabcdef",
        "POST /api/patients HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST /api/patients HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_and_the_connection_closed(server: RealServer, message: str) -> None:
    answer = await asyncio.to_thread(exchange, server, message)
    assert answer.status in (0, 400)
    assert answer.closed
    assert answer.seconds < await asyncio.to_thread(prompt, server)
    await alive(server)


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        ("GET /secret-1234 HTTP/1.1\r\nX: secret\x01-1234\r\n\r\n", 400, "validation"),
        ("GET /healthz HTTP/1.1\r\nX: " + "secret-1234" * 7_000, 431, "payload_too_large"),
        ("GET /healthz HTTP/1.1\r\n" + "secret-1234: y\r\n" * 7_000, 431, "payload_too_large"),
        ("GET /" + "secret-1234" * 7_000, 414, "payload_too_large"),
        ("GET /healthz HTTP/1.1\r\n" + "X: secret-1234\r\n" * 101 + "\r\n", 431, "payload_too_large"),
    ],
    ids=["malformed", "header without end", "headers without end", "address without end", "too many headers"],
)
async def test_a_head_that_is_refused_is_told_why_and_nothing_of_it_comes_back(
    server: RealServer, head: str, status: int, code: str
) -> None:
    answer = await asyncio.to_thread(exchange, server, head)
    assert (answer.status, answer.code, answer.closed) == (status, code, True)
    assert b"content-type: application/problem+json\r\n" in answer.received
    assert (b'"errors":[{"field":"$","rule":"Binding",' in answer.received) is (code == "validation")
    assert b"connection: close\r\n" in answer.received
    assert b"-1234" not in answer.received
    assert answer.seconds < await asyncio.to_thread(prompt, server)
    assert "-1234" not in server.log.read_text()  # ids have digits, too
    await alive(server)


async def test_as_many_headers_as_are_allowed_are_read(server: RealServer) -> None:
    head = "GET /healthz HTTP/1.1\r\nHost: x\r\n" + "X: y\r\n" * 98 + "Connection: close\r\n\r\n"
    assert (await asyncio.to_thread(exchange, server, head)).status == 200


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /healthz HTTP/1.1\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n", 400),
        ("GET /healthz HTTP/1.0\r\n\r\n", 200),  # health checks of some proxies; HTTP/1.0 has no Host
        ("GET /healthz%2F HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ],
)
async def test_host_is_required_and_not_repeated(server: RealServer, head: str, status: int) -> None:
    sent = head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
    assert (await asyncio.to_thread(exchange, server, sent)).status == status


async def test_no_head_of_a_request_is_an_internal_error(server: RealServer) -> None:
    heads = [
        *(f"GET {target} HTTP/1.1\r\nHost: x\r\n" for target in (
            "/\xff", "/?\xff", "/console/calendar?\xff", "http://[/", "//[", "*", "/%zz", "/%ff%fe", "/a#b", "?x", "http://x",
            "http://x:99999999/", "/%00", "/api/slots%2f",
        )),
        *(f"GET /console/calendar HTTP/1.1\r\nHost: x\r\n{field}\r\n" for field in (
            "\xff: y", "Cookie: \xff", "Cookie: a=\x00", "Origin: http://[", "Accept: \xff", "Authorization: \xff",
        )),
        "OPTIONS * HTTP/1.1\r\nHost: x\r\n", "GET /healthz HTTP/1.7\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: \xff\r\n",
    ]  # fmt: skip
    for head in heads:
        answer = await asyncio.to_thread(exchange, server, head + "Connection: close\r\n\r\n")
        assert 200 <= answer.status < 500, head
    await alive(server)


@pytest.mark.parametrize("what", ["1;", "0\r\nX: ", "0\r\n"], ids=["extension", "trailer", "trailers"])
async def test_what_is_no_body_around_a_body_has_limits(server: RealServer, bearer: str, what: str) -> None:
    head = f"POST /api/patients/match HTTP/1.1\r\nHost: x\r\n{bearer}{JSON}Transfer-Encoding: chunked\r\n\r\n{what}"
    piece = b"X: y\r\n" * 100_000 if what == "0\r\n" else b"y" * MEGABYTE
    answer = await asyncio.to_thread(exchange, server, head, piece, 100)
    assert (answer.status, answer.code, answer.closed) == (400, "validation", True)
    assert answer.sent < UNDER_WAY
    await alive(server)


async def test_a_body_of_two_lengths_never_hides_a_second_request(server: RealServer) -> None:
    hidden = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    message = (
        f"POST /api/patients HTTP/1.1\r\nHost: x\r\nContent-Length: {5 + len(hidden)}\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
    )
    answer = await asyncio.to_thread(exchange, server, message)
    assert answer.received.count(b"HTTP/1.1 ") == 1
    assert answer.closed


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"firstName":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"firstName": ' + b"9" * 60_000 + b"}",
        b"{" + b",".join(b'"k%d":1' % n for n in range(6000)) + b"}",
        b'{"firstName":"\\ud800"}',
        b"\xff\xfe" * 1000,
    ],
    ids=["arrays", "objects", "nested value", "long number", "many keys", "lone surrogate", "not UTF-8"],
)
@pytest.mark.parametrize("path", ["/api/patients/match", "/mcp"])
async def test_hostile_json_is_a_bad_request(server: RealServer, bearer: str, path: str, body: bytes) -> None:
    async with server.http(bearer.split()[2]) as http:
        began = time.monotonic()
        answer = await http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert time.monotonic() - began < await asyncio.to_thread(prompt, server)
    assert answer.status_code in (400, 422), answer.text[:500]
    assert len(answer.content) < 64 * 1024
    await alive(server)


async def test_slow_senders_are_cut_off_while_others_are_served(server: RealServer, bearer: str) -> None:
    body = f"POST /api/patients/match HTTP/1.1\r\nHost: x\r\n{bearer}{JSON}Content-Length: 1000\r\n\r\n"
    unread = f"GET /healthz HTTP/1.1\r\nHost: x\r\n{bearer}Content-Length: 1000\r\n\r\n"
    slow = [
        asyncio.to_thread(dripping, server, "", b"", CUT_OFF),
        asyncio.to_thread(dripping, server, "GET / HTTP/1.1\r\nX: ", b"y", CUT_OFF),
        asyncio.to_thread(dripping, server, "GET / HTTP/1.1\r\n", b"X: y\r\n", CUT_OFF),
        asyncio.to_thread(dripping, server, body, b" ", CUT_OFF),
        asyncio.to_thread(dripping, server, body, b"", CUT_OFF),
        asyncio.to_thread(dripping, server, unread, b" ", CUT_OFF),
        asyncio.to_thread(dripping, server, "", b"\r\n", CUT_OFF),
    ]
    waiting = asyncio.gather(*slow)
    async with server.http(bearer.split()[2]) as http:
        served = 0
        while not waiting.done():
            assert (await http.get("/api/capabilities")).status_code == 200
            served += not waiting.done()
            await asyncio.sleep(0.5)
    assert served >= 3
    silent, header, headers, body_drops, body_silence, unread_drops, empty_lines = await waiting
    for answer in (silent, header, headers, unread_drops, empty_lines):
        assert answer.closed
    for answer in (body_drops, body_silence):
        assert answer.closed
        assert (answer.status, answer.code) == (400, "validation")
        assert b"connection: close" in answer.received.lower()
    assert unread_drops.received.startswith(b"HTTP/1.1 200 ")


@pytest.fixture
def sockets() -> Iterator[int]:
    """How many sockets the test may open: fewer where the hard limit of open files is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = IDLE + OTHER_FILES if hard == resource.RLIM_INFINITY else min(IDLE + OTHER_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    yield files - OTHER_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _connections(server: RealServer, number: int) -> list[socket.socket]:
    """From ten addresses: one of them may not have all connections."""
    return [
        socket.create_connection(("127.0.0.1", server.port), 30, source_address=(f"127.0.{each % 10}.2", 0))
        for each in range(number)
    ]


async def test_thousands_of_idle_connections_leave_room_for_a_call(
    server: RealServer, bearer: str, sockets: int
) -> None:
    limit = await asyncio.to_thread(prompt, server)
    idle = _connections(server, sockets)
    try:
        async with server.http(bearer.split()[2]) as http:
            began = time.monotonic()
            assert (await http.get("/api/capabilities")).status_code == 200
            assert time.monotonic() - began < limit
    finally:
        for connection in idle:
            connection.close()


async def test_a_worker_holds_only_so_many_connections_and_the_idle_ones_make_room(
    database: Database, database_dsn: str, owner_dsn: str, tmp_path: Path
) -> None:
    async with real_server(database, database_dsn, owner_dsn, tmp_path, files=520) as small:
        served = 0
        held = _connections(small, 400)
        try:
            for connection in held:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            for connection in held:
                with contextlib.suppress(ConnectionError):
                    served += connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            assert 200 < served < 300
            async with asyncio.timeout(240):
                while not await answers(small):
                    await asyncio.sleep(0.1)
        finally:
            for connection in held:
                connection.close()


async def answers(server: RealServer) -> bool:
    with contextlib.suppress(httpx.TransportError):
        await alive(server)
        return True
    return False
