"""Settles writes whose answer was lost and frees slots that are still held, from any number of nodes.

An abandoned write is leased, looked up on the server by its identifier and recorded with its outcome. A server that
does not answer is tried with one write at a time, in growing intervals; its first answer makes all of them due.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from frontdesk.background import Step
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.port import KEEP_RESULTS, SystemUnavailable

if TYPE_CHECKING:
    from frontdesk.systems.fhir.records import PendingWrite
    from frontdesk.systems.fhir.resources.appointments import PracticeMap
    from frontdesk.systems.fhir.transport.deadline import Deadline
    from frontdesk.systems.fhir.upstream import Upstream

SETTLE_AFTER = timedelta(seconds=60)  # beyond this, and the request's own time, a lost request does not arrive any more
SETTLE_SECONDS = 10.0  # for the requests of one attempt
PAUSE_SECONDS = 2.0
SWEEP_SECONDS = 60.0
_MAX_PAUSE = 10.0  # seconds; a server that is back is noticed within this time
_LEASE = timedelta(minutes=5)  # more than all that is done with what is taken at once may take
_MAX_CONCURRENT = 8
_log = logging.getLogger(__name__)

FindUpstream = Callable[[int], Awaitable["tuple[Upstream, PracticeMap] | None"]]


class Reconciler:
    """`on_settled` hears of practices that have new audit records."""

    def __init__(
        self, database: Database, find: FindUpstream, clock: Callable[[], datetime], on_settled: Callable[[int], None]
    ) -> None:
        self._database = database
        self._find = find
        self._clock = clock
        self._on_settled = on_settled
        self._waiting: set[int] = set()
        self._recovered: set[int] = set()
        self._working: dict[int, asyncio.Task[None]] = {}
        self._sweep_at = 0.0
        self._limit = asyncio.Semaphore(_MAX_CONCURRENT)
        self.settled: Counter[str] = Counter()  # writes, by outcome
        self.step = Step("FHIR reconciler", self.start_settling, every=PAUSE_SECONDS, close=self.close)

    def schedule(self, practice_id: int) -> None:
        self._waiting.add(practice_id)

    def recovered(self, practice_id: int) -> None:
        """The practice's server has answered after failures."""
        self._recovered.add(practice_id)
        self._waiting.add(practice_id)

    async def start_settling(self) -> None:
        """Starts a task per practice with writes to settle: a server that does not answer delays no other practice."""
        if time.monotonic() >= self._sweep_at:
            sql = "SELECT practice_id FROM practice WHERE scheduling_system ->> 'kind' = 'fhir'"
            self._waiting |= {row["practice_id"] for row in await self._database.fetch(sql)}
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
        self._working = {practice_id: task for practice_id, task in self._working.items() if not task.done()}
        for practice_id in self._waiting - self._working.keys():
            self._working[practice_id] = asyncio.create_task(self._settle_quietly(practice_id))

    async def close(self) -> None:
        for task in self._working.values():
            task.cancel()
        await asyncio.gather(*self._working.values(), return_exceptions=True)

    async def _settle_quietly(self, practice_id: int) -> None:
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
        from frontdesk.systems.fhir.writing.steps import WriteOutcomeUnknown

        records = Records(self._database, practice_id)
        async with self._limit:  # bounds use of the database, not of the practices' servers
            if practice_id in self._recovered:
                self._recovered.discard(practice_id)
                await records.retry_now(self._clock())
            taken = await records.lease_writes(self._clock(), _LEASE)
        found = None
        for write in taken:
            began = self._clock()
            try:
                found = found or await self._find(practice_id)
                if found is None:  # the practice has another system now, and nobody to ask
                    raise SystemUnavailable
                await self._settle_one(*found, write)
            except WriteOutcomeUnknown:
                await records.defer(write, self._clock(), began + _pause(write))
            except (DatabaseUnavailable, OutcomeUnknown):
                raise
            except SystemUnavailable:
                due = began + _pause(write)
                await records.defer(write, self._clock(), due)
                await records.postpone(write.holder, due)
                break
            except Exception:  # must not keep the others from being settled
                _log.exception("a write to a scheduling system could not be settled")
                await records.defer(write, self._clock(), began + _LEASE)
                self._waiting.discard(practice_id)
        return await records.waiting()

    async def _settle_one(self, upstream: "Upstream", practice: "PracticeMap", write: "PendingWrite") -> None:
        from frontdesk.systems.fhir.writing.steps import WriteOutcomeUnknown
        from frontdesk.systems.fhir.writing.writes import Writer

        now = self._clock()
        final = now >= write.began_at + timedelta(seconds=2 * upstream.settings.timeout_seconds) + SETTLE_AFTER
        if write.phase == "releasing":
            await self._release(upstream, write, final=final)
            return
        writer = Writer(upstream, practice, _deadline(upstream), write, None)
        ending = await writer.settle(now, final=final)
        if ending is None:
            raise WriteOutcomeUnknown
        result = await upstream.records.finish(write, ending, writer.releases, now, now + KEEP_RESULTS, now)
        if result is not None:
            self.settled[ending.outcome] += 1
            self._on_settled(upstream.records.practice_id)
            _log.info("a write to a scheduling system was settled", extra={"outcome": ending.outcome})

    async def _release(self, upstream: "Upstream", write: "PendingWrite", *, final: bool) -> None:
        from frontdesk.systems.fhir.writing.steps import WriteSteps

        steps = WriteSteps(upstream.client, _deadline(upstream), write)
        steps.releases = list(write.data["releases"])
        await steps.release(final=final)
        await upstream.records.released(write, steps.releases, self._clock() + _pause(write))


def _deadline(upstream: "Upstream") -> "Deadline":
    return upstream.deadline(SETTLE_SECONDS)


def _pause(write: "PendingWrite") -> timedelta:
    """With jitter, because many practices may share a server."""
    seconds = min(2.0 ** (write.attempts + 1), _MAX_PAUSE)
    return timedelta(seconds=seconds * random.uniform(0.7, 1.0))  # noqa: S311
