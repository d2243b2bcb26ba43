"""What the tests of the embedded PostgreSQL share: folders for it, other processes that use it, looking at it."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from frontdesk.store.embedded import server
from frontdesk.store.embedded.account import Account, wheel_binaries
from frontdesk.store.embedded.server import LOGINS, OWNER_ROLE, EmbeddedPostgres

OURSELVES = Account()
SOURCE = Path(server.__file__).parents[3]

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 1 << 30

USER = """
import sys
from pathlib import Path
from frontdesk.store.embedded import cluster, server
server.SHORT_SOCKETS = Path(sys.argv[2])
if sys.argv[3] == "stays half made":
    cluster._run_alone = lambda *_: sys.stdin.read()
server.EmbeddedPostgres(Path(sys.argv[1])).start(progress=lambda step: print(step, flush=True))
print("ready", flush=True)
sys.stdin.read()
"""


def in_memory() -> Path | None:
    """A folder for servers: on a disk, creating and dropping a database takes five times the CPU time."""
    return MEMORY if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES else None


@contextmanager
def temporary_home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fd-", dir=in_memory()) as parent:
        yield Path(parent, "postgres")
        for lock in Path(parent).rglob("server.lock"):
            wait_until(lambda lock=lock: is_free(lock))  # type: ignore[misc]


@contextmanager
def copy_of(made: Path) -> Iterator[Path]:
    """A stopped server's folder of one's own: copying is quicker than creating."""
    with temporary_home() as home:
        subprocess.run(["cp", "-a", made, home], check=True)
        yield home


@contextmanager
def superuser_login() -> Iterator[None]:
    """Lets the superuser log in to servers that this process starts meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "LOGINS", (*LOGINS, "postgres"))
        yield


@contextmanager
def another_process(
    home: Path,
    python: str = sys.executable,
    account: Account = OURSELVES,
    sockets: Path | None = None,
    database: str = "is made",
) -> Iterator[subprocess.Popen[str]]:
    """A process that uses the server until it is told to end, or is killed with everything in its session. A new
    database can be one that "stays half made", however long one looks at it."""
    packages = wheel_binaries().parents[2]
    process = subprocess.Popen(
        [python, "-c", USER, str(home), str(sockets or home.parent), database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={"PYTHONPATH": f"{SOURCE}:{packages}", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath},
        start_new_session=True,
        **asdict(account),
    )
    with process:
        yield process


def until_ready(process: subprocess.Popen[str]) -> list[str]:
    """The steps the process reported before the server answered."""
    assert process.stdout is not None
    steps: list[str] = []
    for line in process.stdout:
        if line == "ready\n":
            return steps
        steps.append(line.strip())
    raise AssertionError(f"the process ended after {steps}")


def query(pg: EmbeddedPostgres, sql: str, role: str = OWNER_ROLE) -> str:
    command = [str(wheel_binaries() / "psql"), "-X", "-A", "-t", "-d", pg.dsn(role), "-c", sql]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.strip()


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def is_free(lock: Path) -> bool:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def server_pid(home: Path) -> int:
    """A server that is starting removes the file of the one before it, makes its own, and writes it a moment later."""
    text = ""

    def is_written() -> bool:
        nonlocal text
        with suppress(FileNotFoundError):
            text = (home / "data" / "postmaster.pid").read_text()
        return text != ""

    wait_until(is_written)
    return int(text.split("\n", 1)[0])


def is_stopped(home: Path) -> bool:
    return is_free(home / "server.lock") and not (home / "data" / "postmaster.pid").exists()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
