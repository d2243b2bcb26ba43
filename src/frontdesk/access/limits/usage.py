"""Counts requests per client, operation and outcome for the usage page.

Counts are added up in memory and flushed periodically. A killed worker loses its last counts; rate limits do not depend
on them.
"""

import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from frontdesk.background import Step
from frontdesk.logs import RequestLabels
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.practice_work import for_each_practice, practices_with

FLUSH_SECONDS = 2.0
MAX_UNWRITTEN_KEYS = 20_000  # maximum number of unwritten keys
_BATCH_SIZE = 100
KEEP_FINE = timedelta(days=2)
KEEP_COARSE = timedelta(days=35)
_WRITE = "SELECT count_requests($1, $2, $3, $4, $5, $6, $7, $8)"
_log = logging.getLogger(__name__)

Outcome = tuple[str, str, str, int, str]  # client, operation, door, status, code
_Key = tuple[int, Outcome]  # of a practice


class UsageCounts:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._counts: dict[_Key, int] = {}
        self._noted: list[RequestLabels] = []
        self.step = Step("usage counts", self.flush, every=FLUSH_SECONDS, close=self.flush)

    def observe(self, labels: RequestLabels, _milliseconds: float, _request_id: str | None) -> None:
        """Buffer a request; adding up in batches is cheaper."""
        self._noted.append(labels)
        if len(self._noted) >= _BATCH_SIZE:
            self._add_up()

    def _add_up(self) -> None:
        """Requests without a practice, and those of staff, are not counted."""
        noted, self._noted = self._noted, []
        for labels, requests in Counter(noted).items():
            if labels.practice_id is None or labels.door == "console":
                continue
            client, operation, code = labels.client_id or "", labels.operation or "", labels.code or ""
            self._add((labels.practice_id, (client, operation, labels.door, labels.status, code)), requests)

    def _add(self, key: _Key, requests: int) -> None:
        if key in self._counts or len(self._counts) < MAX_UNWRITTEN_KEYS:
            self._counts[key] = self._counts.get(key, 0) + requests

    async def flush(self) -> None:
        """Write the counts, practice by practice. Counts that were certainly not written are kept."""
        self._add_up()
        counted, self._counts = self._counts, {}
        by_practice: dict[int, dict[Outcome, int]] = {}
        for (practice_id, outcome), requests in counted.items():
            by_practice.setdefault(practice_id, {})[outcome] = requests
        now = self._clock()

        async def write(practice_id: int) -> None:
            outcomes = by_practice.pop(practice_id)
            columns = [list(column) for column in zip(*outcomes, strict=True)]
            try:
                await self._database.write(_WRITE, practice_id, now, *columns, list(outcomes.values()))
            except OutcomeUnknown:
                _log.warning("requests may be missing from the usage counts: the connection was lost")
            except DatabaseUnavailable:
                by_practice[practice_id] = outcomes
                raise

        try:
            await for_each_practice("usage counts", list(by_practice), write)
        finally:
            for practice_id, outcomes in by_practice.items():
                for outcome, requests in outcomes.items():
                    self._add((practice_id, outcome), requests)


async def prune_usage_counts(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` counts of each practice; returns how many, of the practice that had the most."""
    removed = 0

    async def prune(practice_id: int) -> None:
        nonlocal removed
        row = await database.write(
            "SELECT delete_old_request_counts($1, $2, $3, $4) AS n",
            practice_id,
            now - KEEP_FINE,
            now - KEEP_COARSE,
            limit,
        )
        assert row is not None
        removed = max(removed, row["n"])

    fine = await practices_with(database, "old fine counts", now - KEEP_FINE)
    coarse = await practices_with(database, "old coarse counts", now - KEEP_COARSE)
    await for_each_practice("usage count pruning", {*fine, *coarse}, prune)
    return removed
