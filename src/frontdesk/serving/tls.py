"""TLS of a worker: the certificate, which is loaded again when its files change, and handshakes within the limits."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from frontdesk.serving.address import ServingError
from frontdesk.serving.connection import HEAD_SECONDS, LINGER_SECONDS, Connection, WorkerState
from frontdesk.settings import Settings

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2
_log = logging.getLogger(__name__)
_MAX_ACCEPTED_PER_TURN = 100
_PAUSE_SECONDS = 1.0
_Create = Callable[[], Connection]
_Version = tuple[tuple[int, int, int], ...]


class TlsCertificate:
    """The certificate chain and the key of the service."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate, self._key = certificate, key
        self._version = self._read_version()
        try:
            self._current = self._load()
        except OSError as error:
            raise ServingError(
                f"The TLS certificate {certificate} and key {key} cannot be used: {reason(error)}."
            ) from None
        # Connections get the current context with their first message, and keep it.
        self.context = _context()
        self.context.sni_callback = self._use_current

    def reload_if_changed(self) -> None:
        """Keeps the old pair if the new one cannot be used. To be called once a second."""
        version = self._read_version()
        if version == self._version:
            return
        self._version = version
        try:
            self._current = self._load()
        except OSError as error:
            _log.error("The new TLS certificate cannot be used, the old one stays: %s", reason(error))
        else:
            _log.info("The TLS certificate was loaded again")

    def _load(self) -> ssl.SSLContext:
        context = _context()
        context.load_cert_chain(self._certificate, self._key, password="")  # never asks at the terminal
        return context

    def _use_current(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _read_version(self) -> _Version:
        found = []
        for path in (self._certificate, self._key):
            try:
                status = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(found)


def certificate_of(settings: Settings) -> TlsCertificate | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return TlsCertificate(settings.tls_certificate, settings.tls_key)


def reason(error: OSError) -> str:
    """Without the text of the library, which may quote the file."""
    if not isinstance(error, ssl.SSLError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate"
    return "they are not a PEM certificate and an unencrypted PEM key"


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # Tickets of one worker are of no use to another.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


class TlsListener:
    """Accepts connections. Those in a handshake count towards the worker's connections."""

    def __init__(
        self, bound: socket.socket, backlog: int, certificate: TlsCertificate, state: WorkerState, create: _Create
    ) -> None:
        self._bound = bound
        self._context = certificate.context
        self._state = state
        self._create = create
        self._loop = asyncio.get_running_loop()
        bound.setblocking(False)
        bound.listen(backlog)
        self._resume()

    def close(self) -> None:
        self._loop.remove_reader(self._bound)
        for handshake in self._state.handshakes:
            handshake.cancel()

    async def wait_closed(self) -> None:
        """As the server asks of its listeners."""

    def _resume(self) -> None:
        if self._bound.fileno() != -1:
            self._loop.add_reader(self._bound, self._accept)

    def _accept(self) -> None:
        for _ in range(_MAX_ACCEPTED_PER_TURN):
            try:
                accepted, (address, *_) = self._bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no more files, for example
                _log.error("A connection could not be accepted: %s", error.strerror)
                self._loop.remove_reader(self._bound)
                self._loop.call_later(_PAUSE_SECONDS, self._resume)
                return
            if self._state.is_full() or not self._state.opened(address):
                accepted.close()
                continue
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handshake = self._loop.create_task(self._encrypt(accepted, address))
            self._state.handshakes.add(handshake)
            handshake.add_done_callback(self._state.handshakes.discard)

    async def _encrypt(self, accepted: socket.socket, address: str) -> None:
        connection, is_made = self._create(), False
        connection.address = address
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=HEAD_SECONDS,
                ssl_shutdown_timeout=LINGER_SECONDS,
            )
            is_made = True
        except OSError:  # the client left, was too slow or speaks something else
            pass
        finally:
            if not is_made:
                connection.release_address()
