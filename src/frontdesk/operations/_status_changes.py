"""Status changes of appointments: whether one is legal, and its proposal."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.domain.appointments import RECORDABLE, Appointment, conflict_detail, has_come
from frontdesk.domain.errors import Problem, declined
from frontdesk.operations._lookups import existing_appointment
from frontdesk.operations._operation import Context, Proposal
from frontdesk.operations._records import visit_read_back
from frontdesk.systems.changes import ChangeStatus


def require_state(appointment: Appointment, states: Sequence[str], now: datetime, *, only_upcoming: bool) -> None:
    if appointment.status not in states or (only_upcoming and appointment.starts_at <= now):
        raise Problem("conflict", conflict_detail(appointment.status, states))
    if appointment.of_several:
        raise declined(
            "Other patients take part in this appointment. It can be changed in the practice's own system only."
        )


async def propose_status(
    context: Context,
    appointment_id: str,
    status: str,
    from_states: tuple[str, ...],
    *,
    only_upcoming: bool = False,
    reason: str | None = None,
) -> Proposal:
    """The proposal of a status change, with the appointment as the readBack."""
    appointment = await existing_appointment(context, appointment_id)
    require_state(appointment, from_states, context.now, only_upcoming=only_upcoming)
    read_back = {
        "appointmentId": appointment.id,
        "patientId": appointment.patient_id,
        "status": appointment.status,
        **visit_read_back(appointment, await context.system.directory()),
    }
    if status in RECORDABLE and not has_come(appointment, str(read_back["timeZone"]), context.now, status):
        raise Problem("conflict", "The appointment has not begun yet.")
    if reason is not None:
        read_back["reason"] = reason
    change = ChangeStatus(appointment.id, status, from_states, only_upcoming, reason, appointment.starts_at)
    return Proposal(read_back, change, appointment.patient_id)
