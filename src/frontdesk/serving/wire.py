"""HTTP/1.1 on a connection: uvicorn's protocol, with the limits that it leaves to others.

Time, size and number of everything that comes before a call is handed over are bounded here: heads, what is no body
between them, requests that wait for their turn, connections. What hands over nothing more is closed, so that the other
side can still read its last answer. All of it is counted while data passes, and looked at once a second for all
connections together: nothing is timed for a single request.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from frontdesk.doors.gateway import LONGEST_ADDRESS

HEAD_SECONDS = 10
# Longer than the minute for which proxies and pools of clients commonly keep a connection: they should be the ones to
# close it, or a request can meet its end.
IDLE_SECONDS = 75
_LINGER_SECONDS = 2
STALLED_SECONDS = 30
_LARGEST_HEAD = 64 * 1024
_LARGEST_REST = 1024 * 1024  # of what is thrown away before a connection is closed
_MOST_FIELDS = 100
_MOST_WAITING = 100  # requests of one connection


class WireState(ServerState):
    """What the connections of a worker share."""

    connections: set["Wire"]  # type: ignore[assignment]

    def __init__(self, room: int, refusals: Mapping[int, bytes]) -> None:
        """`refusals` are headers and bodies of the answers that are given here, by status: 400, 414 and 431."""
        super().__init__()
        self.room = room
        self.refusals = refusals

    def grow_older(self) -> None:
        """Once a second. Whoever says nothing has to go sooner where others may need the room."""
        idle_seconds = HEAD_SECONDS if len(self.connections) > self.room // 2 else IDLE_SECONDS
        for connection in list(self.connections):
            connection.grow_older(idle_seconds)


class _TooManyFields(Exception):  # noqa: N818 - a refusal
    pass


class Wire(HttpToolsProtocol):
    """A connection, which requests' cycles take for their transport: writing and closing go through it."""

    server_state: WireState

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._socket: asyncio.Transport
        self._age = 0  # seconds since something happened that counts
        self._unsent = 0  # bytes, a second ago
        self._taken = 0  # bytes since the last request ended that are not of a body which somebody waits for
        self._in_head = False
        self._deaf = False  # what still comes is thrown away
        self._ending = False  # nothing more will be sent
        self._stopping = False
        self._running: RequestResponseCycle | None = None  # whose turn it is; self.cycle is the newest

    # From the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._socket = transport
        if len(self.connections) >= self.server_state.room:
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self.transport = cast(asyncio.Transport, self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        # Without circles nothing of a connection waits for the garbage collector.
        self.transport = self._socket
        self.cycle = self._running = self.scope = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._taken += len(data)
        if self._deaf:
            if self._taken > _LARGEST_REST:
                self.flow.pause_reading()
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(431 if isinstance(error.__context__, _TooManyFields) else self._or_too_long(400))
        else:
            if self._taken > _LARGEST_HEAD:
                self._take_no_more()

    # From the parser.

    def on_message_begin(self) -> None:
        self._in_head = True
        self._age = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        value = value.rstrip(b" \t")  # the parser takes only what stands before a value for no part of it
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if len(self.headers) > _MOST_FIELDS:
            raise _TooManyFields
        if len(self.pipeline) >= _MOST_WAITING:
            raise OverflowError
        super().on_headers_complete()
        self._in_head = False
        self._taken = 0
        self.headers = []  # what stands behind the body must not be taken for what stood before it

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if cycle.response_complete:
            return
        self._taken -= len(body)
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._taken = 0
        self.cycle.more_body = False
        self.cycle.message_event.set()

    # From the requests' cycles.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def write(self, data: bytes) -> None:
        self._socket.write(data)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        self._age = 0
        if self.is_closing():
            return
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if not self.pipeline:
            self.flow.resume_reading()
        if self.cycle.more_body and self.cycle.response_complete:
            self._taken = 0
            if self.expect_100_continue:  # it may never come, and the next request must not be taken for it
                self._linger()

    def is_closing(self) -> bool:
        return self._ending or self._socket.is_closing()

    def close(self) -> None:
        """To close while something is unread would take the answer from the other side."""
        if self._deaf or (self.cycle is not None and self.cycle.more_body):
            self._linger()
        else:
            self._socket.close()

    # From the server.

    def shutdown(self) -> None:
        self._stopping = True
        if self._ending:
            self._socket.abort()
        else:
            super().shutdown()

    def grow_older(self, idle_seconds: int) -> None:
        """Once a second: what has waited too long is closed, and what does not want to be closed is aborted."""
        self._age += 1
        unsent = self._socket.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._age = unsent, 0
        if unsent:
            if self._age > STALLED_SECONDS:
                self._socket.abort()
        elif self.is_closing():
            if self._age > _LINGER_SECONDS:
                self._socket.abort()
        elif self._running is None:
            if self._age > HEAD_SECONDS:
                self._socket.close()
        elif not self._running.response_complete:
            self._age = 0
        elif self.cycle.more_body:
            if self._age > _LINGER_SECONDS:
                self._linger()
        elif self._age > (HEAD_SECONDS if self._in_head else idle_seconds):
            self._socket.close()

    # Endings.

    def _linger(self) -> None:
        """Says that nothing more comes, and waits a moment for the other side to close."""
        if self._stopping:
            self._socket.close()
        elif not self.is_closing():
            self._deaf = self._ending = True
            self._age = self._taken = 0
            self._socket.write_eof()
            self.flow.resume_reading()

    def _take_no_more(self) -> None:
        if self._in_head or self.cycle is None:  # empty lines begin no request
            self._refuse(self._or_too_long(431))
        elif self.cycle.response_complete:
            self._linger()
        else:  # it is not the body's content that is so large
            self._refuse(400)

    def _or_too_long(self, status: int) -> int:
        """An address that is far too long cannot even be read."""
        return 414 if self._in_head and len(self.url) > LONGEST_ADDRESS else status

    def _refuse(self, status: int) -> None:
        """What comes cannot be read any further: the connection ends, with an answer where it is one's turn."""
        self._deaf = True
        cycle = self._running
        if cycle is None or (cycle.response_complete and not self.cycle.more_body):
            self._answer(status)
        elif cycle.response_complete:  # only the rest of its body was waited for
            self._linger()
        elif cycle is self.cycle and cycle.more_body and not cycle.response_started:
            cycle.disconnected = True  # whoever works on it need not wait for its body
            cycle.message_event.set()
            self._answer(status)
        else:  # whatever was asked before it is answered first
            if self.pipeline and self.cycle.more_body:
                self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else cycle
            self.cycle.keep_alive = False

    def _answer(self, status: int) -> None:
        ours = encoded_headers(self.server_state.default_headers)
        self._socket.write(b"".join([STATUS_LINE[status], ours, self.server_state.refusals[status]]))
        self._linger()

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Nobody here speaks another protocol. The parser takes what follows the head for one, so that the request is
        read again without that wish."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(400)
            return
        fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        version = self.parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does: it is thrown away
        self._taken = 0
        self.data_received(b"".join([method, b" ", self.url, b" HTTP/", version, b"\r\n", *fields, b"\r\n", rest]))


def encoded_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % field for field in headers])
