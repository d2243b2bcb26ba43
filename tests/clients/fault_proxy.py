"""A loopback proxy between client and service that does to chosen requests what networks do."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

_NOT_FORWARDED = {"connection", "host", "content-length", "transfer-encoding"}
_DRIP_SECONDS = 0.1


@dataclass(frozen=True)
class Seen:
    """A request as the client sent it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


Pass = Callable[[], httpx.Response]
Fault = Callable[["_Handler", Pass], None]


def cut_before(_handler: "_Handler", _pass_on: Pass) -> None:
    """The request never arrives."""


def cut_after(_handler: "_Handler", pass_on: Pass) -> None:
    """The request arrives, and its answer is lost."""
    pass_on()


def cut_inside(handler: "_Handler", pass_on: Pass) -> None:
    """Half of the answer arrives."""
    answer = pass_on()
    handler.begin(answer.status_code, answer.headers, len(answer.content))
    handler.wfile.write(answer.content[: len(answer.content) // 2])


def silence(handler: "_Handler", pass_on: Pass) -> None:
    """The request arrives, and the line stays open without a word until the proxy closes."""
    pass_on()
    handler.proxy.closing.wait(30)


def drip(handler: "_Handler", pass_on: Pass) -> None:
    """The answer comes byte by byte."""
    answer = pass_on()
    handler.begin(answer.status_code, answer.headers, len(answer.content))
    for byte in answer.content:
        handler.wfile.write(bytes([byte]))
        time.sleep(_DRIP_SECONDS)


def answered(status: int, body: Any, headers: Mapping[str, str] | None = None, *, forwarded: bool = False) -> Fault:
    """Something in between answers; the request may or may not arrive as well."""
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    def fault(handler: "_Handler", pass_on: Pass) -> None:
        if forwarded:
            pass_on()
        handler.begin(status, headers or {}, len(content))
        handler.wfile.write(content)
        handler.close_connection = False

    return fault


@dataclass
class FaultProxy:
    """`script` says what happens to the requests to come, in order: a fault, or None to let one pass."""

    service_url: str
    http: httpx.Client
    url: str = ""
    script: list[Fault | None] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, seen: Seen) -> Fault | None:
        with self.lock:
            self.requests.append(seen)
            return self.script.pop(0) if self.script else None

    def sent(self, path: str) -> list[Seen]:
        return [seen for seen in self.requests if seen.path.partition("?")[0] == path]

    def reset(self, *script: Fault | None) -> None:
        self.requests.clear()
        self.script[:] = script


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: FaultProxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def proxy(self) -> FaultProxy:
        assert isinstance(self.server, _Server)
        return self.server.proxy

    def begin(self, status: int, headers: Mapping[str, str], length: int) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _NOT_FORWARDED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        fault = self.proxy.take(Seen(self.command, self.path, headers, body))
        if fault is None:
            answer = self._pass_on(headers, body)
            self.begin(answer.status_code, answer.headers, len(answer.content))
            self.wfile.write(answer.content)
            return
        self.close_connection = True
        with contextlib.suppress(ConnectionError):
            fault(self, lambda: self._pass_on(headers, body))
            self.wfile.flush()
        if self.close_connection:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_POST = do_PATCH = serve  # noqa: N815

    def _pass_on(self, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        kept = {name: value for name, value in headers.items() if name not in _NOT_FORWARDED}
        kept["accept-encoding"] = "identity"
        return self.proxy.http.request(self.command, self.proxy.service_url + self.path, headers=kept, content=body)

    def log_message(self, *_arguments: Any) -> None:
        pass


@contextlib.contextmanager
def fault_proxy(service_url: str) -> Iterator[FaultProxy]:
    # verify: not needed on loopback, and reading the certificates takes longer than most tests.
    with httpx.Client(timeout=30, verify=False) as http, _Server(("127.0.0.1", 0), _Handler) as server:
        proxy = server.proxy = FaultProxy(service_url, http, f"http://127.0.0.1:{server.server_address[1]}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield proxy
        finally:
            proxy.closing.set()
            server.shutdown()
            serving.join()
