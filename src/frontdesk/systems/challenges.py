"""Stores challenges, which are the same in every scheduling system."""

from typing import Any

import orjson

from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.systems.port import ChallengeRecord, SystemUnavailable


async def issue_challenge(
    database: Database, practice_id: int, record: ChallengeRecord, booking: str | None = None
) -> Any:
    """The row of the database function of this name. `booking` is one for the native calendar, as JSON."""
    try:
        return await database.fetchrow(
            "SELECT * FROM issue_challenge($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            practice_id,
            record.intent.id,
            record.actor,
            record.operation,
            record.intent.fingerprint,
            record.now,
            record.expires_at,
            record.subjects,
            record.request_id,
            orjson.dumps(record.limits).decode(),
            booking,
            record.challenge,
            None if record.proposal is None else orjson.dumps(record.proposal).decode(),
        )
    except DatabaseUnavailable as error:
        raise SystemUnavailable from error
