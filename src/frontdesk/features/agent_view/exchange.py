"""One request to our own doors and its response, recorded as they were on the wire.

The request goes through the gateway in this process. `$TOKEN` replaces the access token in what is recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import orjson
from starlette.types import ASGIApp, Message, Scope

from frontdesk.doors.mcp import PATH as MCP_PATH
from frontdesk.doors.mcp.messages import HANDSHAKE_VERSIONS
from frontdesk.doors.rest import PREFIX
from frontdesk.engine.arguments import input_names
from frontdesk.engine.sandbox import HEADER, META_KEY
from frontdesk.operations import Operation

_PLACEHOLDER = "$TOKEN"
_FRAME = b"data: "


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A request without Host, and with $TOKEN in place of the token."""

    method: str
    target: str  # path and query
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Exchange:
    sent: SentMessage
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def reason(self) -> str:
        return HTTPStatus(self.status).phrase

    @property
    def frame(self) -> object:
        """The JSON of the body or of its one server-sent event; None if there is none."""
        text = self.body
        for line in self.body.split(b"\n"):
            if line.startswith(_FRAME):
                text = line.removeprefix(_FRAME)
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return None

    @property
    def is_stream(self) -> bool:
        return dict(self.headers).get("content-type", "").startswith("text/event-stream")

    @property
    def answer(self) -> object:
        """The operation's answer without the door's envelope."""
        document = self.frame
        if isinstance(document, dict) and isinstance(document.get("result"), dict):
            return document["result"].get("structuredContent")
        return document


def rest_request(
    operation: Operation,
    arguments: Mapping[str, object],
    *,
    trace: str,
    simulate: str | None = None,
    key: str | None = None,
) -> SentMessage:
    names = input_names(operation)
    path = PREFIX + operation.path
    for name in names.path.values():
        path = path.replace(f"{{{name}}}", quote(str(arguments.get(name, "")), safe=""))
    rest = {name: value for name, value in arguments.items() if name not in names.path.values()}
    headers = [("Authorization", f"Bearer {_PLACEHOLDER}"), ("Accept", "application/json"), ("traceparent", trace)]
    if simulate is not None:
        headers.append((HEADER, simulate))
    if operation.method == "GET":
        return SentMessage("GET", f"{path}?{urlencode(rest)}" if rest else path, tuple(headers))
    if key is not None:
        headers.append(("Idempotency-Key", key))
    headers.append(("Content-Type", "application/json"))
    return SentMessage(operation.method, path, tuple(headers), orjson.dumps(rest))


def mcp_request(
    operation: Operation, arguments: Mapping[str, object], *, trace: str, number: int, simulate: str | None = None
) -> SentMessage:
    params: dict[str, object] = {"name": operation.name, "arguments": dict(arguments)}
    if simulate is not None:
        params["_meta"] = {META_KEY: simulate}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    headers = (
        ("Authorization", f"Bearer {_PLACEHOLDER}"),
        ("Accept", "application/json, text/event-stream"),
        ("traceparent", trace),
        ("MCP-Protocol-Version", HANDSHAKE_VERSIONS[0]),
        ("Content-Type", "application/json"),
    )
    return SentMessage("POST", MCP_PATH, headers, orjson.dumps(message))


async def exchange(app: ASGIApp, public_url: str, token: str, sent: SentMessage) -> Exchange:
    """Sends a request to the application and collects the response."""
    address = urlsplit(public_url)
    path, _, query = sent.target.partition("?")
    headers = [(b"host", address.netloc.encode()), (b"content-length", str(len(sent.body)).encode())]
    headers += [(n.lower().encode(), v.replace(_PLACEHOLDER, token).encode("latin-1")) for n, v in sent.headers]
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": sent.method,
        "scheme": address.scheme,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": (address.hostname, address.port or 0),
        "state": {},
    }
    started: dict[str, Any] = {}
    answered = bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": sent.body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            answered.extend(message.get("body", b""))

    await app(scope, receive, send)
    received = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in started["headers"])
    return Exchange(sent, started["status"], received, bytes(answered))


def as_curl(public_url: str, sent: SentMessage) -> str:
    """The request as a curl command, without the trace id."""
    parts = [f'curl -s "{public_url}{sent.target}"']
    if sent.method not in ("GET", "POST"):
        parts[0] += f" -X {sent.method}"
    # Double quotes let the shell insert the token; no other header contains shell syntax.
    parts += [f'-H "{name}: {value}"' for name, value in sent.headers if name != "traceparent"]
    if sent.method != "GET":
        parts.append("-d '" + sent.body.decode().replace("'", "'\\''") + "'")
    return " \\\n  ".join(parts)
