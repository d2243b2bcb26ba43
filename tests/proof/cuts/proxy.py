"""A proxy that reads the protocol of a connection, and harms the connection at a chosen message."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.proof.cuts.framing import SHUTDOWN, Framing, HttpFraming, Message, PostgresFraming, Sender

Fault = Literal[
    "cut",  # both sides see the end of the connection instead of the message
    "cut_client",  # the message arrives; the client sees the end at once, the server a moment later
    "down",  # cut, and nothing can connect until the proxy is healed
    "drop",  # the message and all that follow disappear; the connection stays open
    "delay",  # the message arrives later
    "end_twice",  # the client is told twice that the database shuts down, then sees the end
]

DELAY_SECONDS = 0.02
_SOCKET = ".s.PGSQL.{port}"
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Proxy:
    """`faults` by the number of a message, counted over all connections since `arm`; `hit` are the messages harmed."""

    connect: Callable[[], Awaitable[_Streams]]
    framing: Callable[[], Framing]
    faults: Mapping[int, Fault] = field(default_factory=dict)
    seen: list[Message] = field(default_factory=list)
    hit: list[Message] = field(default_factory=list)
    down: bool = False
    _lines: dict["asyncio.Task[None]", "_Line"] = field(default_factory=dict)

    def arm(self, faults: Mapping[int, Fault]) -> None:
        self.faults = faults
        self.seen.clear()
        self.hit.clear()

    def heal(self) -> None:
        """From here on everything passes; connections that lost messages are closed."""
        self.faults = {}
        self.down = False
        for line in list(self._lines.values()):
            if line.silent:
                line.abort()

    def judge(self, message: Message) -> Fault | None:
        fault = self.faults.get(len(self.seen))
        self.seen.append(message)
        if fault is not None:
            self.hit.append(message)
        if fault == "down":
            self.down = True
        return fault

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.transport.abort()
            return
        line = _Line(self, (reader, writer))
        task = asyncio.create_task(line.run())
        self._lines[task] = line
        task.add_done_callback(self._lines.pop)

    async def close(self) -> None:
        tasks = list(self._lines)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Line:
    """One connection of the client, and the one to the server that belongs to it."""

    def __init__(self, proxy: Proxy, client: _Streams) -> None:
        self._proxy = proxy
        self._framing = proxy.framing()
        self._streams: dict[Sender, _Streams] = {"client": client}
        self.silent = False

    async def run(self) -> None:
        try:
            self._streams["server"] = await self._proxy.connect()
            pumps = [asyncio.create_task(self._pump(sender)) for sender in self._streams]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            self.abort()

    def abort(self) -> None:
        for _, writer in self._streams.values():
            writer.transport.abort()

    async def _pump(self, sender: Sender) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await self._streams[sender][0].read(65536):
                for message in self._framing.split(sender, data):
                    if not await self._pass(message):
                        return

    async def _pass(self, message: Message) -> bool:
        """Whether the connection lives on."""
        if self.silent:
            return True
        fault, client = self._proxy.judge(message), self._streams["client"][1]
        if fault in ("cut", "down"):
            return False
        if fault == "drop":
            self.silent = True
            return True
        if fault == "end_twice":
            client.write(SHUTDOWN * 2)
            client.close()
            await asyncio.sleep(0)
            return False
        if fault == "delay":
            await asyncio.sleep(DELAY_SECONDS)
        self._streams["server" if message.sender == "client" else "client"][1].write(message.content)
        if fault == "cut_client":
            client.transport.abort()
            await asyncio.sleep(DELAY_SECONDS)
            return False
        return True


@contextlib.asynccontextmanager
async def postgres_proxy(sockets: Path, port: int, folder: Path) -> AsyncIterator[Proxy]:
    """A proxy in front of the server whose socket is in the folder `sockets`; it listens in the other folder."""
    name = _SOCKET.format(port=port)
    proxy = Proxy(lambda: asyncio.open_unix_connection(str(sockets / name)), PostgresFraming)
    server = await asyncio.start_unix_server(proxy.accept, str(folder / name))
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()


@contextlib.asynccontextmanager
async def http_proxy(target: int) -> AsyncIterator[tuple[Proxy, int]]:
    """A proxy in front of an HTTP server on this machine, and its port."""
    proxy = Proxy(lambda: asyncio.open_connection("127.0.0.1", target), HttpFraming)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await proxy.close()
