"""A loopback proxy for suites that know neither our tokens nor our tools: it adds the Authorization header, and calls
tools of ours where the suite calls the equivalent one of its own sample server. Everything else passes as it came.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from frontdesk.doors.mcp.elicitation import CONFIRM
from tests.support.listening import listening

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_QUESTION = b'"inputRequests":{"%s":'


@dataclass(frozen=True)
class Equivalent:
    """A tool of ours; a write takes the arguments that are given here. `question` is the suite's name for ours."""

    tool: str
    arguments: Mapping[str, str] | None = None
    question: str = CONFIRM


@contextlib.asynccontextmanager
async def authorizing_proxy(port: int, token: str, equivalents: Mapping[str, Equivalent]) -> AsyncIterator[int]:
    """Yields the port to connect to instead of the given one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length.group(1))) if length else b""
        called = next((name for name in equivalents if f'"name":"{name}"'.encode() in body), None)
        equivalent = None if called is None else equivalents[called]
        answers, requests = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(requests):
            requests.write(_rewritten(head, _translated(body, equivalent), token, equivalents))
            if equivalent is not None and equivalent.question != CONFIRM:
                writer.write(_asked(await answers.read(), equivalent.question))
            while chunk := await answers.read(64 * 1024):
                writer.write(chunk)
                await writer.drain()

    async with listening(serve) as listens_on:
        yield listens_on


def _rewritten(head: bytes, body: bytes, token: str, equivalents: Mapping[str, Equivalent]) -> bytes:
    request_line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    replaced = (b"authorization:", b"connection:", b"content-length:")
    kept = [line for line in lines if not line.lower().startswith(replaced)]
    for theirs, ours in equivalents.items():
        name = rb"(?i)^(mcp-name: *)%s$" % theirs.encode()
        kept = [re.sub(name, rb"\1" + ours.tool.encode(), line) for line in kept]
    # One request per connection keeps this simple.
    added = [b"Connection: close", b"Content-Length: %d" % len(body), f"Authorization: Bearer {token}".encode()]
    return b"\r\n".join([request_line, *kept, *added]) + b"\r\n\r\n" + body


def _translated(body: bytes, equivalent: Equivalent | None) -> bytes:
    """A call of our tool, and agreement to our question where the suite agrees to its own."""
    if equivalent is not None:
        message = orjson.loads(body)
        params = message["params"]
        params["name"] = equivalent.tool
        if equivalent.arguments is not None:
            params["arguments"] = equivalent.arguments
        if isinstance(given := params.get("inputResponses"), dict):
            names = {equivalent.question: CONFIRM}
            params["inputResponses"] = {names.get(name, name): _agreed(answer) for name, answer in given.items()}
    elif b'"action":"accept"' in body and b'"method"' not in body:
        message = orjson.loads(body)
        message["result"] = _agreed(message["result"])
    else:
        return body
    return orjson.dumps(message)


def _agreed(answer: Any) -> Any:
    accepts = isinstance(answer, dict) and answer.get("action") == "accept"
    return {"action": "accept", "content": {CONFIRM: True}} if accepts else answer


def _asked(answer: bytes, question: str) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    body = body.replace(_QUESTION % CONFIRM.encode(), _QUESTION % question.encode())
    return _LENGTH.sub(b"\r\ncontent-length: %d" % len(body), head) + b"\r\n\r\n" + body
