"""The guard: parent process of the embedded PostgreSQL, run as a script by `server.py`.

It starts the server, restarts it if it was killed while in use, and stops it after the last user. Users hold a shared
file lock, which the kernel releases however they end. If the guard is killed, the server ends with it on Linux;
elsewhere it has to be stopped by hand.
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

    All processes of a server inherit this lock, so files left behind are known to be stale. PostgreSQL would refuse to
    start if a process number in them had been reused.
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
        signal.signal(name, lambda *_: None)  # a signal to the whole process group leaves the users time to finish
    users = os.open(order["users_lock"], os.O_RDWR)
    while True:
        server = launch(order)
        while server.poll() is None:
            if unused(users):
                server.send_signal(signal.SIGINT)
                server.wait()
                return
            time.sleep(0.1)
        if server.returncode >= 0:  # it gave up; its log says why
            return
        time.sleep(0.2)


if __name__ == "__main__":
    if os.fork() == 0:  # detached, so that the starting process need not wait
        watch(json.loads(sys.argv[1]))
