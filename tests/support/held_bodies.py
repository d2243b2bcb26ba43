"""Requests whose bodies take their time: their ends are sent when a test lets them go."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import httpx


@dataclass
class HeldRequest:
    body: bytes
    is_read: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    answer: "asyncio.Task[httpx.Response] | None" = None

    async def parts(self) -> AsyncIterator[bytes]:
        yield self.body[:1]
        self.is_read.set()
        await self.may_end.wait()
        yield self.body[1:]

    async def let_go(self) -> httpx.Response:
        assert self.answer is not None
        self.may_end.set()
        return await self.answer


async def held_post(client: httpx.AsyncClient, path: str, body: bytes, headers: Mapping[str, str]) -> HeldRequest:
    """A POST whose body is being read."""
    held = HeldRequest(body)
    held.answer = asyncio.create_task(client.post(path, content=held.parts(), headers=headers))
    async with asyncio.timeout(30):
        await held.is_read.wait()
    return held
