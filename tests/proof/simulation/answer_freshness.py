"""The answer cache with readers, writers and a slow database: no answer is older than the call that it answers."""

import asyncio
import struct
from dataclasses import dataclass, field
from random import Random
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.engine.answer_cache import Answer, AnswerCache, is_fresh
from frontdesk.operations import OPERATIONS
from frontdesk.store.calendar_versions import CurrentVersions
from frontdesk.store.database import DatabaseUnavailable
from frontdesk.systems.port import Versions
from tests.proof.simulation.loop import Link, SimulatedLoop

SEARCH = next(each for each in OPERATIONS if each.name == "search_slots")
PRACTICES, PROVIDERS = (1, 2), (10, 11)


@dataclass
class Calendars:
    """How often each provider's calendar has changed; a search answers the number that it saw."""

    link: Link
    changes: dict[tuple[int, int], int]
    remembered: dict[tuple[int, int], int] = field(default_factory=dict)  # what a search has read last

    async def fetch(self, _sql: str, asked: int | list[int]) -> list[Any]:
        if isinstance(asked, int):
            return await self.link.read(lambda: [(1, self._packed(asked), None)])
        return await self.link.read(lambda: [(each, 1, self._packed(each), None) for each in asked])

    def _packed(self, practice: int) -> bytes:
        return b"".join(struct.pack("!qq", each, self.changes[practice, each]) for each in PROVIDERS)

    async def look(self, practice: int, provider: int) -> int:
        return await self.link.read(lambda: self.changes[practice, provider])


async def answer_freshness(chance: Random) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    link = Link(chance)
    link.broken = chance.choice((0.0, 0.0, 0.2))
    calendars = Calendars(link, {(practice, provider): 0 for practice in PRACTICES for provider in PROVIDERS})
    current = CurrentVersions(calendars)  # type: ignore[arg-type]
    caches = [
        AnswerCache(lambda _practice: 1, lambda _seconds: 0, loop.time, max_bytes=chance.choice((2000, 10**6)))
        for _ in range(2)
    ]
    answered = 0

    async def search() -> None:
        nonlocal answered
        await asyncio.sleep(chance.uniform(0, 3))
        practice, provider = chance.choice(PRACTICES), chance.choice(PROVIDERS)
        committed = calendars.changes[practice, provider]
        try:
            async with asyncio.timeout(chance.choice((None, None, 0.05))):
                shown = await _search(chance.choice(caches), current, calendars, practice, provider)
        except (DatabaseUnavailable, TimeoutError):
            return
        assert shown >= committed, f"shows change {shown} though {committed} was committed before the call"
        answered += 1

    async def write() -> None:
        await asyncio.sleep(chance.uniform(0, 3))
        calendars.changes[chance.choice(PRACTICES), chance.choice(PROVIDERS)] += 1

    await asyncio.gather(*(search() for _ in range(60)), *(write() for _ in range(chance.randrange(12))))
    assert answered, "nobody was answered"
    link.broken = 0.0
    await asyncio.wait_for(_search(caches[0], current, calendars, *min(calendars.changes)), 30)


async def _search(
    cache: AnswerCache, current: CurrentVersions, calendars: Calendars, practice: int, provider: int
) -> int:
    """The path of a search through the engine, with an operation that answers the number of changes it saw."""
    caller = Caller("client", practice, "harbor", frozenset(), "agent", 1)
    key = ("/api/slots", b"providerId=%d" % provider)
    entry, versions = cache.lookup(caller, key), None
    if entry is not None:
        versions = await current.read(practice)
        if is_fresh(entry, versions):
            return int(entry.answer.content)
    stamp = cache.stamp(asyncio.get_running_loop().time())
    if versions is None:
        versions = await current.read(practice)
    seen = calendars.remembered.get((practice, provider))
    if seen != versions.calendars[provider]:
        seen = calendars.remembered[practice, provider] = await calendars.look(practice, provider)
    cache.store(caller, SEARCH, key, Answer(200, b"%d" % seen), Versions(1, {provider: seen}), stamp)
    return seen
