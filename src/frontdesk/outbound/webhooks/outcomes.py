"""Records how attempts to deliver ended, several of a practice in one statement."""

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.store.database import Database, DatabaseUnavailable

PAUSE_AFTER = timedelta(days=1)
_GATHER_SECONDS = 0.005  # attempts that end within it are recorded together, and all that end during a statement

_FINISH = "SELECT * FROM finish_webhook_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`failure` is None after a success; `wait` is the time until the next attempt, None if there is none."""

    endpoint_id: str
    event_id: int
    status: int | None
    milliseconds: int
    failure: str | None
    wait: timedelta | None


class Outcomes:
    """`on_paused` is called with the practice of a paused endpoint. A `clock` replaces the database's in tests."""

    def __init__(
        self,
        database: Database,
        holder: str,
        on_paused: Callable[[int], None],
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._database = database
        self._holder = holder
        self._on_paused = on_paused
        self._clock = clock
        self._gathering: dict[int, tuple[list[Outcome], asyncio.Task[bool]]] = {}  # by practice
        self._tasks: set[asyncio.Task[bool]] = set()
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def record(self, practice_id: int, outcome: Outcome) -> bool:
        """Whether it was recorded: it is not if the database is unavailable."""
        if practice_id not in self._gathering:
            task = asyncio.create_task(self._write(practice_id), name="webhook outcomes")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._gathering[practice_id] = [], task
        outcomes, written = self._gathering[practice_id]
        outcomes.append(outcome)
        return await asyncio.shield(written)

    async def close(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, practice_id: int) -> bool:
        await asyncio.sleep(_GATHER_SECONDS)
        async with self._turns[practice_id]:
            outcomes, _ = self._gathering.pop(practice_id)
            outcomes.sort(key=lambda outcome: outcome.endpoint_id)  # locked in one order: two nodes do not deadlock
            try:
                paused = await self._database.fetch(
                    _FINISH,
                    practice_id,
                    None if self._clock is None else self._clock(),
                    self._holder,
                    [outcome.endpoint_id for outcome in outcomes],
                    [outcome.event_id for outcome in outcomes],
                    [outcome.status for outcome in outcomes],
                    [outcome.milliseconds for outcome in outcomes],
                    [outcome.failure for outcome in outcomes],
                    [outcome.wait for outcome in outcomes],
                    PAUSE_AFTER,
                    secrets.token_hex(16),
                )
            except DatabaseUnavailable:
                _log.warning("results of webhook deliveries could not be recorded: they will be sent again")
                return False
        for row in paused:
            fields = {"practiceId": practice_id, "endpoint": row["endpoint_id"], "reason": row["reason"]}
            _log.warning("webhook endpoint paused", extra=fields)
            self._on_paused(practice_id)
        return True
