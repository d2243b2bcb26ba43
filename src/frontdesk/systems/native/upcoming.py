"""The future appointments of a native calendar, read and cancelled in the transaction of a change to the practice."""

from collections.abc import Iterable
from datetime import datetime

from frontdesk.audit.trail import AuditContext
from frontdesk.domain.appointments import CANCELLABLE, Appointment
from frontdesk.store.connection import Connection
from frontdesk.systems.changes import ChangeStatus
from frontdesk.systems.native import rows
from frontdesk.systems.native.changes import as_json

_UPCOMING = """SELECT * FROM appointment
    WHERE practice_id = $1 AND starts_at > $2 AND status = ANY ($3) ORDER BY starts_at, appointment_id"""
_LOCK = (
    "SELECT FROM appointment WHERE practice_id = $1 AND appointment_id = ANY ($2) ORDER BY appointment_id FOR UPDATE"
)
_COMMIT = "SELECT outcome FROM commit_write($1, $2, $3, $4, 'cancel_appointment', $5, $6, NULL, false, NULL, $6)"


async def upcoming_appointments(connection: Connection, practice_id: int, now: datetime) -> list[Appointment]:
    """The appointments that patients still expect, by their start."""
    found = await connection.fetch(_UPCOMING, practice_id, now, list(CANCELLABLE))
    return [rows.appointment(row) for row in found]


async def cancel_appointments(
    connection: Connection, practice_id: int, appointment_ids: Iterable[str], reason: str, audit: AuditContext
) -> None:
    """Cancels appointments, with an audit record and an event each, as cancel_appointment does."""
    ids = list(appointment_ids)
    # All of them before the first change locks its provider's calendar, as writes of clients do.
    await connection.execute(_LOCK, practice_id, ids)
    for each in ids:
        change = ChangeStatus(each, "cancelled", CANCELLABLE, only_upcoming=True, reason=reason)
        data = as_json(change, {})
        await connection.execute(_COMMIT, practice_id, change.kind, data, audit.actor, audit.request_id, audit.now)
