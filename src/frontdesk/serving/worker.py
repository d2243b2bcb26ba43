"""A worker: imports what it serves, waits until it may open it, and serves it until it is told to stop.

    python -P -m frontdesk.serving.worker ADDRESS PORT MODULE:FUNCTION SOCKET

It ends with its server, even one that was killed, so that the port is free again.
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

from frontdesk.serving.address import shared_socket
from frontdesk.serving.supervisor import GO, READY
from frontdesk.settings import load_settings

_CONNECTIONS = 8192  # of one worker at a time: whoever opens many and says nothing leaves room for others
_OTHER_FILES = 256
_CANNOT_START = 3
_log = logging.getLogger(__name__)


def main(address: str, port: str, factory: str, descriptor: str) -> int:
    server = socket.socket(fileno=int(descriptor))
    server.set_inheritable(False)
    gc.disable()  # what is imported stays: looking for garbage in it only takes time
    module, _, function = factory.partition(":")
    create = getattr(importlib.import_module(module), function)
    from frontdesk.logs import configure_logging
    from frontdesk.serving.listening import listen

    if server.recv(1) != GO:
        return 0
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()
    settings = load_settings()
    configure_logging(settings.log_level)
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
    try:
        bound = shared_socket(address, int(port))
        app = create()
    except Exception:
        _log.exception("A worker could not start")
        return _CANNOT_START
    gc.enable()
    listen(bound, app, settings, _room(), on_started=lambda: server.sendall(READY))
    return 0


def _end_with(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while server.recv(1):
            pass
    os._exit(1)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """A call that was cut off at the end of the process is no fault. The traceback of what failed to open or to close
    comes as text, which quotes values: where it was raised is told instead."""
    if record.getMessage().startswith("Traceback"):
        record.msg, record.args, record.exc_info = "The service could not be opened or closed", None, sys.exc_info()
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, asyncio.CancelledError)


def _room() -> int:
    """How many connections a worker may hold: fewer where this account may not open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _CONNECTIONS
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(_OTHER_FILES, allowed - _OTHER_FILES)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
