"""Workers that hang: found by their silence, killed and replaced."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from frontdesk.serving.heartbeats import HUNG_SECONDS, Heartbeats
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

_SUPERVISOR = """
import sys
from frontdesk.serving import heartbeats, serve
from frontdesk.settings import Settings
heartbeats.HUNG_SECONDS = 4.0
serve(Settings(port=int(sys.argv[1])), lambda: lambda: print("ready", flush=True), "telling:create")
"""
_TELLING = """
import os
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

def create(on_database_down):
    return Starlette(routes=[Route("/", lambda request: PlainTextResponse(str(os.getpid())))])
"""


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_worker_hangs_if_it_is_silent_while_the_supervisor_runs() -> None:
    clock = _Clock()
    heartbeats = Heartbeats(clock)
    heartbeats.record(1)
    heartbeats.record(2)
    for _ in range(int(HUNG_SECONDS)):
        assert heartbeats.hung() == set()
        clock.now += 1
        heartbeats.record(2)
    assert heartbeats.hung() == {1}
    heartbeats.forget(1)
    assert heartbeats.hung() == set()


def test_nobody_hangs_because_the_supervisor_was_stopped() -> None:
    clock = _Clock()
    heartbeats = Heartbeats(clock)
    heartbeats.record(1)
    clock.now += 3600
    assert heartbeats.hung() == set()


@contextmanager
def _serving(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    (folder / "telling.py").write_text(_TELLING)
    with subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR, str(port)],
        env={**os.environ, "PYTHONPATH": str(folder), **NO_DRAIN, "FRONTDESK_DATA_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.terminate()
            process.wait(30)


def _answer(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/")
    return int(connection.getresponse().read())


def test_a_stopped_worker_is_replaced_and_its_connections_are_closed(tmp_path: Path) -> None:
    port = free_port()

    def is_answered_by_another() -> bool:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as other:
            try:
                return _answer(other) != worker
            except (OSError, http.client.HTTPException):
                return False

    with (
        _serving(tmp_path, port) as process,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection,
    ):
        worker = _answer(connection)
        os.kill(worker, signal.SIGSTOP)
        connection.request("GET", "/")
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            connection.getresponse()
        wait_until(is_answered_by_another)
        process.terminate()
        assert process.stderr is not None
        assert "A worker does not respond and is replaced" in process.stderr.read()
