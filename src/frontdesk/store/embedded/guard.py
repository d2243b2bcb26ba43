"""The guard: the parent of the embedded PostgreSQL, run as a file of its own by `server.py`.

Owns the life of the server process: it starts it, starts it again when it was killed while somebody still uses it, and
stops it when the last user is gone. Users hold a shared lock on one file; however they end, the kernel drops that lock.
A guard that is killed takes the server with it on Linux; elsewhere the server then has to be stopped by hand.
Refuses to hold any knowledge of PostgreSQL: what to run, as whom and with which files comes in as one JSON argument.
"""

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def launch(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start the server once every process of the previous one is gone.

    All processes of a server inherit the lock taken here, so that files it left behind are known to be stale:
    the process numbers in them may belong to strangers by now, and would make PostgreSQL refuse to start.
    """
    lock = os.open(order["server_lock"], os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in order["leftovers"]:
            with suppress(FileNotFoundError):
                os.unlink(leftover)  # noqa: PTH108 (pathlib would double the guard's start-up time)
        guard = os.getpid()

        def die_with_guard() -> None:
            if sys.platform == "linux":
                LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGINT)
                if os.getppid() != guard:
                    os._exit(1)

        return subprocess.Popen(  # noqa: S603 (the command comes from server.py)
            order["command"],
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=order["environment"],
            pass_fds=[lock, *order["descriptors"]],
            start_new_session=True,
            preexec_fn=die_with_guard,
            **order["account"],
        )
    finally:
        os.close(lock)


def unused(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def watch(order: dict[str, Any]) -> None:
    for name in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: None)  # a stop sent to everybody leaves the users time to finish
    users = os.open(order["users_lock"], os.O_RDWR)
    while True:
        server = launch(order)
        while server.poll() is None:
            if unused(users):
                server.send_signal(signal.SIGINT)
                server.wait()
                return
            time.sleep(0.1)
        if server.returncode >= 0:  # it gave up by itself, and its log says why
            return
        time.sleep(0.2)


if __name__ == "__main__":
    if os.fork() == 0:  # nobody's child: whoever started us need not wait for us
        watch(json.loads(sys.argv[1]))
