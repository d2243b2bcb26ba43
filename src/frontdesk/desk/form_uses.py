"""A form that makes a secret works once: sent again, it changes nothing and shows no secret."""

import hashlib

from frontdesk.audit.trail import AuditRecorder
from frontdesk.desk.context import ActionContext
from frontdesk.store.connection import Connection
from frontdesk.systems.port import KEEP_RESULTS

_CLAIM = """
INSERT INTO intent (practice_id, intent_id, client_id, operation, fingerprint, state, result, created_at, expires_at,
    keep_until)
VALUES ($1, $2, $3, $4, '', 'consumed', jsonb_build_object('clientId', $5::text), $6, $7, $7)
ON CONFLICT DO NOTHING RETURNING true
"""
_CLAIMED = "SELECT result ->> 'clientId' FROM intent WHERE practice_id = $1 AND intent_id = $2"


class SecretShown(Exception):
    """The form was sent before, and its secret was shown then."""

    def __init__(self, made_id: str) -> None:
        super().__init__(made_id)
        self.made_id = made_id


def recorder_once(context: ActionContext, operation: str, once: str) -> AuditRecorder:
    """Commits the audit record and the use of the form with what the form makes. Raises SecretShown.

    Refuses who is no longer an admin by then: the secret would outlive their access.
    """

    async def record(connection: Connection, practice_id: int, made_id: str) -> None:
        await context.require_in(connection, "admin")
        await context.record_in(connection, operation, made_id)
        staff_id, now = context.staff.staff_id, context.now
        form = hashlib.sha256(f"{staff_id}\n{once}".encode()).digest()
        if not await connection.fetchval(
            _CLAIM, practice_id, form, staff_id, operation, made_id, now, now + KEEP_RESULTS
        ):
            raise SecretShown(await connection.fetchval(_CLAIMED, practice_id, form))

    return record
