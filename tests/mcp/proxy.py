"""A loopback proxy that adds the Authorization header, for clients that have no option for one.

Everything else passes as it came, byte for byte, except that a connection carries one request.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

_LARGEST_HEAD = 64 * 1024


@contextlib.asynccontextmanager
async def authorizing_proxy(port: int, token: str) -> AsyncIterator[int]:
    """Yields the port to connect to instead of the given one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            answers, requests = await asyncio.open_connection("127.0.0.1", port)
            requests.write(_authorized(head, token))
            forward = asyncio.create_task(_pipe(reader, requests))
            await _pipe(answers, writer)
            forward.cancel()
            requests.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LARGEST_HEAD)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _authorized(head: bytes, token: str) -> bytes:
    request_line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"authorization:", b"connection:"))]
    added = [b"Connection: close", f"Authorization: Bearer {token}".encode()]
    return b"\r\n".join([request_line, *kept, *added]) + b"\r\n\r\n"


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await source.read(64 * 1024):
            target.write(chunk)
            await target.drain()
