"""A real receiver of webhooks: an HTTP server in this process that can refuse, hang, redirect and recover."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.listening import listening


@dataclass(frozen=True)
class Message:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def subject(self) -> str:
        subject: str = self.document["data"]["appointmentId"]
        return subject


@dataclass
class Receiver:
    port: int = 0
    status: dict[str, int] = field(default_factory=dict)  # by path; 200 where nothing is said
    hanging: set[str] = field(default_factory=set)  # paths that never answer
    refused_subjects: dict[str, int] = field(default_factory=dict)  # how often a subject is still refused
    delay: float = 0.0
    attempts: list[Message] = field(default_factory=list)  # everything that came in
    received: list[Message] = field(default_factory=list)  # what was answered with success
    at_once: int = 0
    max_concurrent: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def ids(self, path: str = "/hook") -> list[str]:
        return [message.id for message in self.received if message.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.at_once += 1
        self.max_concurrent = max(self.max_concurrent, self.at_once)
        try:
            message = await _read(reader)
            self.attempts.append(message)
            self.arrived.set()
            if message.path in self.hanging:
                await asyncio.sleep(60)
            await asyncio.sleep(self.delay)
            status = self._status(message)
            if status == 200:
                self.received.append(message)
            extra = "Location: /elsewhere\r\n" if status == 302 else ""
            writer.write(f"HTTP/1.1 {status} Answer\r\n{extra}Content-Length: 2\r\n\r\nok".encode())
            await writer.drain()
        finally:
            self.at_once -= 1

    def _status(self, message: Message) -> int:
        subject = message.document["data"].get("appointmentId", "")
        if self.refused_subjects.get(subject, 0) > 0:
            self.refused_subjects[subject] -= 1
            return 503
        return self.status.get(message.path, 200)


async def _read(reader: asyncio.StreamReader) -> Message:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    request, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Message(request.split(" ")[1], headers, await reader.readexactly(int(headers["content-length"])))


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with listening(receiver._serve) as receiver.port:
        yield receiver
