"""Keep-alive, pipelining and closing of connections, tested over a raw socket."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.security.raw_wire import alive, exchange, is_at_its_end, next_answer
from tests.security.real_server import RealServer

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

PERSON = json.dumps({"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}).encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"


@pytest.fixture
async def connection(server: RealServer) -> AsyncIterator[Connection]:
    reader, writer = await server.wire()
    yield reader, writer
    writer.close()


@pytest.fixture
async def match(server: RealServer) -> str:
    """The head of a call that sends a body, without saying how long it is."""
    return (
        "POST /api/patients/match HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {await server.token()}\r\n"
    )


def announced(head: str, more: str = "") -> bytes:
    return f"{head}{more}Content-Length: {len(PERSON)}\r\n\r\n".encode()


def chunked(head: str, trailers: str = "", extension: str = "") -> bytes:
    pieces = b"".join(b"%x%b\r\n%b\r\n" % (1, extension.encode(), PERSON[at : at + 1]) for at in range(len(PERSON)))
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + pieces + f"0\r\n{trailers}\r\n".encode()


async def test_requests_of_one_connection_are_answered_in_their_order(connection: Connection, match: str) -> None:
    reader, writer = connection
    unknown = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
    writer.write(GET + announced(match) + PERSON + unknown + chunked(match, extension=";a=b") + GET)
    assert [(await next_answer(reader)).status for _ in range(5)] == [200, 200, 404, 200, 200]


async def test_more_requests_than_anybody_waits_for_end_the_connection(server: RealServer) -> None:
    answer = await asyncio.to_thread(exchange, server, GET.decode() * 3000)
    assert answer.closed
    assert 1 <= answer.received.count(b"HTTP/1.1 200 ") < 3000
    assert b"HTTP/1.1 4" not in answer.received
    await alive(server)


async def test_an_answer_without_a_body_is_followed_by_the_next_one(connection: Connection) -> None:
    reader, writer = connection
    writer.write(b"HEAD /docs HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
    first = await next_answer(reader, has_body=False)
    assert first.status == 200
    assert int(first.headers["content-length"]) > 1000
    assert (await next_answer(reader)).body == b'{"status":"up"}'


async def test_an_old_client_gets_an_answer_and_the_end(server: RealServer) -> None:
    for wish in ("", "Connection: keep-alive\r\n"):
        answer = await asyncio.to_thread(exchange, server, f"GET /healthz HTTP/1.0\r\n{wish}\r\n")
        assert (answer.status, answer.closed) == (200, True)
        assert b"transfer-encoding" not in answer.received


@pytest.mark.parametrize("wish", [H2C, WEBSOCKET], ids=["h2c", "websocket"])
async def test_a_wish_for_another_protocol_is_ignored(
    server: RealServer, connection: Connection, match: str, wish: str
) -> None:
    reader, writer = connection
    for _ in range(2):
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: x\r\n{wish}\r\n".encode())
        assert (await next_answer(reader)).status == 200
        writer.write(announced(match, wish) + PERSON)
        assert (await next_answer(reader)).status == 200
        writer.write(announced(match, wish))
        await writer.drain()
        await asyncio.sleep(0.2)  # the body on its own: it is no message of another protocol either
        writer.write(PERSON + f"GET /nowhere HTTP/1.1\r\nHost: x\r\n{wish}\r\n".encode() + GET)
        assert [(await next_answer(reader)).status for _ in range(3)] == [200, 404, 200]
    assert "pgrade" not in server.log.read_text()


async def test_nobody_is_connected_to_elsewhere(server: RealServer) -> None:
    answer = await asyncio.to_thread(exchange, server, "CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: x\r\n\r\nhello")
    assert (answer.status, answer.code, answer.closed) == (400, "validation", True)


async def test_space_around_a_header_is_no_part_of_it(connection: Connection, match: str) -> None:
    reader, writer = connection
    request_line, *fields = announced(match).rstrip().split(b"\r\n")
    spaced = [field.replace(b": ", b":\t  ") + b" \t " for field in fields]
    writer.write(b"\r\n".join([request_line, *spaced, b"", PERSON]))
    assert (await next_answer(reader)).status == 200


async def test_expect_continue_is_answered_before_the_body(connection: Connection, match: str) -> None:
    reader, writer = connection
    writer.write(announced(match, "Expect: 100-continue\r\n"))
    assert (await next_answer(reader)).status == 100
    writer.write(PERSON + GET)
    assert [(await next_answer(reader)).status for _ in range(2)] == [200, 200]


async def test_a_body_that_was_asked_about_and_not_wanted_is_not_waited_for(connection: Connection) -> None:
    """What follows may be the body or the next request: nobody can tell, so that nothing follows."""
    reader, writer = connection
    writer.write(announced("POST /nowhere HTTP/1.1\r\nHost: x\r\n", "Expect: 100-continue\r\n"))
    assert (await next_answer(reader)).status == 404
    writer.write(GET)
    assert await is_at_its_end(reader)


async def test_a_small_body_that_nobody_wanted_is_thrown_away_and_the_connection_goes_on(
    connection: Connection,
) -> None:
    reader, writer = connection
    for _ in range(3):
        writer.write(announced("POST /nowhere HTTP/1.1\r\nHost: x\r\n"))
        assert (await next_answer(reader)).status == 404
        writer.write(PERSON + GET)
        assert (await next_answer(reader)).status == 200


async def test_what_stands_behind_a_body_is_no_header(connection: Connection, match: str) -> None:
    head, _, authorization = match.partition("Authorization")
    reader, writer = connection
    writer.write(chunked(head, trailers=f"Authorization{authorization}"))
    assert (await next_answer(reader)).status == 401
    writer.write(chunked(match, trailers="Authorization: Bearer x\r\n"))
    assert (await next_answer(reader)).status == 200


async def test_a_broken_body_is_refused_before_it_is_waited_for(connection: Connection, match: str) -> None:
    reader, writer = connection
    writer.write(f"{match}Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\nno number\r\n".encode())
    answer = await next_answer(reader)
    assert (answer.status, json.loads(answer.body)["code"]) == (400, "validation")
    assert await is_at_its_end(reader)


async def test_requests_before_a_broken_one_are_answered_and_then_the_connection_ends(
    connection: Connection, match: str
) -> None:
    reader, writer = connection
    writer.write(announced(match) + PERSON + GET + b"\x16\x03\x01 no request\r\n\r\n" + GET)
    first, second = await next_answer(reader), await next_answer(reader)
    assert (first.status, second.status) == (200, 200)
    assert "connection" not in first.headers
    assert second.headers["connection"] == "close"
    assert await is_at_its_end(reader)


async def test_an_answer_reaches_a_client_that_is_still_sending(server: RealServer) -> None:
    """To close while something is unread would take it from them: they get the answer and an orderly end."""
    reader, writer = await server.wire()
    writer.write(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + b"x" * 200_000)
    await writer.drain()
    assert (await next_answer(reader)).status == 404
    async with asyncio.timeout(30):
        assert await reader.read() == b""  # an end and no broken connection
    writer.close()
