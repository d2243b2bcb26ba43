"""Settles writes whose answer was lost, and frees slots that are still held, on any number of nodes.

A write that nobody works on is taken with a lease, looked up on the server by what identifies it there, and recorded
as what it turned out to be. A bounded number at a time; a server that does not answer is asked more and more seldom.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.port import SystemUnavailable

if TYPE_CHECKING:
    from frontdesk.systems.fhir.records import PendingWrite
    from frontdesk.systems.fhir.resources.appointments import PracticeMap
    from frontdesk.systems.fhir.upstream import Upstream

SETTLE_AFTER = timedelta(seconds=60)  # beyond this, and the request's own time, a lost request does not arrive any more
KEEP_RESULTS = timedelta(hours=24)
PAUSE_SECONDS = 2.0
SWEEP_SECONDS = 60.0
_LONGEST_PAUSE = timedelta(minutes=5)
_LEASE = timedelta(minutes=5)  # more than all that is done with what is taken at once may take
_AT_ONCE = 8
_log = logging.getLogger(__name__)

Find = Callable[[int], Awaitable["tuple[Upstream, PracticeMap] | None"]]


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
        self._places = asyncio.Semaphore(_AT_ONCE)

    def look_soon(self, practice_id: int) -> None:
        self._waiting.add(practice_id)

    async def keep_settling(self) -> None:
        """Runs for as long as the service does. What other nodes left behind is found by a sweep now and then."""
        passed = SWEEP_SECONDS
        working: dict[int, asyncio.Task[None]] = {}
        try:
            while True:
                if passed >= SWEEP_SECONDS:
                    passed = 0.0
                    self._waiting |= await self._practices()
                for practice_id in self._waiting - working.keys():
                    # Each on its own: a server that does not answer keeps nobody else waiting.
                    working[practice_id] = asyncio.create_task(self._settle_quietly(practice_id))
                await asyncio.sleep(PAUSE_SECONDS)
                passed += PAUSE_SECONDS
                working = {practice_id: task for practice_id, task in working.items() if not task.done()}
        finally:
            for task in working.values():
                task.cancel()
            await asyncio.gather(*working.values(), return_exceptions=True)

    async def _practices(self) -> set[int]:
        sql = "SELECT practice_id FROM practice WHERE scheduling_system ->> 'kind' = 'fhir'"
        try:
            return {row["practice_id"] for row in await self._database.fetch(sql)}
        except DatabaseUnavailable:
            return set()  # until the next sweep

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
        """Works on the writes of a practice that are due; returns how many are not settled yet."""
        from frontdesk.systems.fhir.records import Records
        from frontdesk.systems.fhir.writing.steps import OutcomeOpen

        records = Records(self._database, practice_id)
        async with self._places:  # of the database only: nobody waits for another practice's server
            taken = await records.take(self._clock(), _LEASE)
        found = await self._find(practice_id) if taken else None
        for write in taken:
            try:
                if found is None:  # the practice has another system now, and nobody to ask
                    raise SystemUnavailable
                await self._settle_one(*found, write)
            except (SystemUnavailable, OutcomeOpen):
                await records.leave(write, self._clock(), self._clock() + _pause(write))
        return await records.waiting()

    async def _settle_one(self, upstream: "Upstream", practice: "PracticeMap", write: "PendingWrite") -> None:
        from frontdesk.systems.fhir.writing.steps import OutcomeOpen
        from frontdesk.systems.fhir.writing.writes import Writer

        now = self._clock()
        final = now >= write.began_at + timedelta(seconds=2 * upstream.settings.timeout_seconds) + SETTLE_AFTER
        if write.phase == "releasing":
            await self._release(upstream, write, final=final)
            return
        writer = Writer(upstream, practice, upstream.deadline(), write, None)
        ending = await writer.settle(now, final=final)
        if ending is None:
            raise OutcomeOpen
        result = await upstream.records.finish(write, ending, writer.releases, now, now + KEEP_RESULTS, now)
        if result is not None:
            self._on_settled(upstream.records.practice_id)
            _log.info("a write to a scheduling system was settled", extra={"outcome": ending.outcome})

    async def _release(self, upstream: "Upstream", write: "PendingWrite", *, final: bool) -> None:
        from frontdesk.systems.fhir.writing.steps import WriteSteps

        steps = WriteSteps(upstream.client, upstream.deadline(), write)
        steps.releases = list(write.data["releases"])
        await steps.release(final=final)
        await upstream.records.released(write, steps.releases, self._clock() + _pause(write))


def _pause(write: "PendingWrite") -> timedelta:
    return min(timedelta(seconds=2 * 2 ** min(write.attempts, 10)), _LONGEST_PAUSE)
