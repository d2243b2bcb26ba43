"""HTTP/1.1 connections: uvicorn's protocol with limits of time, size and number for slow and hostile clients.

Timeouts are checked once a second for all connections together, so that no request needs a timer.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.doors.gateway import MAX_REQUEST_TARGET_LENGTH

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

HEAD_SECONDS = 10  # for the request line and headers
BODY_SECONDS = 15
KEEP_ALIVE_SECONDS = 75  # longer than the minute of common proxies, so that they close first and no request is lost
SLOW_CLIENT_SECONDS = 30  # without reading anything of its answer
LINGER_SECONDS = 2
_MAX_HEAD_BYTES = 64 * 1024
_MAX_DISCARDED_BYTES = 1024 * 1024  # before a connection is closed
_MAX_HEADERS = 100
_MAX_PIPELINED = 100  # requests waiting on one connection


class WorkerState(ServerState):
    """The state that the connections of a worker share."""

    connections: set["Connection"]  # type: ignore[assignment]

    def __init__(
        self, max_connections: int, refusals: Mapping[int, bytes], per_address: ConnectionLimit | None = None
    ) -> None:
        """`refusals` holds the headers and body for the statuses 400, 414, 431, 500 and 502."""
        super().__init__()
        self.max_connections = max_connections
        self.refusals = refusals
        self.per_address = per_address
        self.handshakes: set[asyncio.Task[None]] = set()  # connections that are not encrypted yet
        self.draining = False

    def is_full(self) -> bool:
        return len(self.connections) + len(self.handshakes) >= self.max_connections

    def opened(self, address: str) -> bool:
        """False if the address has too many connections; otherwise `closed` has to follow."""
        return self.per_address is None or self.per_address.opened(address)

    def closed(self, address: str) -> None:
        if self.per_address is not None:
            self.per_address.closed(address)

    def drain(self) -> None:
        """From now on every connection is closed with its next answer, so that clients connect to another node."""
        self.draining = True
        for connection in self.connections:
            connection.drain()

    def refuse_unfinished(self) -> int:
        """Answers the calls in flight and cancels them. Returns how many there were."""
        unfinished = sum(connection.refuse_unfinished() for connection in list(self.connections))
        for task in self.tasks:
            task.cancel()
        return unfinished

    def check_timeouts(self) -> None:
        """To be called once a second. Idle connections are closed sooner when half of the connections are in use."""
        crowded = len(self.connections) > self.max_connections // 2
        for connection in list(self.connections):
            connection.check_timeouts(HEAD_SECONDS if crowded else KEEP_ALIVE_SECONDS)


class _TooManyHeaders(Exception):
    pass


class Connection(HttpToolsProtocol):
    """Stands between uvicorn's request cycles and the transport, so that closing can linger."""

    server_state: WorkerState

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # as uvicorn passes them
        super().__init__(*args, **kwargs)
        self._socket: asyncio.Transport
        self.address: str | None = None  # counted by the limit per address
        self._idle_seconds = 0  # since the last progress; since its beginning for a head or a body
        self._unsent = 0  # bytes in the write buffer a second ago
        self._received = 0  # bytes since the last request began or ended, without the content of a body being read
        self._in_head = False
        self._discarding = False  # further input is thrown away
        self._finished = False  # nothing more will be sent
        self._stopping = False
        self._running: RequestResponseCycle | None = None  # being answered; self.cycle is the newest one
        self._expects_head = False  # the next write of the running cycle is the head of its answer
        self._head: bytes | None = None  # held back, to be sent in one packet with the beginning of the body

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._socket = transport
        if len(self.connections) >= self.server_state.max_connections or not self._has_room(transport):
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self.transport = cast(asyncio.Transport, self)

    def _has_room(self, transport: asyncio.Transport) -> bool:
        """Whether the client's address may have another connection. Clients of a Unix socket have no address."""
        peer = transport.get_extra_info("peername")
        if self.address is None and isinstance(peer, tuple):  # else it was counted before the handshake of TLS
            self.address = peer[0] if self.server_state.opened(peer[0]) else None
            return self.address is not None
        return True

    def release_address(self) -> None:
        if self.address is not None:
            self.server_state.closed(self.address)
            self.address = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.release_address()
        self.pipeline.clear()
        self._head = None
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        # Without reference cycles the connection is freed at once, without the garbage collector.
        self.transport = self._socket
        self.cycle = self._running = self.scope = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._discarding:
            if self._received > _MAX_DISCARDED_BYTES:
                self.flow.pause_reading()
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(431 if isinstance(error.__context__, _TooManyHeaders) else self._or_too_long(400))
        else:
            if self._received > _MAX_HEAD_BYTES:
                self._refuse_large_input()

    # Called by the parser.

    def on_message_begin(self) -> None:
        self._in_head = True
        self._idle_seconds = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.rstrip(b" \t"))  # the parser strips whitespace only before a value

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if len(self.headers) > _MAX_HEADERS:
            raise _TooManyHeaders
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise OverflowError
        super().on_headers_complete()
        self._in_head = False
        self._received = self._idle_seconds = 0
        self.headers = []  # trailers must not be added to the headers of the request

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if cycle.response_complete:
            return
        self._received -= len(body)
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._received = 0
        self.cycle.more_body = False
        self.cycle.message_event.set()

    # Called by the request cycles.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        self._running = cycle
        self._expects_head = True
        if self.server_state.draining:
            self.drain()
        super()._start_asgi_task(cycle, app)

    def write(self, data: bytes) -> None:
        if self._expects_head and self._running is not None and self._running.response_started:
            self._expects_head = False
            self._head = data
        elif self._head is None:
            self._socket.write(data)
        else:
            head, self._head = self._head, None
            self._socket.writelines((head, data))

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._socket.write(head)

    def on_response_complete(self) -> None:
        self._flush()
        self.server_state.total_requests += 1
        self._idle_seconds = 0
        if self.is_closing():
            return
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if not self.pipeline:
            self.flow.resume_reading()
        if self.cycle.more_body and self.cycle.response_complete:
            self._received = 0
            if self.expect_100_continue:  # the body may never come, and the next request must not be taken for it
                self._linger()

    def is_closing(self) -> bool:
        return self._finished or self._socket.is_closing()

    def close(self) -> None:
        """Lingers if input is unread: closing would make the kernel drop the answer."""
        self._flush()
        if self._discarding or (self.cycle is not None and self.cycle.more_body):
            self._linger()
        else:
            self._socket.close()

    # Called by the server.

    def drain(self) -> None:
        """Closes the connection with the answer being made, unless further requests have been received."""
        if self._running is not None and not self.pipeline:
            self._running.keep_alive = False

    def refuse_unfinished(self) -> bool:
        """Whether a call was refused; an answer that has begun is cut off."""
        cycle = self._running
        if cycle is None or cycle.response_started:
            self._socket.abort()
            return False
        cycle.disconnected = True
        cycle.message_event.set()
        may_be_executed = cycle.scope["method"] not in ("GET", "HEAD") and not cycle.more_body
        self._send_refusal(500 if may_be_executed else 502)
        return True

    def shutdown(self) -> None:
        self._stopping = True
        if self._finished:
            self._socket.abort()
        else:
            super().shutdown()

    def check_timeouts(self, keep_alive_seconds: int) -> None:
        self._idle_seconds += 1
        unsent = self._socket.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._idle_seconds = unsent, 0
        if unsent:
            if self._idle_seconds > SLOW_CLIENT_SECONDS:
                self._socket.abort()
        elif self.is_closing():
            if self._idle_seconds > LINGER_SECONDS:
                self._socket.abort()
        elif self._running is None:
            if self._idle_seconds > HEAD_SECONDS:
                self._socket.close()
        elif not self._running.response_complete:
            if not self._running.more_body:
                self._idle_seconds = 0
            elif self._idle_seconds > BODY_SECONDS:
                self._refuse(400)
        elif self.cycle.more_body:
            if self._idle_seconds > LINGER_SECONDS:
                self._linger()
        elif self._idle_seconds > (HEAD_SECONDS if self._in_head else keep_alive_seconds):
            self._socket.close()

    # Closing and refusing.

    def _linger(self) -> None:
        """Sends the end of the stream, then discards input for a moment until the client closes."""
        if self._stopping:
            self._socket.close()
        elif not self.is_closing():
            self._discarding = self._finished = True
            self._idle_seconds = self._received = 0
            self.flow.resume_reading()
            if self._socket.can_write_eof():
                self._socket.write_eof()
            else:  # TLS discards input, too, until the client closes
                self._socket.close()

    def _refuse_large_input(self) -> None:
        if self._in_head or self.cycle is None:  # empty lines begin no request
            self._refuse(self._or_too_long(431))
        elif self.cycle.response_complete:
            self._linger()
        else:  # chunk extensions or trailers: the content of bodies is not counted
            self._refuse(400)

    def _or_too_long(self, status: int) -> int:
        """414 if the parser failed on an overlong address."""
        return 414 if self._in_head and len(self.url) > MAX_REQUEST_TARGET_LENGTH else status

    def _refuse(self, status: int) -> None:
        """Ends a connection with unreadable input, after the answers to earlier requests."""
        self._discarding = True
        cycle = self._running
        if cycle is None or (cycle.response_complete and not self.cycle.more_body):
            self._send_refusal(status)
        elif cycle.response_complete:  # only the rest of its body was outstanding
            self._linger()
        elif cycle is self.cycle and cycle.more_body and not cycle.response_started:
            cycle.disconnected = True  # the application must not wait for the rest of the body
            cycle.message_event.set()
            self._send_refusal(status)
        else:
            if self.pipeline and self.cycle.more_body:
                self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else cycle
            self.cycle.keep_alive = False

    def _send_refusal(self, status: int) -> None:
        ours = encoded_headers(self.server_state.default_headers)
        self._socket.write(b"".join([STATUS_LINE[status], ours, self.server_state.refusals[status]]))
        self._linger()

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Reads the request again without its Upgrade header: the parser takes all further input for the new
        protocol."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(400)
            return
        fields = encoded_headers(field for field in self.headers if field[0] != b"upgrade")
        version = self.parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does; we discard that data
        self._received = 0
        self.data_received(b"".join([method, b" ", self.url, b" HTTP/", version, b"\r\n", fields, b"\r\n", rest]))


def encoded_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % field for field in headers])
