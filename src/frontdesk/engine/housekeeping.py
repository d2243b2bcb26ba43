"""Housekeeping: expired challenges and old results are removed, a bounded amount at a time, by any number of nodes."""

import asyncio
import logging
from datetime import UTC, datetime

from frontdesk.engine.audit import practice_ids
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

PAUSE_SECONDS = 60.0
MOST_AT_ONCE = 1000
_log = logging.getLogger(__name__)


async def keep_house(database: Database) -> None:
    """Runs for as long as the service does."""
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            await forget_old_intents(database, datetime.now(UTC))
        except (DatabaseUnavailable, OutcomeUnknown):
            _log.warning("housekeeping was put off: the database is unavailable")


async def forget_old_intents(database: Database, now: datetime, most: int = MOST_AT_ONCE) -> int:
    """Removes at most so many rows over all practices; returns how many."""
    removed = 0
    for practice_id in await practice_ids(database):
        if removed >= most:
            break
        row = await database.write("SELECT forget_intents($1, $2, $3) AS n", practice_id, now, most - removed)
        assert row is not None
        removed += row["n"]
    return removed
