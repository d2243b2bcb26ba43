"""The way to a FHIR server as a test wants it: a loopback HTTP listener that passes requests on, or harms them."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.support.listening import listening

Fault = Literal[
    "delay",  # executed, answered too late
    "late",  # cut off, and executed a moment later
    "cut_before",  # cut off, never executed
    "cut_after",  # executed, cut off before the answer
    "half",  # executed, cut off in the middle of the answer
    "drip",  # executed, the answer comes byte by byte forever
    "garbage",  # executed, answered with something that is not FHIR
    "error_before",  # 503, never executed
    "error_after",  # executed, answered with 500
    "gateway",  # executed, answered with 504
    "busy",  # 429, never executed
    "unauthorized",  # 401, never executed
    "forbidden",  # 403, never executed
    "conflict",  # 409, never executed
    "hang",  # never executed, never answered
    "error_late",  # 503, and executed a moment later all the same
]
FAULTS: tuple[Fault, ...] = (
    "delay", "late", "cut_before", "cut_after", "half", "drip", "garbage", "error_before", "error_after", "gateway",
    "busy", "unauthorized", "forbidden", "conflict",
)  # fmt: skip
REFUSED = {"error_before": 503, "busy": 429, "unauthorized": 401, "forbidden": 403, "conflict": 409}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Backend(Protocol):
    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer: ...


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def is_write(self) -> bool:
        return any(method in ("POST", "PUT") for method, _ in self.parts)

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Method and target of the request, or of each request in a batch."""
        if self.target != "/fhir":
            return [(self.method, self.target)]
        entries = [entry["request"] for entry in json.loads(self.body)["entry"]]
        return [(each["method"], f"/fhir/{each['url']}") for each in entries]


Rewrite = Callable[[Request, Answer], Awaitable[Answer]]


@dataclass
class Door:
    """`faults` by the number of a request, counted from the last `reset`, or by what `harm` says about it; `slow` is
    longer than anybody waits. `stuck` is set once a request is kept waiting. `settings`: what the practice file says
    about the server, beside its address."""

    backend: Backend | None = None
    faults: dict[int, Fault] = field(default_factory=dict)
    harm: Callable[[Request], Fault | None] | None = None
    rewrite: Rewrite | None = None
    slow: float = 3.0
    settings: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    seen: list[Request] = field(default_factory=list)
    stuck: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: int = 0
    max_under_way: int = 0
    _late: set["asyncio.Task[None]"] = field(default_factory=set)
    _open: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/fhir"

    async def open(self) -> None:
        self.port = await self._open.enter_async_context(listening(self._connected, port=self.port))

    async def close(self) -> None:
        """From here on connections are refused."""
        await self._open.aclose()
        await self.quiet()

    def reset(self, faults: dict[int, Fault] | None = None) -> None:
        self.seen.clear()
        self.faults = faults or {}
        self.harm = None
        self.stuck.clear()

    async def quiet(self) -> None:
        """Returns when everything that was sent has arrived."""
        await asyncio.gather(*self._late)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await _read(reader)) is not None:
            self.under_way += 1
            self.max_under_way = max(self.max_under_way, self.under_way)
            try:
                if not await self._serve(request, writer):
                    break
            finally:
                self.under_way -= 1

    async def _serve(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection lives on."""
        number = len(self.seen)
        self.seen.append(request)
        fault = self.faults.get(number) or (self.harm(request) if self.harm is not None else None)
        if fault == "hang":
            self.stuck.set()
            await asyncio.sleep(self.slow)
        if fault in ("hang", "cut_before"):
            return False
        if fault in ("late", "error_late"):
            task = asyncio.create_task(self._answer_later(request))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            if fault == "late":
                writer.transport.abort()
                return False
            await _write(writer, Answer(503, {}, b"{}"))
            return True
        if fault in REFUSED:
            await _write(writer, Answer(REFUSED[fault], {"Retry-After": "1"} if fault == "busy" else {}, b"{}"))
            return True
        answer = await self._answer(request)
        if fault == "delay":
            self.stuck.set()
            await asyncio.sleep(self.slow)
        elif fault == "cut_after":
            return False
        elif fault == "half":
            writer.write(_head(answer) + answer.body[: len(answer.body) // 2])
            await writer.drain()
            return False
        elif fault == "drip":
            writer.write(_head(answer))
            for byte in answer.body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
        elif fault == "garbage":
            answer = Answer(200, {"content-type": "text/html"}, b"<html>It works!</html>")
        elif fault == "error_after":
            answer = Answer(500, {}, b"{}")
        elif fault == "gateway":
            answer = Answer(504, {}, b"")
        await _write(writer, answer)
        return True

    async def _answer_later(self, request: Request) -> None:
        await asyncio.sleep(0.1)
        await self._answer(request)

    async def _answer(self, request: Request) -> Answer:
        assert self.backend is not None
        target = request.target.removeprefix("/fhir")
        answer = await self.backend.answer(request.method, target, request.headers, request.body)
        return answer if self.rewrite is None else await self.rewrite(request, answer)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    line = (await reader.readline()).decode()
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    while (text := (await reader.readline()).decode().strip()) != "":
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} X", f"content-length: {len(answer.body)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(_head(answer) + answer.body)
    await writer.drain()
