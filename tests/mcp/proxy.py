"""A loopback proxy for suites that know neither our tokens nor our tools: it adds the Authorization header, and calls
tools of ours where the suite calls the equivalent one of its own sample server. Everything else passes as it came.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping

from tests.listening import listening

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@contextlib.asynccontextmanager
async def authorizing_proxy(port: int, token: str, renamed: Mapping[str, str]) -> AsyncIterator[int]:
    """Yields the port to connect to instead of the given one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length.group(1))) if length else b""
        answers, requests = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(requests):
            requests.write(_rewritten(head, body, token, renamed))
            while chunk := await answers.read(64 * 1024):
                writer.write(chunk)
                await writer.drain()

    async with listening(serve) as listens_on:
        yield listens_on


def _rewritten(head: bytes, body: bytes, token: str, renamed: Mapping[str, str]) -> bytes:
    request_line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    replaced = (b"authorization:", b"connection:", b"content-length:")
    kept = [line for line in lines if not line.lower().startswith(replaced)]
    for theirs, ours in renamed.items():
        body = body.replace(f'"name":"{theirs}"'.encode(), f'"name":"{ours}"'.encode())
        kept = [re.sub(rb"(?i)^(mcp-name: *)%s$" % theirs.encode(), rb"\1" + ours.encode(), line) for line in kept]
    # One request per connection keeps this simple.
    added = [b"Connection: close", b"Content-Length: %d" % len(body), f"Authorization: Bearer {token}".encode()]
    return b"\r\n".join([request_line, *kept, *added]) + b"\r\n\r\n" + body
