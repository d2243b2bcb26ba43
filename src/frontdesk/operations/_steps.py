"""Status changes of appointments: whether one is legal, and its proposal."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.domain.appointments import Appointment, conflict_detail
from frontdesk.domain.errors import Problem
from frontdesk.operations._operation import Context, Proposal
from frontdesk.operations._records import visit_read_back
from frontdesk.systems.changes import ChangeStatus


def require_state(appointment: Appointment, states: Sequence[str], now: datetime, *, only_upcoming: bool) -> None:
    if appointment.status not in states or (only_upcoming and appointment.starts_at <= now):
        raise Problem("conflict", conflict_detail(appointment.status, states))


async def status_proposal(context: Context, appointment: Appointment, change: ChangeStatus) -> Proposal:
    """The proposal of a status change, with the appointment as the readBack."""
    require_state(appointment, change.from_states, context.now, only_upcoming=change.only_upcoming)
    read_back = {
        "appointmentId": appointment.id,
        "patientId": appointment.patient_id,
        "status": appointment.status,
        **visit_read_back(appointment, await context.system.directory()),
    }
    if change.reason is not None:
        read_back["reason"] = change.reason
    return Proposal(read_back, change)
