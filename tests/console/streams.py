"""A live stream of the console as a browser holds it: open while the test goes on, and ended by either side."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, MutableMapping
from typing import Any, TypeVar

import httpx

WAIT_TIMEOUT = 30.0


class Stream:
    """`status` and `headers` are those of the answer; what was sent so far is `text`."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self.ended = asyncio.Event()
        self._more = asyncio.Event()
        self._gone = asyncio.Event()
        self._asked = False

    async def receive(self) -> MutableMapping[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.text += message.get("body", b"").decode()
        self._more.set()

    async def until(self, words: str, times: int = 1) -> None:
        async with asyncio.timeout(WAIT_TIMEOUT):
            while self.text.count(words) < times:
                await self._more.wait()
                self._more.clear()

    async def until_answered(self) -> None:
        async with asyncio.timeout(WAIT_TIMEOUT):
            while not self.status:
                await self._more.wait()
                self._more.clear()

    async def until_ended(self) -> None:
        async with asyncio.timeout(WAIT_TIMEOUT):
            await self.ended.wait()

    def leave(self) -> None:
        self._gone.set()


OpenStream = TypeVar("OpenStream", bound=Stream)


@contextlib.asynccontextmanager
async def opened_by(
    app: Any, method: str, path: str, headers: Mapping[str, str], opened: OpenStream
) -> AsyncIterator[OpenStream]:
    """Straight to the application: the test client reads whole answers only."""
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in {"host": "test", **headers}.items()],
        "client": ("127.0.0.1", 40000), "server": ("test", 80),
    }  # fmt: skip

    async def run() -> None:
        try:
            await app(scope, opened.receive, opened.send)
        finally:
            opened.ended.set()

    task = asyncio.create_task(run())
    try:
        await opened.until_answered()
        yield opened
    finally:
        opened.leave()
        async with asyncio.timeout(WAIT_TIMEOUT):
            await task


@contextlib.asynccontextmanager
async def stream(app: Any, browser: httpx.AsyncClient, path: str = "/console/live") -> AsyncIterator[Stream]:
    """With the cookies of a browser."""
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
    async with opened_by(app, "GET", path, {"cookie": cookies, "sec-fetch-dest": "empty"}, Stream()) as opened:
        yield opened
