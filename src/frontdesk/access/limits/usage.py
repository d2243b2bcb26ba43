"""Counts requests per client, operation and outcome for the usage page.

Counts are added up in memory and flushed periodically. A killed worker loses its last counts; rate limits do not depend
on them.
"""

import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from frontdesk.background import Step
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.practice_work import for_each_practice, practices_with

FLUSH_SECONDS = 2.0
MOST_KEPT = 20_000  # maximum number of unwritten keys
_AT_ONCE = 100
KEEP_FINE = timedelta(days=2)
KEEP_COARSE = timedelta(days=35)
_log = logging.getLogger(__name__)

Outcome = tuple[str, str, str, int, str]  # client, operation, door, status, code
_Key = tuple[int | None, str | None, str | None, str, int, str | None]  # the practice, then the same


class Answered(Protocol):
    """The counted labels of an answered request."""

    @property
    def door(self) -> str: ...
    @property
    def operation(self) -> str | None: ...
    @property
    def practice_id(self) -> int | None: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def status(self) -> int: ...
    @property
    def code(self) -> str | None: ...


class UsageCounts:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._counts: dict[_Key, int] = {}
        self._noted: list[Answered] = []
        self.step = Step("usage counts", self.flush, every=FLUSH_SECONDS, close=self.flush)

    def observe(self, labels: Answered, _milliseconds: float, _request_id: str | None) -> None:
        """Buffer a request; adding up in batches is cheaper."""
        self._noted.append(labels)
        if len(self._noted) >= _AT_ONCE:
            self._add_up()

    def _add_up(self) -> None:
        """Requests without a practice, and those of staff, are not counted."""
        noted, self._noted = self._noted, []
        for labels, requests in Counter(noted).items():
            if labels.practice_id is None or labels.door == "console":
                continue
            key = (labels.practice_id, labels.client_id, labels.operation, labels.door, labels.status, labels.code)
            self._add(key, requests)

    def _add(self, key: _Key, requests: int) -> None:
        if key in self._counts or len(self._counts) < MOST_KEPT:
            self._counts[key] = self._counts.get(key, 0) + requests

    async def flush(self) -> None:
        """Write the counts, practice by practice. Counts that were certainly not written are kept."""
        self._add_up()
        counted, self._counts = self._counts, {}
        by_practice: dict[int, dict[Outcome, int]] = {}
        for (practice_id, client_id, operation, door, status, code), requests in counted.items():
            assert practice_id is not None
            outcome = (client_id or "", operation or "", door, status, code or "")
            by_practice.setdefault(practice_id, {})[outcome] = requests
        now = self._clock()

        async def write(practice_id: int) -> None:
            outcomes = by_practice.pop(practice_id)
            try:
                await self._write(practice_id, now, outcomes)
            except OutcomeUnknown:
                _log.warning("requests may be missing from the usage counts: the connection was lost")
            except DatabaseUnavailable:
                by_practice[practice_id] = outcomes
                raise

        try:
            await for_each_practice("usage counts", list(by_practice), write)
        finally:
            for practice_id, outcomes in by_practice.items():
                self._put_back(practice_id, outcomes)

    async def _write(self, practice_id: int, now: datetime, outcomes: dict[Outcome, int]) -> None:
        columns = [list(column) for column in zip(*outcomes, strict=True)]
        await self._database.write(
            "SELECT count_requests($1, $2, $3, $4, $5, $6, $7, $8)", practice_id, now, *columns, list(outcomes.values())
        )

    def _put_back(self, practice_id: int, outcomes: dict[Outcome, int]) -> None:
        for (client_id, operation, door, status, code), requests in outcomes.items():
            self._add((practice_id, client_id or None, operation or None, door, status, code or None), requests)


async def prune_usage_counts(database: Database, now: datetime, most: int) -> int:
    """Removes at most `most` counts of each practice; returns how many."""
    removed = 0

    async def prune(practice_id: int) -> None:
        nonlocal removed
        row = await database.write(
            "SELECT forget_requests($1, $2, $3, $4) AS n", practice_id, now - KEEP_FINE, now - KEEP_COARSE, most
        )
        assert row is not None
        removed += row["n"]

    fine = await practices_with(database, "old fine counts", now - KEEP_FINE)
    coarse = await practices_with(database, "old coarse counts", now - KEEP_COARSE)
    await for_each_practice("usage count pruning", {*fine, *coarse}, prune)
    return removed
