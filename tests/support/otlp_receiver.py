"""A collector of traces: receives OTLP over HTTP as OpenTelemetry's exporters send it."""

import contextlib
import gzip
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_TIMEOUT = 30.0


@dataclass
class Collector:
    url: str
    bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in [*self.bodies]]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def trace(self, trace_id: str) -> dict[str, Any]:
        """The spans of a trace by their names."""
        return {span.name: span for span in self.spans if span.trace_id.hex() == trace_id}

    def wait_for(self, name: str, trace_id: str) -> dict[str, Any]:
        deadline = time.monotonic() + WAIT_TIMEOUT
        while time.monotonic() < deadline:
            if name in (found := self.trace(trace_id)):
                return found
            time.sleep(0.05)
        raise AssertionError(f"there is no span {name} in {trace_id}: {sorted(self.trace(trace_id))}")


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            is_compressed = self.headers.get("content-encoding") == "gzip"
            collector.bodies.append(gzip.decompress(body) if is_compressed else body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
