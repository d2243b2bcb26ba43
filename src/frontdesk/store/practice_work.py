"""Finds the practices that have background work, and does it practice by practice."""

import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Literal

from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown, PartUnavailable

Work = Literal[
    "unsealed records",
    "unsigned heads",
    "old intents",
    "old holds",
    "unsettled identifiers",
    "old events",
    "ended deliveries",
    "old fine counts",
    "old coarse counts",
]
_OUTAGE = 3  # practices in a row: a single one may wait for a lock of its own
_log = logging.getLogger(__name__)


async def practices_with(database: Database, work: Work, before: datetime) -> list[int]:
    rows = await database.fetch("SELECT * FROM practices_with($1, $2) AS practice_id", work, before)
    return [row["practice_id"] for row in rows]


async def for_each_practice(
    name: str, practice_ids: Iterable[int], work: Callable[[int], Awaitable[object]]
) -> set[int]:
    """Does `work` for each practice in random order; logs those that fail (a lost worker's in one line) and returns
    them.

    Raises where the cause is not a single practice: the database is down, or every one of several practices failed.
    A lost worker of a cluster is no outage of the database.
    """
    waiting = list(practice_ids)
    random.shuffle(waiting)  # so that no practice is always last
    failed: set[int] = set()
    unavailable = at_lost_worker = 0
    for practice_id in waiting:
        try:
            await work(practice_id)
            unavailable = 0
        except Exception as error:
            failed.add(practice_id)
            is_lost = isinstance(error, PartUnavailable)
            is_down = isinstance(error, DatabaseUnavailable | OutcomeUnknown) and not is_lost
            unavailable = unavailable + 1 if is_down else 0
            if unavailable == min(_OUTAGE, len(waiting)) or len(failed) == len(waiting) > 1:
                raise
            if is_lost:
                at_lost_worker += 1
            else:
                _log.error("%s failed", name, exc_info=error, extra={"practiceId": practice_id})
    if at_lost_worker:
        _log.error("%s failed for %d practices of a lost worker of the database", name, at_lost_worker)
    return failed
