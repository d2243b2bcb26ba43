"""Keep-alive HTTP/1.1 connections to receivers, each for one host name at one address."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import cast

import httptools

from frontdesk.outbound.targets import Target

IDLE_SECONDS = 4.0  # less than the five seconds after which some servers close an idle connection
_MAX_IDLE = 4  # per receiver
_MAX_ANSWER_BYTES = 64 * 1024

Key = tuple[str, str, int, str]  # scheme, host, port and address: a certificate is checked for one host


class ReceiverError(Exception):
    """The receiver could not be reached, or what it answered is not HTTP."""


class ReceiverLostError(ReceiverError):
    """The connection ended before any part of an answer arrived."""


class Connections:
    def __init__(self, tls: Callable[[], Awaitable[ssl.SSLContext]]) -> None:
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._idle: dict[Key, list[_Connection]] = {}

    def kept(self, target: Target, address: str) -> "_Connection | None":
        """An idle connection to this host at this address."""
        idle = self._idle.get(_key(target, address), [])
        return idle[-1] if idle else None

    async def open(self, target: Target, address: str) -> "_Connection":
        loop, tls = asyncio.get_running_loop(), target.scheme == "https"
        if tls and self._context is None:
            self._context = await self._tls()
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(_key(target, address), self._idle),
                address,
                target.port,
                ssl=self._context if tls else None,
                server_hostname=target.host if tls else None,
            )
        except OSError as error:
            raise ReceiverError from error
        return connection

    def close(self) -> None:
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            connection.close()


class _Connection(asyncio.Protocol):
    """Sends one request at a time. It becomes idle when the answer is complete, unless either side wants to close."""

    def __init__(self, key: Key, idle: dict[Key, list["_Connection"]]) -> None:
        self._key = key
        self._idle = idle
        self._status: asyncio.Future[int] | None = None
        self._received = 0
        self._expiry: asyncio.TimerHandle | None = None

    async def post(self, request: bytes) -> int:
        """The status of the answer; its content is not looked at."""
        self._leave_idle()
        if self._transport.is_closing():
            raise ReceiverLostError
        self._received, self._parser = 0, httptools.HttpResponseParser(self)
        self._status = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._status
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        self._leave_idle()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._status is None:  # nothing was asked
            self.close()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(ReceiverError())
        if self._received > _MAX_ANSWER_BYTES:
            self._fail(ReceiverError())

    def connection_lost(self, _error: Exception | None) -> None:
        self._fail(ReceiverError() if self._received else ReceiverLostError())

    def on_message_begin(self) -> None:
        if self._status is None:  # a second answer
            self.close()

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and self._status is not None and not self._status.done():
            self._status.set_result(status)
            self._expire()  # unless the rest of the answer arrives

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:  # an interim answer
            return
        self._status = None
        idle = self._idle.setdefault(self._key, [])
        if self._parser.should_keep_alive() and len(idle) < _MAX_IDLE and not self._transport.is_closing():
            idle.append(self)
        else:
            self.close()

    def _expire(self) -> None:
        self._expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.close)

    def _leave_idle(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        idle = self._idle.get(self._key, [])
        if self in idle:
            idle.remove(self)
        if not idle:
            self._idle.pop(self._key, None)

    def _fail(self, error: ReceiverError) -> None:
        if self._status is not None and not self._status.done():
            self._status.set_exception(error)
        self.close()


def _key(target: Target, address: str) -> Key:
    return target.scheme, target.host, target.port, address
