"""The delivery log, and replaying deliveries."""

from dataclasses import dataclass
from datetime import datetime

from frontdesk.audit.trail import AuditRecorder
from frontdesk.outbound.webhooks.endpoints import WebhookError, show_endpoint
from frontdesk.store.database import Database

STATES = ("pending", "delivered", "dead")

_SELECT = """
SELECT d.event_id, o.type, o.occurred_at, d.state, d.attempts,
       CASE WHEN d.state = 'pending' THEN d.due_at END AS due_at, a.at, a.status, a.milliseconds, a.failure
FROM webhook_delivery d
JOIN outbox o ON o.practice_id = d.practice_id AND o.event_id = d.event_id
LEFT JOIN webhook_attempt a
  ON a.practice_id = d.practice_id AND a.endpoint_id = d.endpoint_id AND a.event_id = d.event_id AND a.attempt_id = (
      SELECT max(t.attempt_id) FROM webhook_attempt t
      WHERE t.practice_id = d.practice_id AND t.endpoint_id = d.endpoint_id AND t.event_id = d.event_id
  )
WHERE d.practice_id = $1 AND d.endpoint_id = $2 AND d.state = ANY ($3::text[])
ORDER BY d.event_id DESC LIMIT $4
"""
_ATTEMPTS = """
SELECT at, status, milliseconds, failure FROM webhook_attempt
WHERE practice_id = $1 AND endpoint_id = $2 AND event_id = $3 ORDER BY attempt_id
"""
# A pending delivery is not replayed. The caller's clock may be ahead of the database's, by which deliveries are due.
_REPLAY = """
UPDATE webhook_delivery SET state = 'pending', attempts = 0, holder = '', due_at = least($4, now())
WHERE practice_id = $1 AND endpoint_id = $2
  AND CASE WHEN $3::bigint IS NULL THEN state = 'dead' ELSE event_id = $3 AND state <> 'pending' END
RETURNING event_id
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    at: datetime
    status: int | None
    milliseconds: int
    failure: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    event_id: int
    type: str
    occurred_at: datetime
    state: str
    attempts: int
    due_at: datetime | None  # next attempt; None if there is none
    last: Attempt | None


async def list_deliveries(database: Database, endpoint_id: str, state: str | None, limit: int) -> list[Delivery]:
    """The newest deliveries, newest first."""
    endpoint = await show_endpoint(database, endpoint_id)
    async with database.transaction(endpoint.practice_id) as connection:
        rows = await connection.fetch(_SELECT, endpoint.practice_id, endpoint_id, [state] if state else STATES, limit)
    # The columns of a delivery, then those of its last attempt.
    return [Delivery(*(*row[:6], None if row["at"] is None else Attempt(*row[6:]))) for row in rows]


async def list_attempts(database: Database, endpoint_id: str, event_id: int) -> list[Attempt]:
    endpoint = await show_endpoint(database, endpoint_id)
    async with database.transaction(endpoint.practice_id) as connection:
        rows = await connection.fetch(_ATTEMPTS, endpoint.practice_id, endpoint_id, event_id)
    return [Attempt(**row) for row in rows]


async def replay(
    database: Database, endpoint_id: str, event_id: int | None, now: datetime, *, recorder: AuditRecorder | None = None
) -> list[int]:
    """Send all dead letters again, or one event that is dead or delivered; returns the event ids."""
    endpoint = await show_endpoint(database, endpoint_id)
    async with database.transaction(endpoint.practice_id) as connection:
        rows = await connection.fetch(_REPLAY, endpoint.practice_id, endpoint_id, event_id, now)
        if recorder is not None and rows:
            await recorder(connection, endpoint.practice_id, endpoint_id)
    if event_id is not None and not rows:
        raise WebhookError(
            "This event is still pending at this endpoint, or was never sent to it: there is nothing to replay."
        )
    return sorted(row["event_id"] for row in rows)
