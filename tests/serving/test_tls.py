"""TLS over real sockets: versions, certificates that change, slow and crowding handshakes."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from cryptography import x509

from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.cli.doctor import _port
from frontdesk.serving import tls
from frontdesk.serving.address import ServingError
from frontdesk.serving.connection import Connection, WorkerState
from frontdesk.serving.http_server import _transport_security
from frontdesk.serving.tls import TlsCertificate, TlsListener
from frontdesk.settings import Settings
from tests.security.raw_wire import next_answer
from tests.serving.authority import Authority
from tests.serving.test_connection import on_uvloop, until
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

APP = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    bodies = {"/large": b"x" * 300_000, "/readyz": b'{"status": "ready"}'}
    body = bodies.get(scope["path"], scope["scheme"].encode())
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

def create(_on_database_down):
    return app
"""
PROGRAM = """
from frontdesk.serving import serve
from frontdesk.settings import load_settings
serve(load_settings(), lambda: lambda: print("ready", flush=True), "tiny:create")
"""


@dataclass
class TlsServer:
    port: int
    folder: Path
    authority: Authority
    serial: int
    log: Path

    def connect(self, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return (context or self.authority.trusting()).wrap_socket(plain, server_hostname="desk.example.org")

    def serials(self) -> set[int]:
        """Of so many connections that each of two workers has some."""
        found = set()
        for _ in range(16):
            with self.connect() as wire:
                der = wire.getpeercert(binary_form=True)
                assert der is not None
                found.add(x509.load_der_x509_certificate(der).serial_number)
        return found

    def logged(self, text: str) -> int:
        return self.log.read_text().count(text)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    """Two workers on uvloop, without a database."""
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    authority, port = Authority(), free_port()
    certificate, key, serial = authority.issue(folder)
    (folder / "tiny.py").write_text(APP)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={
                **os.environ,
                **NO_DRAIN,
                "PYTHONPATH": str(folder),
                "FRONTDESK_PORT": str(port),
                "FRONTDESK_WORKERS": "2",
                "FRONTDESK_BASE_URL": f"https://desk.example.org:{port}",
                "FRONTDESK_TLS_CERTIFICATE": str(certificate),
                "FRONTDESK_TLS_KEY": str(key),
            },
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", (folder / "log").read_text()
    yield TlsServer(port, folder, authority, serial, folder / "log")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://desk.example.org", [("strict-transport-security", "max-age=31536000")]),  # a proxy ends its TLS
        ("http://desk.example.org", []),
        ("https://localhost:8443", []),
        ("https://192.0.2.7", []),
    ],
)
def test_answers_demand_https_wherever_the_address_has_it(address: str, expected: list[tuple[str, str]]) -> None:
    assert _transport_security(Settings(base_url=address)) == expected


def test_only_current_versions_of_tls_are_spoken_and_answers_demand_them(server: TlsServer) -> None:
    url = f"https://127.0.0.1:{server.port}"
    with httpx.Client(verify=server.authority.trusting(), base_url=url, timeout=30) as client:
        for path, length in (("/", 5), ("/large", 300_000)):
            answer = client.get(path)
            assert (answer.status_code, len(answer.content)) == (200, length)
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert client.get("/").text == "https"
    for version, spoken in ((ssl.TLSVersion.TLSv1_3, "TLSv1.3"), (ssl.TLSVersion.TLSv1_2, "TLSv1.2")):
        context = server.authority.trusting()
        context.minimum_version = context.maximum_version = version
        with server.connect(context) as wire:
            assert wire.version() == spoken
    old = server.authority.trusting()
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.connect(old)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{server.port}/")


def test_doctor_asks_a_service_that_terminates_tls(server: TlsServer) -> None:
    settings = Settings(port=server.port, tls_certificate=server.folder / "tls.crt", tls_key=server.folder / "tls.key")
    assert _port(settings) == ("ok", "frontdesk answers: ready")


def test_a_certificate_that_changes_is_used_and_a_broken_one_is_not(server: TlsServer) -> None:
    def is_answered() -> bool:
        kept.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while not received.endswith(b"https") and (piece := kept.recv(1000)):
            received += piece
        return received.startswith(b"HTTP/1.1 200")

    with server.connect() as kept:
        assert is_answered()  # from now on it may be idle for more than a minute
        assert server.serials() == {server.serial}
        _, key, newer = server.authority.issue(server.folder)
        wait_until(lambda: server.serials() == {newer})
        assert is_answered()
    whole = key.read_text()
    for broken in ("", whole[:100], (server.folder / "tls.crt").read_text()):
        refusals = server.logged("The new TLS certificate cannot be used")
        (server.folder / "broken").write_text(broken)
        (server.folder / "broken").rename(key)  # in one step, so that a worker sees one change
        wait_until(lambda before=refusals: server.logged("cannot be used") == before + 2)  # type: ignore[misc]
        assert server.serials() == {newer}
    assert whole[30:80] not in server.log.read_text()
    key.unlink()
    wait_until(lambda: server.logged("No such file") == 2)
    _, _, newest = server.authority.issue(server.folder)
    wait_until(lambda: server.serials() == {newest})


def test_a_pair_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "other").mkdir()
    certificate, key, _ = authority.issue(tmp_path)
    _, foreign, _ = authority.issue(tmp_path / "other")
    with pytest.raises(ServingError, match="the key does not belong to the certificate"):
        TlsCertificate(certificate, foreign)
    with pytest.raises(ServingError, match="No such file"):
        TlsCertificate(certificate, tmp_path / "none")
    authority.issue(tmp_path / "other", password=b"secret")
    with pytest.raises(ServingError, match="unencrypted PEM key"):
        TlsCertificate(tmp_path / "other" / "tls.crt", foreign)
    assert TlsCertificate(certificate, key)


@contextlib.asynccontextmanager
async def listening(folder: Path, state: WorkerState) -> AsyncIterator[tuple[int, Authority]]:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    authority = Authority()
    certificate = TlsCertificate(*authority.issue(folder)[:2])
    config = uvicorn.Config(app, interface="asgi3", http=Connection, lifespan="off", log_config=None, access_log=False)
    config.load()

    with socket.create_server(("127.0.0.1", 0)) as bound:
        create = lambda: Connection(config=config, server_state=state, app_state={})  # noqa: E731
        listener = TlsListener(bound, 100, certificate, state, create)
        try:
            yield bound.getsockname()[1], authority
        finally:
            listener.close()


def room_for(connections: int) -> WorkerState:
    return WorkerState(connections, {400: b"content-length: 0\r\n\r\n"}, ConnectionLimit(2, lambda _address: False))


def test_a_handshake_that_is_not_finished_ends_like_an_unfinished_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tls.HEAD_SECONDS == 10
    monkeypatch.setattr(tls, "HEAD_SECONDS", 0.2)

    async def scenario() -> None:
        state = room_for(10)
        async with listening(tmp_path, state) as (port, _):
            for sent in (b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(sent)
                with contextlib.suppress(ConnectionError):
                    await reader.read()  # until the server closes
                writer.close()
            await until(lambda: not state.handshakes)

    on_uvloop(scenario)


def test_handshakes_count_as_connections(tmp_path: Path) -> None:
    async def scenario() -> None:
        state = room_for(2)
        async with listening(tmp_path, state) as (port, authority):
            _, silent = await asyncio.open_connection("127.0.0.1", port)
            context = authority.trusting()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            await until(lambda: (len(state.handshakes), len(state.connections)) == (1, 1))
            with pytest.raises((ConnectionError, ssl.SSLError)):
                await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
            assert [(await next_answer(reader)).body for _ in range(2)] == [b"ok", b"ok"]
            silent.close()
            await until(lambda: not state.handshakes)
            state.max_connections = 10  # two of them for each address
            _, silent = await asyncio.open_connection("127.0.0.1", port)
            with pytest.raises((ConnectionError, ssl.SSLError)):
                await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.close()
            await until(lambda: not state.connections)
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            silent.close()
            writer.close()

    on_uvloop(scenario)


def test_the_answer_to_unreadable_input_arrives(tmp_path: Path) -> None:
    """A socket that is closed with unread input would lose it."""

    async def scenario() -> None:
        async with listening(tmp_path, room_for(10)) as (port, authority):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=authority.trusting())
            writer.write(b"\x00" * 300_000)
            assert (await next_answer(reader)).status == 400
            assert await reader.read() == b""
            writer.close()

    on_uvloop(scenario)


def test_a_pair_is_read_again_only_when_it_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    authority = Authority()
    pair = TlsCertificate(*authority.issue(tmp_path)[:2])
    pair.reload_if_changed()
    assert not caplog.records
    (tmp_path / "tls.key").write_text("broken")
    for _ in range(3):
        pair.reload_if_changed()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    authority.issue(tmp_path)
    pair.reload_if_changed()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
