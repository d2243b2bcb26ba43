"""Bytes of strangers for connections of the server, without sockets."""

import asyncio
from typing import Any

import uvicorn

from frontdesk.serving.connection import Connection, WorkerState
from frontdesk.web.http_request import request_of


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


class Wire:
    """Connections of the server that are given bytes, with an application that reads each request to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._config = uvicorn.Config(
            self._app, interface="asgi3", http=Connection, lifespan="off", log_config=None, access_log=False
        )
        self._config.load()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        request_of(scope)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def run(self, data: bytes) -> object:
        return self._loop.run_until_complete(self._receive(data))

    async def _receive(self, data: bytes) -> object:
        state = WorkerState(10, dict.fromkeys((400, 414, 431, 502), b"content-length: 0\r\n\r\n"))
        transport = _Transport()
        connection = Connection(config=self._config, server_state=state, app_state={})
        connection.connection_made(transport)
        for part in data.split(b"\x1e"):  # arrives in pieces
            if not transport.closed:
                connection.data_received(part)
            await asyncio.sleep(0)
        for _ in range(4):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        for _ in range(3):
            await asyncio.sleep(0)
        answer = bytes(transport.written)
        assert not answer or answer.startswith(b"HTTP/1.1 "), answer[:80]
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:200]
        return answer[9:12], answer.count(b"HTTP/1.1 "), transport.closed
