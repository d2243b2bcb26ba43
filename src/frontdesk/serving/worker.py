"""A worker process: imports the application, waits for the supervisor's go, and serves until it is told to stop.

python -P -m frontdesk.serving.worker ADDRESS PORT MODULE:FUNCTION SOCKET
"""

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import resource
import socket
import sys
import threading

from frontdesk.privileges import AccountError, drop_root_privileges, protect_process
from frontdesk.serving.address import ServingError, shared_socket
from frontdesk.serving.supervisor import BEAT, DATABASE_DOWN, GO, READY
from frontdesk.settings import load_settings

_MAX_CONNECTIONS = 8192
_OTHER_FILES = 256
_CANNOT_START = 3
_log = logging.getLogger(__name__)


def main(address: str, port: str, factory: str, descriptor: str) -> int:
    protect_process()
    supervisor = socket.socket(fileno=int(descriptor))
    supervisor.set_inheritable(False)
    gc.disable()  # imports leave no garbage worth collecting
    module, _, function = factory.partition(":")
    create = getattr(importlib.import_module(module), function)
    from frontdesk.logs import configure_logging
    from frontdesk.serving.http_server import serve_http
    from frontdesk.serving.tls import certificate_of

    if supervisor.recv(1) != GO:
        return 0
    threading.Thread(target=_exit_with, args=(supervisor,), daemon=True).start()
    settings = load_settings()
    configure_logging(settings.log_level)
    logging.getLogger("uvicorn.error").addFilter(_is_logged)
    try:
        bound = shared_socket(address, int(port))
        drop_root_privileges()
        certificate = certificate_of(settings)
        app = create(lambda: _report(supervisor, DATABASE_DOWN))
    except (AccountError, ServingError) as error:
        _log.error("A worker could not start: %s", error)
        return _CANNOT_START
    except Exception:
        _log.exception("A worker could not start")
        return _CANNOT_START
    gc.enable()
    serve_http(
        bound,
        app,
        settings,
        _max_connections(),
        certificate,
        on_started=lambda: supervisor.sendall(READY),
        beat=lambda: _report(supervisor, BEAT),
    )
    return 0


def _report(supervisor: socket.socket, message: bytes) -> None:
    with contextlib.suppress(OSError):  # a full buffer holds enough of these
        supervisor.send(message, socket.MSG_DONTWAIT)


def _exit_with(supervisor: socket.socket) -> None:
    """Ends the worker with its supervisor, even a killed one, so that the port is free again."""
    with contextlib.suppress(OSError):
        while supervisor.recv(1):
            pass
    os._exit(1)


def _is_logged(record: logging.LogRecord) -> bool:
    """Drops cancelled calls. Replaces uvicorn's traceback text, which quotes values, by the exception."""
    if record.getMessage().startswith("Traceback"):
        record.msg, record.args, record.exc_info = "The service could not be opened or closed", None, sys.exc_info()
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, asyncio.CancelledError)


def _max_connections() -> int:
    """As many as the limit of open files allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_CONNECTIONS + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _MAX_CONNECTIONS
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(_OTHER_FILES, allowed - _OTHER_FILES)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
