"""A proxy in front of the service that sends each page in two halves, as a slow line or a busy browser shows it."""

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PAUSE = 1.0  # seconds: many frames of a browser
_PASSED_ON = ("Cookie", "Accept")


@contextmanager
def in_two_halves(url: str) -> Iterator[str]:
    """The proxy's address. `url` is the service's."""

    class Halves(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
            with urllib.request.urlopen(urllib.request.Request(url + self.path, headers=headers), timeout=30) as answer:
                kind, policy, body = (
                    answer.headers["Content-Type"],
                    answer.headers["Content-Security-Policy"],
                    answer.read(),
                )
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if policy:
                self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            half = len(body) // 2 if kind.startswith("text/html") else len(body)
            self.wfile.write(body[:half])
            self.wfile.flush()
            if half < len(body):
                time.sleep(_PAUSE)
                self.wfile.write(body[half:])

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Halves)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
