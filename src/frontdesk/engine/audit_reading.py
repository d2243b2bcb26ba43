"""The audit trail as its readers see it: records found by what they say, and the chain in its order.

Everything is read in batches, so that a trail of any length needs neither memory nor a long statement.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from frontdesk.engine.audit import seal
from frontdesk.store.database import Database

BATCH = 5000
_FEW = 100

_BOUND = """
SELECT record_id FROM audit_record WHERE practice_id = $1 AND record_id < $2 ORDER BY record_id DESC
OFFSET $3 LIMIT 1
"""
_FOUND = """
SELECT r.*, s.sequence, s.hash FROM audit_record r LEFT JOIN audit_seal s USING (practice_id, record_id)
WHERE r.practice_id = $1 AND r.record_id < $2 AND r.record_id >= $3
  AND ($4::text IS NULL OR r.actor = $4) AND ($5::text IS NULL OR r.operation = $5)
  AND ($6::text IS NULL OR $6 = ANY (r.subject_ids))
ORDER BY r.record_id DESC LIMIT $7
"""
_CHAIN = """
SELECT s.sequence, s.record_id AS sealed_id, s.hash, r.practice_id, r.record_id, r.at, r.actor, r.operation, r.outcome,
       r.subject_ids, r.request_id
FROM audit_seal s LEFT JOIN audit_record r ON r.practice_id = s.practice_id AND r.record_id = s.record_id
WHERE s.practice_id = $1 AND s.sequence > $2 ORDER BY s.sequence LIMIT $3
"""
_AFTER_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records; None: whatever it is."""

    actor: str | None = None
    operation: str | None = None
    subject: str | None = None


async def seal_pending(database: Database, practice_id: int) -> None:
    """Seals what waits for it; records that come in meanwhile may wait a little longer."""
    while await seal(database, practice_id) >= _FEW:
        pass


async def find_records(database: Database, practice_id: int, wanted: Wanted, most: int) -> list[Any]:
    """The newest records that fit, newest first, each with its sequence and hash once it is sealed."""
    found: list[Any] = []
    before = _AFTER_ALL
    while True:
        async with database.transaction(practice_id) as connection:
            first = await connection.fetchval(_BOUND, practice_id, before, BATCH - 1)
            found += await connection.fetch(
                _FOUND,
                practice_id,
                before,
                first or 0,
                wanted.actor,
                wanted.operation,
                wanted.subject,
                most - len(found),
            )
        if first is None or len(found) >= most:
            return found
        before = first


async def sealed_records(database: Database, practice_id: int) -> AsyncIterator[Any]:
    """The chain in its order: a row per seal, with the record it covers; `record_id` is None where that is gone."""
    sequence = 0
    while True:
        async with database.transaction(practice_id) as connection:
            rows = await connection.fetch(_CHAIN, practice_id, sequence, BATCH)
        for row in rows:
            yield row
        if len(rows) < BATCH:
            return
        sequence = rows[-1]["sequence"]
