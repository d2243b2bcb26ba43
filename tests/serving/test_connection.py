"""Connections of the server, with applications that test their limits."""

import asyncio
import contextlib
import gc
import socket
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send

from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.serving.connection import (
    BODY_SECONDS,
    HEAD_SECONDS,
    KEEP_ALIVE_SECONDS,
    SLOW_CLIENT_SECONDS,
    Connection,
    WorkerState,
)
from tests.security.raw_wire import next_answer

END = b"0\r\n\r\n"  # of chunks
ROOM = 100  # for connections
LARGE = b"x" * 16 * 1024 * 1024  # more than fits between two sockets that nobody reads from


@dataclass
class Served:
    """An application that answers everything with the same body."""

    body: bytes = b"ok"
    calls: int = 0
    state: WorkerState = field(default_factory=lambda: WorkerState(ROOM, {400: b"content-length: 0\r\n\r\n"}))
    connections: list["weakref.ref[Connection]"] = field(default_factory=list)

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.calls += 1
        await send_response(send, self.body)

    def is_called(self) -> bool:
        """Whether a request is on its first connection, which the client has not left."""
        wire = self.connections[0]() if self.connections else None
        return wire is not None and wire.cycle is not None


@contextlib.asynccontextmanager
async def serving(app: Served, instead: Any = None) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """One client of it, or of another application whose connections it knows."""
    config = uvicorn.Config(
        instead or app, interface="asgi3", http=Connection, lifespan="off", log_config=None, access_log=False
    )
    config.load()

    def connection() -> Connection:
        wire = Connection(config=config, server_state=app.state, app_state={})
        app.connections.append(weakref.ref(wire))
        return wire

    listener, client = with_small_buffers(), with_small_buffers()
    listener.bind(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(connection, sock=listener)
    async with server:
        await asyncio.get_running_loop().sock_connect(client, listener.getsockname())
        reader, writer = await asyncio.open_connection(sock=client, limit=1 << 20)
        try:
            async with asyncio.timeout(60):
                yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def with_small_buffers() -> socket.socket:
    """A socket whose buffers do not grow: what they hold of an answer is the same on every machine."""
    made = socket.socket()
    made.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        made.setsockopt(socket.SOL_SOCKET, option, 64 * 1024)
    return made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def on_uvloop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """The server's event loop: others write differently."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 60))


async def send_response(send: Send, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def request(method: str) -> bytes:
    return f"{method} / HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_an_answer_to_head_has_the_length_and_no_body() -> None:
    app = Served()
    async with serving(app) as (reader, writer):
        writer.write(request("HEAD") + request("GET"))
        head = await next_answer(reader, has_body=False)
        assert (head.status, head.headers["content-length"]) == (200, "2")
        assert (await next_answer(reader)).body == b"ok"


async def test_a_header_value_with_a_line_break_is_not_sent() -> None:
    async def splitting(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"x-name", b"Ada\r\nset-cookie: stolen=1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async with serving(Served(), splitting) as (reader, writer):
        writer.write(request("GET"))
        assert b"set-cookie" not in await reader.read()


class Recording:
    """A transport that notes what is written to it at once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport, self.writes = transport, list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        self.transport.write(data)

    def writelines(self, parts: tuple[bytes, ...]) -> None:
        self.write(b"".join(parts))


async def test_head_and_body_of_an_answer_are_one_write() -> None:
    app = Served()
    async with serving(app) as (reader, writer):
        writer.write(request("GET"))
        await next_answer(reader)
        (connection,) = app.state.connections
        connection._socket = recording = Recording(connection._socket)
        writer.write(request("GET"))
        assert (await next_answer(reader)).body == b"ok"
        (written,) = recording.writes
        assert written.endswith(b"\r\n\r\nok")


def test_requests_wait_while_the_client_does_not_read() -> None:
    async def scenario() -> None:
        app = Served(LARGE)
        async with serving(app) as (reader, writer):
            writer.write(request("GET") * 3)
            await until(lambda: app.calls >= 2)
            await asyncio.sleep(0.1)
            assert app.calls == 2  # the second waits for the client, the third has not been handed over
            assert [(await next_answer(reader)).body == LARGE for _ in range(3)] == [True, True, True]

    on_uvloop(scenario)


@pytest.mark.parametrize("last", [b"", request("GET"), b"GET / HTTP/1.1\r\nHo"], ids=["idle", "answered", "in a head"])
async def test_nothing_of_a_connection_waits_for_the_garbage_collector(last: bytes) -> None:
    app = Served()
    gc.collect()
    gc.disable()
    try:
        async with serving(app) as (reader, writer):
            writer.write(request("GET"))
            await next_answer(reader)
            writer.write(last)
        await until(lambda: app.connections[0]() is None)
    finally:
        gc.enable()


def pass_seconds(app: Served, seconds: int) -> None:
    for _ in range(seconds):
        app.state.check_timeouts()


async def test_an_idle_connection_is_kept_alive_for_more_than_a_minute() -> None:
    app = Served()
    async with serving(app) as (reader, writer):
        for _ in range(2):
            writer.write(request("GET"))
            assert (await next_answer(reader)).body == b"ok"
            pass_seconds(app, KEEP_ALIVE_SECONDS)
        assert not reader.at_eof()
        pass_seconds(app, 1)
        assert await reader.read() == b""
    assert KEEP_ALIVE_SECONDS > 60


async def test_an_idle_connection_is_closed_sooner_when_many_are_open() -> None:
    app = Served()
    async with serving(app) as (reader, writer):
        writer.write(request("GET"))
        await next_answer(reader)
        app.state.max_connections = 1
        pass_seconds(app, HEAD_SECONDS)
        assert app.state.connections
        pass_seconds(app, 1)
        assert await reader.read() == b""


async def test_an_address_has_a_bounded_number_of_connections_unless_it_is_a_trusted_proxy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxies: set[str] = set()
    limit = ConnectionLimit(3, lambda address: address in proxies)
    app = Served(state=WorkerState(ROOM, {}, limit))
    async with serving(app) as (reader, writer):
        host, port = writer.get_extra_info("peername")[:2]

        opened: list[asyncio.StreamWriter] = []

        async def another() -> bool:
            reader, writer = await asyncio.open_connection(host, port)
            opened.append(writer)
            writer.write(request("GET"))
            try:
                return bool(await reader.read(1))
            except ConnectionError:
                return False

        assert [await another() for _ in range(4)] == [True, True, False, False]
        assert limit.refused == 2
        assert len([line for line in caplog.messages if "are refused" in line]) == 1, "not a line for each"
        writer.write(request("GET"))
        assert (await next_answer(reader)).body == b"ok", "what is open stays open"
        opened[0].close()
        await until(lambda: len(app.state.connections) == 2)
        assert await another()
        proxies.add("127.0.0.1")
        assert await another()
        for each in opened:
            each.close()
            with contextlib.suppress(ConnectionError):
                await each.wait_closed()
    await until(lambda: not limit._open)


async def test_a_request_may_be_worked_on_for_as_long_as_it_takes() -> None:
    app = Reader()
    async with serving(app) as (reader, writer):
        writer.write(posted(b"ab") + END)
        await until(app.is_called)
        pass_seconds(app, 10 * KEEP_ALIVE_SECONDS)
        app.wait.set()
        assert (await next_answer(reader)).body == b"ab"


async def test_a_client_that_stops_reading_is_cut_off_and_a_slow_one_is_not() -> None:
    app = Served(LARGE)
    async with serving(app) as (reader, writer):
        writer.write(request("GET"))
        await until(lambda: app.calls == 1)
        (wire,) = app.state.connections
        length = len(LARGE)
        for _ in range(5):  # each time nearly too late
            left = unsent(wire)
            while unsent(wire) == left:
                length -= len(await reader.read(1024 * 1024))
                await asyncio.sleep(0.01)
            pass_seconds(app, SLOW_CLIENT_SECONDS)
        assert app.state.connections
        for _ in range(2 * SLOW_CLIENT_SECONDS):  # what fits between the two is still sent
            app.state.check_timeouts()
            await asyncio.sleep(0.01)
        assert not app.state.connections
        with contextlib.suppress(ConnectionResetError):
            while piece := await reader.read(1024 * 1024):
                length -= len(piece)
        assert length > 0


def unsent(wire: Connection) -> int:
    return wire._socket.get_write_buffer_size()


@dataclass
class Reader(Served):
    """An application that reads the body and returns it."""

    wait: asyncio.Event = field(default_factory=asyncio.Event)
    read: list[bytes | None] = field(default_factory=list)  # None: the client went before its body was complete

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await self.wait.wait()
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.read.append(None)
                await send_response(send, b"")
                return
            body += message["body"]
            more = message["more_body"]
        self.read.append(body)
        await send_response(send, body)


def posted(*pieces: bytes) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks


async def test_a_body_is_read_whether_it_has_come_or_is_waited_for() -> None:
    app = Reader()
    app.wait.set()
    async with serving(app) as (reader, writer):
        writer.write(posted(b"ab", b"c") + END + request("GET"))
        assert [(await next_answer(reader)).body for _ in range(2)] == [b"abc", b""]
        writer.write(posted(b"ab"))
        await until(app.is_called)
        await asyncio.sleep(0.05)
        writer.write(b"2\r\ncd\r\n" + END + posted(b"e") + END)
        assert [(await next_answer(reader)).body for _ in range(2)] == [b"abcd", b"e"]


async def test_each_of_several_requests_has_its_own_body() -> None:
    app = Reader()
    async with serving(app) as (reader, writer):
        writer.write(b"".join(posted(b"%d" % number) + END for number in range(5)))
        app.wait.set()
        assert [(await next_answer(reader)).body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_the_body_of_a_client_that_has_gone_is_not_read() -> None:
    app = Reader()
    async with serving(app) as (_, writer):
        writer.write(posted(b"ab") + END)
        await until(app.is_called)
        writer.close()
        await until(lambda: not app.is_called())
        app.wait.set()
        await until(lambda: bool(app.read))
    assert app.read == [None]


async def test_a_body_that_broke_off_is_refused_with_one_answer() -> None:
    app = Reader()
    async with serving(app) as (reader, writer):
        writer.write(posted(b"ab") + b"no number\r\n")
        refused = await next_answer(reader)
        app.wait.set()
        assert (refused.status, await reader.read()) == (400, b"")
        await until(lambda: bool(app.read))
    assert app.read == [None]


async def test_a_body_that_takes_too_long_is_refused_however_it_trickles() -> None:
    app = Reader()
    app.wait.set()
    async with serving(app) as (reader, writer):
        writer.write(posted(b"ab"))
        await until(app.is_called)
        for second in range(BODY_SECONDS + 1):
            assert app.read == []
            pass_seconds(app, 1)
            writer.write(b"1\r\n%d\r\n" % (second % 10))
            await asyncio.sleep(0.01)
        refused = await next_answer(reader)
        assert (refused.status, await reader.read()) == (400, b"")
    assert app.read == [None]


async def test_a_body_may_take_its_time_after_a_slow_head() -> None:
    app = Reader()
    app.wait.set()
    async with serving(app) as (reader, writer):
        head, body = posted(b"ab").split(b"\r\n\r\n", 1)
        writer.write(head)
        await until(lambda: bool(app.connections) and app.connections[0]()._in_head)  # type: ignore[union-attr]
        pass_seconds(app, HEAD_SECONDS)
        writer.write(b"\r\n\r\n")
        await until(app.is_called)
        pass_seconds(app, BODY_SECONDS)
        writer.write(body + END)
        assert (await next_answer(reader)).body == b"ab"


async def test_a_client_that_goes_while_its_first_request_is_worked_on_gets_no_second_one_executed() -> None:
    app = Reader()
    calls = 0
    worked_on, left = asyncio.Event(), asyncio.Event()

    async def first_takes_long(_scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal calls
        calls += 1
        await receive()
        worked_on.set()
        await left.wait()
        await send_response(send, b"")

    async with serving(app, first_takes_long) as (_, writer):
        writer.write((posted(b"ab") + END) * 2)
        await until(worked_on.is_set)
        writer.close()
        await until(lambda: not app.is_called())
        left.set()
        await asyncio.sleep(0)
    assert calls == 1


async def test_after_the_body_only_the_disconnect_is_received() -> None:
    app = Reader()
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def listens_on(_scope: Scope, receive: Receive, _send: Send) -> None:
        heard.put_nowait((await receive())["body"])
        heard.put_nowait((await receive())["type"])

    async with serving(app, listens_on) as (_, writer):
        writer.write(posted(b"ab") + END)
        assert await heard.get() == b"ab"
        writer.close()
        assert await heard.get() == "http.disconnect"
