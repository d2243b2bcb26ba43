"""Settles writes whose answer was lost, and frees slots that are still held, on any number of nodes.

A write that nobody works on is taken with a lease, looked up on the server by what identifies it there, and recorded
as what it turned out to be. A bounded number at a time; a server that does not answer is asked more and more seldom.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.fhir.exchange import Exchange, OutcomeOpen
from frontdesk.systems.fhir.mapping import PracticeMap
from frontdesk.systems.fhir.records import PendingWrite
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.fhir.writing import Writer
from frontdesk.systems.port import SystemUnavailable

SETTLE_AFTER = timedelta(seconds=60)  # beyond this, and the request's own time, a lost request does not arrive any more
KEEP_RESULTS = timedelta(hours=24)
PAUSE_SECONDS = 2.0
SWEEP_SECONDS = 60.0
_LONGEST_PAUSE = timedelta(minutes=5)
_LEASE_MARGIN = timedelta(seconds=30)
_log = logging.getLogger(__name__)

Find = Callable[[int], Awaitable[tuple[Upstream, PracticeMap] | None]]


class Reconciler:
    """`on_settled` hears of practices that have new audit records."""

    def __init__(
        self, database: Database, find: Find, clock: Callable[[], datetime], on_settled: Callable[[int], None]
    ) -> None:
        self._database = database
        self._find = find
        self._clock = clock
        self._on_settled = on_settled
        self._waiting: set[int] = set()

    def look_soon(self, practice_id: int) -> None:
        self._waiting.add(practice_id)

    async def keep_settling(self) -> None:
        """Runs for as long as the service does. What other nodes left behind is found by a sweep now and then."""
        passed = SWEEP_SECONDS
        while True:
            try:
                if passed >= SWEEP_SECONDS:
                    passed = 0.0
                    self._waiting |= set(await self._practices())
                await asyncio.gather(*(self._settle_quietly(each) for each in sorted(self._waiting)))
            except (DatabaseUnavailable, OutcomeUnknown):
                _log.warning("writes to scheduling systems could not be settled: the database is unavailable")
            await asyncio.sleep(PAUSE_SECONDS)
            passed += PAUSE_SECONDS

    async def _practices(self) -> list[int]:
        rows = await self._database.fetch(
            "SELECT practice_id FROM practice WHERE scheduling_system ->> 'kind' = 'fhir' ORDER BY practice_id"
        )
        return [row["practice_id"] for row in rows]

    async def _settle_quietly(self, practice_id: int) -> None:
        """One practice's trouble is not another's."""
        try:
            if await self.settle(practice_id) == 0:
                self._waiting.discard(practice_id)
        except (DatabaseUnavailable, OutcomeUnknown, SystemUnavailable):
            _log.warning("writes to a scheduling system could not be settled; trying again")
        except Exception:
            _log.exception("writes to a scheduling system could not be settled")
            self._waiting.discard(practice_id)

    async def settle(self, practice_id: int) -> int:
        """Works on the writes of a practice that are due; returns how many still wait, or were worked on now."""
        found = await self._find(practice_id)
        if found is None:
            return 0
        upstream, practice = found
        lease = timedelta(seconds=2 * upstream.settings.timeout_seconds) + _LEASE_MARGIN
        taken = await upstream.records.take(self._clock(), lease)
        for write in taken:
            try:
                await self._settle_one(upstream, practice, write)
            except (SystemUnavailable, OutcomeOpen):
                await self._put_off(upstream, write)
        return len(taken) or await upstream.records.waiting()

    async def _settle_one(self, upstream: Upstream, practice: PracticeMap, write: PendingWrite) -> None:
        now = self._clock()
        final = now >= write.began_at + timedelta(seconds=2 * upstream.settings.timeout_seconds) + SETTLE_AFTER
        if write.phase == "releasing":
            await self._release(upstream, write, final=final)
            return
        writer = Writer(upstream, practice, upstream.deadline(), write, None)
        ending = await writer.settle(now, final=final)
        if ending is None:
            await self._put_off(upstream, write)
            return
        result = await upstream.records.finish(write, ending, writer.releases, now, now + KEEP_RESULTS, now)
        if result is not None:
            self._on_settled(upstream.records.practice_id)
            _log.info("a write to a scheduling system was settled", extra={"outcome": ending.outcome})

    async def _release(self, upstream: Upstream, write: PendingWrite, *, final: bool) -> None:
        exchange = Exchange(upstream.client, upstream.deadline(), write)
        exchange.releases = list(write.data["releases"])
        await exchange.release(final=final)
        await upstream.records.released(write, exchange.releases, self._clock() + _pause(write))

    async def _put_off(self, upstream: Upstream, write: PendingWrite) -> None:
        now = self._clock()
        await upstream.records.leave(write, now, now + _pause(write), None)


def _pause(write: PendingWrite) -> timedelta:
    return min(timedelta(seconds=2 * 2 ** min(write.attempts, 10)), _LONGEST_PAUSE)
