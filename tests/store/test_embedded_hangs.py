"""Processes of the embedded PostgreSQL that hang do not keep it from ending, nor from starting again."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from frontdesk.store.embedded import server
from frontdesk.store.embedded.guard import server_processes
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.store.embedded_processes import copy_of, is_free, parent_of, query, server_pid, wait_until


@pytest.fixture(scope="module")
def pg(made_server: Path) -> Iterator[EmbeddedPostgres]:
    """A server in use; its guard and the next start wait for hanging processes for a short time only."""
    with pytest.MonkeyPatch.context() as patch, copy_of(made_server) as home:
        patch.setattr(server, "FAST_SECONDS", 0.5)
        patch.setattr(server, "IMMEDIATE_SECONDS", 0.5)
        pg = EmbeddedPostgres(home)
        pg.start()
        yield pg
        pg.stop()


def _stopped_process(pg: EmbeddedPostgres, title: bytes) -> int:
    """Stops the process with this title, as if it hung."""
    found = _titled(pg, title)
    os.kill(found, signal.SIGSTOP)
    return found


def _titled(pg: EmbeddedPostgres, title: bytes) -> int:
    """The process with this title, once it has given itself one."""
    found: list[int] = []

    def is_there() -> bool:
        for pid in server_processes(pg._cluster_name()):
            with suppress(OSError):  # another process of the server, which has ended meanwhile
                if title in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return bool(found)

    wait_until(is_there)
    (pid,) = found
    return pid


def test_a_server_that_does_not_end_by_itself_is_ended_and_started_again(pg: EmbeddedPostgres) -> None:
    query(pg, "CREATE TABLE kept AS SELECT 7 AS number")

    # A checkpointer that hangs: a fast shutdown waits for it without end.
    _stopped_process(pg, b"checkpointer")
    pg.stop()
    wait_until(lambda: is_free(pg.home / "guard.lock"))
    pg.start()
    assert query(pg, "SELECT number FROM kept") == "7"

    # During crash recovery and without a guard: the next start ends it.
    _stopped_process(pg, b"checkpointer")
    os.kill(_titled(pg, b"autovacuum launcher"), signal.SIGKILL)
    os.kill(parent_of(server_pid(pg.home)), signal.SIGKILL)
    pg.start()
    assert query(pg, "SELECT number FROM kept") == "7"


def test_a_backend_left_behind_by_a_killed_server_does_not_hold_up_the_next(pg: EmbeddedPostgres) -> None:
    killed = server_pid(pg.home)
    left = _stopped_process(pg, b"background writer")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: server_pid(pg.home) != killed and pg._accepts())
    assert left not in server_processes(pg._cluster_name())
    assert query(pg, "SELECT 1") == "1"
