"""A service that is told to stop: it drains, finishes what is in flight, and refuses the rest."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port

_APP = """
import asyncio

class App:
    state = "ready"

    def on_drain(self):
        self.state = "stopping"

    def on_close(self):
        self.state = "closed"

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["path"] == "/never":
            await asyncio.Event().wait()
        while scope["path"] == "/until-closed" and self.state != "closed":
            await asyncio.sleep(0.01)
        body = self.state.encode()
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

def create(_on_database_down):
    return App()
"""
_PROGRAM = """
from frontdesk.serving import serve
from frontdesk.settings import load_settings
serve(load_settings(), lambda: lambda: print("ready", flush=True), "draining:create")
"""


@contextmanager
def _served(folder: Path, port: int, drain_seconds: int) -> Iterator[subprocess.Popen[str]]:
    (folder / "draining.py").write_text(_APP)
    settings = {
        "FRONTDESK_PORT": str(port),
        "FRONTDESK_DRAIN_SECONDS": str(drain_seconds),
        "FRONTDESK_SHUTDOWN_SECONDS": "3",
        "FRONTDESK_DATA_DIR": str(folder),
    }
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": str(folder), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def _connection(port: int) -> "closing[http.client.HTTPConnection]":
    return closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60))


def _get(connection: http.client.HTTPConnection, path: str = "/") -> tuple[str, str | None]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.read().decode(), answer.getheader("connection")


def _is_refused(port: int) -> bool:
    with _connection(port) as connection:
        try:
            connection.connect()
        except ConnectionRefusedError:
            return True
        return False


def test_a_terminated_service_drains_finishes_calls_and_refuses_the_rest(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, port, drain_seconds=600) as process, ExitStack() as stack:
        slow, endless, posted, unsent, *kept = [stack.enter_context(_connection(port)) for _ in range(12)]
        for connection in kept:
            assert _get(connection) == ("ready", None)
        slow.request("GET", "/until-closed")
        endless.request("GET", "/never")
        posted.request("POST", "/never", b"{}")
        unsent.putrequest("POST", "/never")
        unsent.putheader("Content-Length", "2")
        unsent.endheaders()
        _get(kept[0])  # all have been received
        process.send_signal(signal.SIGTERM)

        def is_draining() -> bool:
            with _connection(port) as new:
                return _get(new) == ("stopping", "close")

        wait_until(is_draining)
        for connection in kept[1:]:  # the last answer on a kept connection tells the client to close it
            assert _get(connection) == ("stopping", "close")
        process.send_signal(signal.SIGINT)  # ends the drain: by itself it could end before a slow test has looked
        wait_until(lambda: _is_refused(port))
        answer = slow.getresponse()
        assert (answer.status, answer.read(), answer.getheader("connection")) == (200, b"closed", "close")
        for not_executed in (endless, unsent):
            answer = not_executed.getresponse()
            answered = (answer.status, answer.getheader("retry-after"), answer.getheader("connection"))
            assert answered == (502, "2", "close")
            assert b'"code":"upstream_unavailable"' in answer.read()
        answer = posted.getresponse()
        assert (answer.status, answer.getheader("retry-after"), answer.getheader("connection")) == (500, None, "close")
        problem = json.load(answer)
        assert problem["code"] == "internal"
        assert "If the request was a write, it may have been executed" in problem["detail"], "a read may be a POST, too"
        assert process.wait(60) == 0
        assert process.stderr is not None
        logged = process.stderr.read()
        assert '"calls":3' in logged
        assert "Traceback" not in logged


def test_a_drain_ends_by_itself(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, port, drain_seconds=1) as process, _connection(port) as slow, _connection(port) as other:
        slow.request("GET", "/until-closed")
        assert _get(other) == ("ready", None)
        process.send_signal(signal.SIGTERM)
        assert slow.getresponse().read() == b"closed"
        assert process.wait(60) == 0


def test_an_interrupt_ends_the_drain(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, port, drain_seconds=600) as process, _connection(port) as slow, _connection(port) as other:
        slow.request("GET", "/until-closed")
        assert _get(other) == ("ready", None)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert slow.getresponse().read() == b"closed"
        assert process.wait(60) == 0
