"""Serving over HTTP: the server process and its workers.

Owns the listening address, the start and end of the workers, and the limits of the wire. Refuses to share a port with
another server, which the kernel alone would allow.
"""

import contextlib
import errno
import http.client
import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels

from frontdesk.settings import Settings

_HEADER_MILLISECONDS = 10_000
_HEADER_BYTES = 64 * 1024
_BACKLOG = 4096
_CONNECTIONS = 8192  # of one worker at a time: whoever opens many and says nothing leaves room for others
_OTHER_FILES = 256
_STOP_SECONDS = 3
_PORT_PATIENCE_SECONDS = 1.0  # the workers of a server that was killed need a moment to notice
_POLL_SECONDS = 0.01
_PARENT_CHECK_SECONDS = 0.2
_LOGGING = {
    "formatters": {"json": {"()": "frontdesk.logs.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {"_granian": {"handlers": ["stderr"], "propagate": False}},
}


class ServingError(Exception):
    """One sentence about why the service cannot be reached where it was asked to be."""


def free_address(host: str, port: int) -> str:
    """The numeric address to listen on, once nobody else listens there."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ServingError(f"{host} is no address of this machine: choose another with --host.") from None
    deadline = time.monotonic() + _PORT_PATIENCE_SECONDS
    while True:
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
                return str(address[0])
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                    raise ServingError(_why_not(error, host, port)) from None
        time.sleep(_POLL_SECONDS)


def _why_not(error: OSError, host: str, port: int) -> str:
    other = "choose another with --port or FRONTDESK_PORT"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use by another program: {other}."
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this account has: {other}."
    return f"{host} is no address of this machine: choose another with --host."


def serve(settings: Settings, address: str, on_ready: Callable[[], None]) -> None:
    """Serves until it is told to stop. Settings reach the workers through the environment."""
    server = Granian(
        target="frontdesk.worker",
        address=address,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_room(),
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MILLISECONDS, max_buffer_size=_HEADER_BYTES),
        log_level=LogLevels.warning,
        log_dictconfig=_LOGGING,
        respawn_failed_workers=True,
        workers_kill_timeout=_STOP_SECONDS,
    )
    threading.Thread(target=_when_ready, args=(address, settings.port, on_ready), daemon=True).start()
    try:
        server.serve(target_loader=worker_app, wrap_loader=False)
    except SystemExit:
        raise ServingError("The service could not be kept running; the lines above say why.") from None


def _room() -> int:
    """How many connections a worker may hold: fewer where this account may not open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _CONNECTIONS
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(_OTHER_FILES, allowed - _OTHER_FILES)


def worker_app() -> Any:
    """What a worker runs. It ends with its server, even one that was killed, so that the port is free again."""
    threading.Thread(target=_end_with_server, args=(os.getppid(),), daemon=True).start()
    from frontdesk.worker import create

    return create()


def _end_with_server(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


def _when_ready(address: str, port: int, on_ready: Callable[[], None]) -> None:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 - compared, not listened on
    while True:
        time.sleep(_POLL_SECONDS)
        connection = http.client.HTTPConnection(reachable, port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("GET", "/readyz")
            if connection.getresponse().status == http.HTTPStatus.OK:
                on_ready()
                return
