"""Housekeeping: removes expired rows periodically, a bounded number at a time, and refreshes statistics."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from frontdesk.access.assistants.applications import prune_applications
from frontdesk.access.assistants.grants import prune_grants
from frontdesk.access.clients.assertions import prune_assertions
from frontdesk.access.limits.failed_attempts import prune_attempts
from frontdesk.access.limits.usage import prune_usage_counts
from frontdesk.access.staff.passkeys import prune_challenges
from frontdesk.access.staff.sessions import prune_sessions
from frontdesk.background import Step
from frontdesk.store.database import Database
from frontdesk.store.practice_work import Work, for_each_practice, practices_with
from frontdesk.store.statistics import analyze_grown_tables

EVERY_SECONDS = 60.0
RARELY_SECONDS = 600.0  # for what is kept for days
PAUSE_SECONDS = 1.0  # before more of the same is removed
STATISTICS_SECONDS = 5.0  # until then the first bookings of an installation read more than they need
MAX_BATCH_SIZE = 1000
MAX_ATTEMPTS_BATCH_SIZE = 10_000  # callers without credentials can add thousands a second
MAX_ROUNDS = 300  # one after the other: a step that does not end for half an hour counts as stalled
KEEP_HOLDS = timedelta(hours=1)  # the holds that count for a client's limit per hour
KEEP_UNSETTLED = timedelta(days=2)  # identifiers, longer than the result of the write that they were given with
KEEP_EVENTS = timedelta(days=30)
KEEP_DELIVERIES = timedelta(days=30)


def housekeeping_steps(database: Database, clock: Callable[[], datetime]) -> list[Step]:
    def step(
        name: str,
        prune: Callable[[Database, datetime, int], Awaitable[int]],
        every: float = EVERY_SECONDS,
        limit: int = MAX_BATCH_SIZE,
    ) -> Step:
        async def run() -> None:
            # A clock that is ahead must not remove what is still valid: every node reads these rows.
            now = min(clock(), await database.fetchval("SELECT clock_timestamp()"))
            for _ in range(MAX_ROUNDS):
                if await prune(database, now, limit) < limit:
                    break
                await asyncio.sleep(PAUSE_SECONDS)

        return Step(name, run, every=every)

    return [
        step("intent pruning", prune_intents),
        step("hold pruning", prune_holds),
        step("identifier pruning", prune_identifiers, every=RARELY_SECONDS),
        step("event pruning", prune_events, every=RARELY_SECONDS),
        step("webhook delivery pruning", prune_deliveries, every=RARELY_SECONDS),
        step("usage count pruning", prune_usage_counts, every=RARELY_SECONDS),
        step("failed attempt pruning", prune_attempts, limit=MAX_ATTEMPTS_BATCH_SIZE),
        step("session pruning", prune_sessions),
        step("challenge pruning", prune_challenges),
        step("assertion pruning", prune_assertions),
        step("application pruning", prune_applications),
        step("grant pruning", prune_grants),
        Step("table statistics", lambda: analyze_grown_tables(database), every=STATISTICS_SECONDS),
    ]


async def prune_intents(database: Database, now: datetime, limit: int = MAX_BATCH_SIZE) -> int:
    """Removes at most `limit` expired challenges and results over all practices; returns how many."""
    return await _prune(database, "old intents", "SELECT delete_expired_intents($1, $2, $3) AS n", now, limit)


async def prune_holds(database: Database, now: datetime, limit: int = MAX_BATCH_SIZE) -> int:
    """Removes at most `limit` holds that no longer count over all practices; returns how many."""
    return await _prune(database, "old holds", "SELECT delete_old_holds($1, $2, $3) AS n", now - KEEP_HOLDS, limit)


async def prune_identifiers(database: Database, now: datetime, limit: int = MAX_BATCH_SIZE) -> int:
    """Removes at most `limit` identifiers of writes with an unknown end over all practices; returns how many."""
    sql = "SELECT delete_unsettled_identifiers($1, $2, $3) AS n"
    return await _prune(database, "unsettled identifiers", sql, now - KEEP_UNSETTLED, limit)


async def prune_events(database: Database, now: datetime, limit: int = MAX_BATCH_SIZE) -> int:
    """Removes at most `limit` old events over all practices; returns how many."""
    return await _prune(database, "old events", "SELECT delete_old_events($1, $2, $3) AS n", now - KEEP_EVENTS, limit)


async def prune_deliveries(database: Database, now: datetime, limit: int = MAX_BATCH_SIZE) -> int:
    """Removes at most `limit` ended webhook deliveries over all practices; returns how many."""
    sql = "SELECT delete_old_webhook_deliveries($1, $2, $3) AS n"
    return await _prune(database, "ended deliveries", sql, now - KEEP_DELIVERIES, limit)


async def _prune(database: Database, work: Work, sql: str, before: datetime, limit: int) -> int:
    removed = 0

    async def prune(practice_id: int) -> None:
        nonlocal removed
        if removed < limit:
            row = await database.write(sql, practice_id, before, limit - removed)
            assert row is not None
            removed += row["n"]

    await for_each_practice(f"pruning {work}", await practices_with(database, work, before), prune)
    return removed
