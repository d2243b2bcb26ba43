"""Pending and recently executed confirmations: who proposed which operation, and its state.

What was proposed is not shown, because it may identify a patient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from frontdesk.desk.actors import actors_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.store.database import Database
from frontdesk.systems.port import KEEP_RESULTS

State = Literal["pending", "executing", "executed", "expired"]
STATES: tuple[State, ...] = ("pending", "executing", "executed", "expired")
MAX_SHOWN = 200

# Forms of the console store their own intents, so that they work once; they are not proposals.
_SELECT = """
SELECT * FROM (
    SELECT client_id, operation, created_at, expires_at, keep_until, result ->> 'appointmentId' AS appointment_id,
        CASE WHEN state = 'consumed' THEN 'executed'
             WHEN state = 'executing' THEN 'executing'
             WHEN expires_at > $4 THEN 'pending'
             ELSE 'expired' END AS shown
    FROM intent
    WHERE practice_id = $1 AND operation NOT LIKE 'console.%' AND ($2::text IS NULL OR client_id = $2)
) AS proposed
WHERE $3::text IS NULL OR shown = $3
ORDER BY created_at DESC LIMIT $5
"""


@dataclass(frozen=True, slots=True)
class Confirmation:
    actor: Actor
    operation: str
    state: State
    proposed_at: datetime
    expires_at: datetime | None  # None: it can no longer be confirmed
    executed_at: datetime | None
    appointment_id: str | None  # of the executed write


@dataclass(frozen=True, slots=True)
class Confirmations:
    database: Database

    async def recent(
        self, context: ActionContext, *, client_id: str | None = None, state: State | None = None
    ) -> Sequence[Confirmation]:
        """The newest first, at most `MAX_SHOWN`."""
        context.require("staff")
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_SELECT, context.practice_id, client_id, state, context.now, MAX_SHOWN)
        named = await actors_of(self.database, context.practice_id, (row["client_id"] for row in rows))
        return [
            Confirmation(
                actor=named[row["client_id"]],
                operation=row["operation"],
                state=row["shown"],
                proposed_at=row["created_at"],
                expires_at=row["expires_at"] if row["shown"] == "pending" else None,
                executed_at=row["keep_until"] - KEEP_RESULTS if row["shown"] == "executed" else None,
                appointment_id=row["appointment_id"],
            )
            for row in rows
        ]
