"""The answer cache with readers, writers and a slow database: no answer is older than the call that it answers."""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.engine.answer_cache import Answer, AnswerCache, CurrentVersions
from frontdesk.operations import OPERATIONS
from frontdesk.store.database import DatabaseUnavailable
from frontdesk.systems.port import Versions
from tests.proof.simulation.loop import Link, SimulatedLoop

SEARCH = next(each for each in OPERATIONS if each.name == "search_slots")
KEY = ("GET", b"/api/slots")


@dataclass
class Calendars:
    """Versions of practices; what an operation answers is the version that it saw."""

    link: Link
    versions: dict[int, Versions]

    async def fetch(self, _sql: str, practices: list[int]) -> list[Any]:
        return await self.link.read(lambda: [(each, *_pair(self.versions[each])) for each in practices])

    async def look(self, practice: int) -> Versions:
        return await self.link.read(lambda: self.versions[practice])

    def change(self, practice: int) -> None:
        old = self.versions[practice]
        assert old.calendar is not None
        self.versions[practice] = Versions(old.directory, old.calendar + 1)


def _pair(versions: Versions) -> tuple[int, int | None]:
    return versions.directory, versions.calendar


async def answer_freshness(chance: Random) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    link = Link(chance)
    link.broken = chance.choice((0.0, 0.0, 0.2))
    calendars = Calendars(link, {number: Versions(1, 0) for number in (1, 2)})
    current = CurrentVersions(calendars)  # type: ignore[arg-type]
    caches = [
        AnswerCache(current, lambda _practice: 1, lambda _seconds: 0, loop.time, max_bytes=chance.choice((2000, 10**6)))
        for _ in range(2)
    ]
    answered = 0

    async def search() -> None:
        nonlocal answered
        await asyncio.sleep(chance.uniform(0, 3))
        practice, cache = chance.choice((1, 2)), chance.choice(caches)
        caller = Caller("client", practice, "harbor", frozenset(), "agent", 1)
        committed = calendars.versions[practice]
        try:
            async with asyncio.timeout(chance.choice((None, None, 0.05))):
                answer = await _search(cache, calendars, caller)
        except (DatabaseUnavailable, TimeoutError):
            return
        shown, at_least = answer.body["version"], committed.calendar
        assert shown >= at_least, f"shows version {shown} though {at_least} was committed before the call"
        answered += 1

    async def write() -> None:
        await asyncio.sleep(chance.uniform(0, 3))
        calendars.change(chance.choice((1, 2)))

    await asyncio.gather(*(search() for _ in range(60)), *(write() for _ in range(chance.randrange(12))))
    assert answered, "nobody was answered"
    link.broken = 0.0
    await asyncio.wait_for(_search(caches[0], calendars, Caller("c", 1, "harbor", frozenset(), "agent", 1)), 30)


async def _search(cache: AnswerCache, calendars: Calendars, caller: Caller) -> Answer:
    """The path of a search through the engine, with an operation that answers the version it saw."""
    entry = cache.lookup(caller, KEY)
    if entry is not None and await cache.is_fresh(entry, caller):
        return entry.answer
    stamp = cache.stamp(asyncio.get_running_loop().time())
    seen = await calendars.look(caller.practice_id)
    answer = Answer(200, b'{"version": %d}' % (seen.calendar or 0))
    cache.store(caller, SEARCH, KEY, answer, seen, stamp)
    return answer
