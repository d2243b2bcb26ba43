"""MCP hosts that ask their user, by hand: what they send, and a call whose stream stays open for the answer."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import orjson

from tests.console.streams import Stream, opened_by
from tests.doors.mcp_speech import HANDSHAKE, META, MODERN, headers, request

FORMS: Mapping[str, Any] = {"elicitation": {}}
CARDS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
YES: Mapping[str, Any] = {"action": "accept", "content": {"confirm": True}}
NOT_TICKED: Mapping[str, Any] = {"action": "accept", "content": {"confirm": False}}
DECLINE: Mapping[str, Any] = {"action": "decline"}
CANCEL: Mapping[str, Any] = {"action": "cancel"}


def modern_call(
    tool: str, arguments: Mapping[str, Any], capabilities: Mapping[str, Any] = FORMS, **more: Any
) -> dict[str, Any]:
    message = request("tools/call", {"name": tool, "arguments": dict(arguments), **more}, MODERN)
    message["params"]["_meta"][f"{META}clientCapabilities"] = dict(capabilities)
    return message


async def posted(client: httpx.AsyncClient, message: Mapping[str, Any]) -> httpx.Response:
    return await client.post("/mcp", json=message, headers=headers(message, MODERN))


async def modern(
    client: httpx.AsyncClient,
    tool: str,
    arguments: Mapping[str, Any],
    capabilities: Mapping[str, Any] = FORMS,
    **more: Any,
) -> dict[str, Any]:
    """The result of a call by a host of revision 2026-07-28."""
    answer = await posted(client, modern_call(tool, arguments, capabilities, **more))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = orjson.loads(answer.content.split(b"data: ", 1)[1])["result"]
    return found


async def answered(
    client: httpx.AsyncClient, tool: str, arguments: Mapping[str, Any], asked: Mapping[str, Any], answer: Any
) -> dict[str, Any]:
    """The result after the host's user has answered."""
    given = {"inputResponses": {"confirm": answer}, "requestState": asked["requestState"]}
    return await modern(client, tool, arguments, **given)


async def session_of(
    client: httpx.AsyncClient, capabilities: Mapping[str, Any] = FORMS, version: str = HANDSHAKE[-1]
) -> str | None:
    """The session id that a host of an earlier revision gets."""
    params = {
        "protocolVersion": version,
        "capabilities": dict(capabilities),
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = request("initialize", params, version)
    answer = await client.post("/mcp", json=message, headers=headers(message, HANDSHAKE[0]))
    assert answer.status_code == 200, answer.text
    return answer.headers.get("mcp-session-id")


class OpenCall(Stream):
    """A call whose stream is open. `messages` are the JSON-RPC messages on it so far."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = body

    async def receive(self) -> Any:
        first = not self._asked
        message = await super().receive()
        return {**message, "body": self._body} if first else message

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [orjson.loads(line[6:]) for line in self.text.split("\n") if line.startswith("data: ")]


@contextlib.asynccontextmanager
async def open_call(
    app: Any, client: httpx.AsyncClient, session: str | None, tool: str, arguments: Mapping[str, Any]
) -> AsyncIterator[OpenCall]:
    body = orjson.dumps(request("tools/call", {"name": tool, "arguments": dict(arguments)}))
    sent = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "authorization": client.headers["Authorization"],
        "mcp-protocol-version": HANDSHAKE[-1],
        **({} if session is None else {"mcp-session-id": session}),
    }
    async with opened_by(app, "POST", "/mcp", sent, OpenCall(body)) as opened:
        await opened.until("data: ")
        yield opened


async def reply(client: httpx.AsyncClient, question: Mapping[str, Any], answer: Any) -> int:
    """Sends the answer of the host's user as a request of its own."""
    message = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
    return (await client.post("/mcp", json=message, headers=headers({}, HANDSHAKE[1]))).status_code
