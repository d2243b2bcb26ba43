"""The HTTP server of a worker: uvicorn with our connections, and the problem documents for unreadable requests."""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import cast
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import HANDLED_SIGNALS

from frontdesk.access.limits.addresses import is_address
from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.domain.errors import BINDING, FieldError, Problem
from frontdesk.serving.connection import Connection, WorkerState, encoded_headers
from frontdesk.serving.tls import TlsCertificate, TlsListener
from frontdesk.settings import Settings
from frontdesk.web.responses import problem_answer

_BACKLOG = 4096
_CANCEL_SECONDS = 2.0
_TICKS_PER_SECOND = 10  # of uvicorn
_MALFORMED = "The request is not well-formed HTTP, or did not arrive in time."
_STRICT_TRANSPORT_SECURITY = ("strict-transport-security", "max-age=31536000")
_log = logging.getLogger(__name__)


def serve_http(
    bound: socket.socket,
    app: ASGIApp,
    settings: Settings,
    max_connections: int,
    certificate: TlsCertificate | None,
    *,
    on_started: Callable[[], None],
    beat: Callable[[], None],
) -> None:
    """Serves the application until the process is told to stop. Exits if the application cannot be started.

    `beat` is called every second while the event loop runs. The application may have `on_drain`, which is called when
    the process is told to stop, and `on_close`, which is called when the port closes.
    """
    config = uvicorn.Config(
        app,
        interface="asgi3",
        loop="uvloop",
        http=Connection,
        headers=_transport_security(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
    )
    per_address: ConnectionLimit | None = getattr(app, "connection_limit", None)
    if per_address is not None:  # an address must not be able to take all connections of a worker
        per_address.limit = min(per_address.limit, max(1, max_connections // 2))
    state = WorkerState(max_connections, _refusals(settings), per_address)
    _Server(config, settings, state, on_started, beat, certificate).run([bound])


class _Server(uvicorn.Server):
    server_state: WorkerState

    def __init__(
        self,
        config: uvicorn.Config,
        settings: Settings,
        state: WorkerState,
        on_started: Callable[[], None],
        beat: Callable[[], None],
        certificate: TlsCertificate | None,
    ) -> None:
        super().__init__(config)
        self._certificate = certificate
        self.server_state = state
        self._on_started = on_started
        self._beat = beat
        self._drain_seconds = settings.drain_seconds
        self._shutdown_seconds = settings.shutdown_seconds
        self._drains_since: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._certificate is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            listeners = [self._encrypted(bound, self._certificate) for bound in sockets or ()]
            self.servers += cast("list[asyncio.Server]", listeners)
        self._on_started()

    def _encrypted(self, bound: socket.socket, certificate: TlsCertificate) -> TlsListener:
        def create() -> Connection:
            return Connection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        return TlsListener(bound, _BACKLOG, certificate, self.server_state, create)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_SECOND == 0:
            self._beat()
            self.server_state.check_timeouts()
            if self._certificate is not None:
                self._certificate.reload_if_changed()
        return await super().on_tick(counter) and self._is_drained()

    def _is_drained(self) -> bool:
        if self._drains_since is None:
            self._drains_since = time.monotonic()
            self.server_state.drain()
            self._notify_app("on_drain")
        return time.monotonic() >= self._drains_since + self._drain_seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._notify_app("on_close")
        await super().shutdown(sockets)

    async def _wait_tasks_to_complete(self) -> None:
        try:
            async with asyncio.timeout(self._shutdown_seconds):
                await super()._wait_tasks_to_complete()
        except TimeoutError:
            tasks = list(self.server_state.tasks)
            calls = self.server_state.refuse_unfinished()
            _log.warning("Calls did not finish in time and were refused", extra={"calls": calls})
            if tasks:
                await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)

    def _notify_app(self, event: str) -> None:
        tell: Callable[[], None] | None = getattr(self.config.app, event, None)
        if tell is not None:
            tell()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Never forces an exit: counts and log lines are written before the process ends."""
        if sig == signal.SIGINT:  # somebody waits at a terminal
            self._drain_seconds = 0
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does not raise the signal again, as uvicorn would: the process ends by itself."""
        for number in HANDLED_SIGNALS:
            signal.signal(number, self.handle_exit)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        yield


def _transport_security(settings: Settings) -> list[tuple[str, str]]:
    """Wherever callers use https, also by way of a proxy. Not for this machine's own names, where it would bind every
    other server on the machine, too."""
    address = urlsplit(settings.public_url)
    host = address.hostname or ""
    if address.scheme != "https" or host == "localhost" or host.endswith(".localhost") or is_address(host):
        return []
    return [_STRICT_TRANSPORT_SECURITY]


def _refusals(settings: Settings) -> Mapping[int, bytes]:
    return {
        problem.status: _headers_and_body(problem, settings)
        for problem in (
            Problem("validation", _MALFORMED, status=400, errors=[FieldError("$", BINDING, _MALFORMED)]),
            Problem("payload_too_large", "The address of the request is too long.", status=414),
            Problem("payload_too_large", "The header fields of the request are too large or too many.", status=431),
            Problem(
                "internal",
                "The service stopped before the request was finished. If the request was a write, it may have been "
                "executed: check the state first, or resend it with the same confirmationToken or Idempotency-Key.",
            ),
            Problem("upstream_unavailable", "The service stopped before the request was finished.", retry_after=2),
        )
    }


def _headers_and_body(problem: Problem, settings: Settings) -> bytes:
    headers, body = problem_answer(problem, settings, None)
    return b"".join([encoded_headers([*headers, (b"connection", b"close")]), b"\r\n", body])
