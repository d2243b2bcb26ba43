"""Answers of the doors, seen from a raw socket."""

import asyncio
import json
import socket
from typing import Any

import httpx
import pytest

from frontdesk.app import build_app
from tests.security.raw_wire import alive, is_at_its_end, next_answer
from tests.security.real_server import RealServer

OF_ONE_ANSWER = {"date", "server", "x-svc-trace-id", "ratelimit"}
GET = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
async def token(server: RealServer) -> str:
    return await server.token()


def listing(token: str, more: str = "", version: str = "1.1") -> str:
    return f"GET /api/providers HTTP/{version}\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n"


def tool_call(number: int) -> tuple[dict[str, str], bytes]:
    params = {"name": "list_providers", "arguments": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
    return {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}, body


async def test_answers_on_the_wire_are_those_of_the_application(server: RealServer, token: str) -> None:
    def lasting(headers: Any) -> dict[str, str]:
        return {name: value for name, value in headers.items() if name not in OF_ONE_ANSWER}

    bearer = {"Authorization": f"Bearer {token}"}
    fields, body = tool_call(1)
    asgi = httpx.ASGITransport(app=build_app(server.service))
    async with (
        httpx.AsyncClient(transport=asgi, base_url=server.url, headers=bearer) as within,
        server.http(token) as http,
    ):
        for _ in range(3):  # made, and given again
            for there, here in (
                (await http.get("/api/providers"), await within.get("/api/providers")),
                (
                    await http.post("/mcp", content=body, headers=fields),
                    await within.post("/mcp", content=body, headers=fields),
                ),
            ):
                assert (there.status_code, there.content) == (here.status_code, here.content) == (200, here.content)
                assert lasting(there.headers) == lasting(here.headers)
                assert OF_ONE_ANSWER - {"server"} <= set(there.headers)


async def test_pipelined_requests_are_answered_in_order(server: RealServer, token: str) -> None:
    reader, writer = await server.wire()
    fields, body = tool_call(7)
    fields |= {"Host": "127.0.0.1", "Authorization": f"Bearer {token}", "Content-Length": str(len(body))}
    call = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    unknown = f"GET /api/nowhere HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    one_round = [listing(token), GET, call + body.decode(), unknown, listing(token)]
    writer.write("".join(one_round * 3).encode())
    answers = [await next_answer(reader) for _ in range(15)]
    assert [answer.status for answer in answers] == [200, 200, 200, 404, 200] * 3
    providers = answers[0].body
    assert b'"items"' in providers
    assert [answer.body == providers for answer in answers] == [True, False, False, False, True] * 3
    assert all(b'"id":7' in answer.body for answer in answers[2::5])
    writer.close()


@pytest.mark.parametrize(("more", "version"), [("Connection: close\r\n", "1.1"), ("", "1.0")])
async def test_a_client_that_wants_the_connection_closed_gets_it_closed(
    server: RealServer, token: str, more: str, version: str
) -> None:
    for _ in range(2):
        reader, writer = await server.wire()
        writer.write((listing(token, more, version) + GET).encode())
        answer = await next_answer(reader)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await is_at_its_end(reader)
        writer.close()


async def test_a_slow_client_gets_every_answer_in_order(server: RealServer, token: str) -> None:
    asked = 90
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", server.port))
        ids = [f"{number + 1:032x}" for number in range(asked)]
        heads = [listing(token, f"traceparent: 00-{each}-00f067aa0ba902b7-01\r\n") for each in ids]
        await loop.sock_sendall(client, "".join(heads).encode())
        await alive(server)  # the others are served meanwhile
        reader, writer = await asyncio.open_connection(sock=client.dup())
        answers = [await next_answer(reader) for _ in range(asked)]
        writer.close()
    assert [answer.headers["x-svc-trace-id"] for answer in answers] == ids
    assert len({answer.body for answer in answers}) == 1
