"""The listener that tests use, where a connection would be lost without it."""

import asyncio
import gc

from tests.mcp.proxy import authorizing_proxy
from tests.support.listening import listening

REQUEST = b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n"


async def test_a_proxied_request_outlives_its_client_and_ends_with_the_proxy() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        assert await reader.read() == b""
        gone.set()

    async with listening(silent) as upstream:
        async with authorizing_proxy(upstream, "token", {}) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            await asyncio.wait_for(arrived.wait(), 60)
            writer.close()
            await writer.wait_closed()
            for _ in range(4):  # the proxy sees the end, and the collector everything that nobody holds
                await asyncio.sleep(0.01)
                gc.collect()
            assert not gone.is_set()
        await asyncio.wait_for(gone.wait(), 60)
