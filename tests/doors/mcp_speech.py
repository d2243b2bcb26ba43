"""Speaking MCP by hand, for tests of the wire: every header and every byte is the test's own choice."""

from collections.abc import Mapping
from typing import Any

import httpx
import orjson
from mcp_types.methods import serialize_server_result

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
EVERY = (*HANDSHAKE, MODERN)
ACCEPT = {"Accept": "application/json, text/event-stream"}


def request(method: str, params: Mapping[str, Any] | None = None, version: str = HANDSHAKE[-1]) -> dict[str, Any]:
    """A JSON-RPC request as a client of that revision writes it."""
    body = dict(params or {})
    if version == MODERN:
        body["_meta"] = {
            f"{META}protocolVersion": version,
            f"{META}clientInfo": {"name": "test", "version": "1"},
            f"{META}clientCapabilities": {},
        }
    return {"jsonrpc": "2.0", "id": "r-1", "method": method, "params": body}


def headers(message: Mapping[str, Any], version: str) -> dict[str, str]:
    """The headers that go with it. Revision 2025-03-26 has none of its own."""
    if version == HANDSHAKE[0]:
        return ACCEPT
    named = {**ACCEPT, "MCP-Protocol-Version": version}
    if version == MODERN:
        named["Mcp-Method"] = message["method"]
        if "name" in message["params"]:
            named["Mcp-Name"] = message["params"]["name"]
    return named


async def send(
    client: httpx.AsyncClient, method: str, params: Mapping[str, Any] | None = None, version: str = HANDSHAKE[-1]
) -> httpx.Response:
    message = request(method, params, version)
    return await client.post("/mcp", json=message, headers=headers(message, version))


def framed(answer: httpx.Response) -> dict[str, Any]:
    """The one JSON-RPC message of an event stream."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.content.startswith(b"event: message\ndata: ")
    assert answer.content.endswith(b"\n\n")
    assert answer.content.count(b"\n") == 3, "one event, on one line"
    message: dict[str, Any] = orjson.loads(answer.content.split(b"data: ", 1)[1])
    assert message["jsonrpc"] == "2.0"
    return message


async def result(
    client: httpx.AsyncClient, method: str, params: Mapping[str, Any] | None = None, version: str = HANDSHAKE[-1]
) -> dict[str, Any]:
    return checked(await send(client, method, params, version), method, version)


def checked(answer: httpx.Response, method: str, version: str = HANDSHAKE[-1]) -> dict[str, Any]:
    """The result of a request, once the SDK's own types of that revision have accepted it."""
    reply = framed(answer)
    assert reply["id"] == "r-1"
    found: dict[str, Any] = reply["result"]
    serialize_server_result(method, version, found)
    return found


async def call(
    client: httpx.AsyncClient, tool: str, version: str = HANDSHAKE[-1], /, **arguments: Any
) -> dict[str, Any]:
    """The whole result of a tool call."""
    return await result(client, "tools/call", {"name": tool, "arguments": arguments}, version)


def error(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The JSON-RPC error that an answer carries, framed or not."""
    if status == 200:
        reply = framed(answer)
    else:
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        reply = answer.json()
    assert "result" not in reply
    assert_no_python(answer.text)
    found: dict[str, Any] = reply["error"]
    return found


def problem(answer: httpx.Response, status: int) -> str:
    """The code of the problem document that an answer is."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == status
    assert document["requestId"] == answer.headers["x-svc-trace-id"]
    assert_no_python(answer.text)
    code: str = document["code"]
    return code


def assert_no_python(text: str) -> None:
    for trace in ("Traceback", "pydantic", "Error(", "Exception", "NoneType", ".py", "object has no"):
        assert trace not in text
