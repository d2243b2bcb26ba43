"""Housekeeping: what is over goes, a bounded amount at a time, on any node.

Challenges, results, counts, sessions, and events that no endpoint needs any more. Practices without anything to remove
are found by one statement for all of them, and cost nothing else.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from frontdesk.access.limits.usage import forget_old_requests
from frontdesk.access.staff.sessions import forget_old_sessions
from frontdesk.store.chores import Chore, practices_with
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

PAUSE_SECONDS = 60.0
MOST_AT_ONCE = 1000
KEEP_EVENTS = timedelta(days=30)
_log = logging.getLogger(__name__)


async def keep_house(database: Database, find_unsealed: Callable[[], Awaitable[None]]) -> None:
    """Runs for as long as the service does. `find_unsealed` makes sure that no audit record stays unsealed."""
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            now = datetime.now(UTC)
            await find_unsealed()
            await forget_old_intents(database, now)
            await forget_old_events(database, now)
            await forget_old_requests(database, now, MOST_AT_ONCE)
            await forget_old_sessions(database, now, MOST_AT_ONCE)
        except (DatabaseUnavailable, OutcomeUnknown):
            _log.warning("housekeeping was put off: the database is unavailable")


async def forget_old_intents(database: Database, now: datetime, most: int = MOST_AT_ONCE) -> int:
    """Removes at most so many challenges and results over all practices; returns how many."""
    return await _forget(database, "old intents", "SELECT forget_intents($1, $2, $3) AS n", now, most)


async def forget_old_events(database: Database, now: datetime, most: int = MOST_AT_ONCE) -> int:
    """Removes at most so many events over all practices; returns how many."""
    return await _forget(database, "old events", "SELECT forget_events($1, $2, $3) AS n", now - KEEP_EVENTS, most)


async def _forget(database: Database, chore: Chore, sql: str, before: datetime, most: int) -> int:
    removed = 0
    practices = await practices_with(database, chore, before)
    random.shuffle(practices)  # nobody is always the last
    for practice_id in practices:
        if removed >= most:
            break
        row = await database.write(sql, practice_id, before, most - removed)
        assert row is not None
        removed += row["n"]
    return removed
