"""The guard: parent process of the embedded PostgreSQL, run as a script by `server.py`.

It starts the server, restarts it if it was killed while in use, and stops it after the last user. Users hold a shared
file lock, which the kernel releases however they end. If the guard is killed, the server ends with it on Linux;
elsewhere it has to be stopped by hand. Processes that hang or are left behind are found through /proc, on Linux only.
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
from typing import Any, TypedDict

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
FAST_SECONDS = 10.0  # for a fast shutdown, which writes a checkpoint; without it the next start recovers from the log
IMMEDIATE_SECONDS = 6.0  # PostgreSQL kills its own processes after five


class Order(TypedDict):
    """What `server.py` asks for, as JSON."""

    command: list[str]
    environment: dict[str, str]
    account: dict[str, Any]  # options of `subprocess.Popen`
    descriptors: list[int]
    users_lock: str
    server_lock: str
    cluster: str
    seconds: tuple[float, float]
    leftovers: list[str]


def server_processes(cluster: str) -> dict[int, bool]:
    """The processes of the server with this `cluster_name`, and whether each is the postmaster."""
    found: dict[int, bool] = {}
    for entry in os.listdir("/proc") if sys.platform == "linux" else ():  # noqa: PTH208 (as below: no pathlib)
        with suppress(ValueError, OSError):
            pid = int(entry)
            with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/cmdline", "rb") as command:  # noqa: PTH123
                name, line = comm.read(), command.read()
            if name == "postgres\n" and cluster.encode() in line:
                found[pid] = f"--cluster_name={cluster}".encode() in line.split(b"\0")  # the others changed their title
    return found


def end_server(cluster: str, waited: float, fast: float, immediate: float) -> None:
    """End a server that was told to end `waited` seconds ago, or what a dead one left behind, by the means due now."""
    processes = server_processes(cluster)
    postmasters = [pid for pid, is_postmaster in processes.items() if is_postmaster]
    number, pids = signal.SIGKILL, list(processes)
    if postmasters and waited < fast + immediate:
        number, pids = signal.SIGQUIT, postmasters if waited >= fast else []
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def launch(order: Order) -> subprocess.Popen[bytes]:
    """Start the server once every process of the previous one is gone.

    All processes of a server inherit this lock, so files left behind are known to be stale. PostgreSQL would refuse to
    start if a process number in them had been reused.
    """
    lock = os.open(order["server_lock"], os.O_RDWR)
    try:
        while not locked(lock):
            end_server(order["cluster"], 0.0, *order["seconds"])  # orphans: their postmaster is dead
            time.sleep(0.05)
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


def locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stop(server: subprocess.Popen[bytes], order: Order) -> None:
    fast, immediate = order["seconds"]
    for number, seconds in ((signal.SIGINT, fast), (signal.SIGQUIT, immediate)):
        server.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(seconds)
            break
    else:
        server.kill()
        server.wait()
    end_server(order["cluster"], 0.0, fast, immediate)


def watch(order: Order) -> None:
    for name in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: None)  # a signal to the whole process group leaves the users time to finish
    users = os.open(order["users_lock"], os.O_RDWR)
    while True:
        server = launch(order)
        while server.poll() is None:
            if locked(users):  # by nobody else: the last user is gone
                stop(server, order)
                return
            time.sleep(0.1)
        if server.returncode >= 0:  # it gave up; its log says why
            return
        time.sleep(0.2)


if __name__ == "__main__":
    if os.fork() == 0:  # detached, so that the starting process need not wait
        watch(json.loads(sys.argv[1]))
