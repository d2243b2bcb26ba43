"""A loopback listener for tests. It holds on to its connections until they are done: asyncio forgets one whose other
side has left, and the garbage collector then ends it in the middle of what it waits for.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable


@contextlib.asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Yields the port. When it returns, every connection is closed and nothing listens."""
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):  # the other side has left
            await serve(reader, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(connection(reader, writer))
        connections[task] = writer
        task.add_done_callback(lambda done: connections.pop(done).close())

    server = await asyncio.start_server(accept, "127.0.0.1", port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        left = dict(connections)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, *(writer.wait_closed() for writer in left.values()), return_exceptions=True)
