"""Status changes of appointments: whether one is legal, and its proposal."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.domain.appointments import Appointment, conflict_detail
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import weekday
from frontdesk.operations._operation import Proposal
from frontdesk.operations._records import appointment_names, appointment_summary_body
from frontdesk.systems.changes import ChangeStatus


def require_state(appointment: Appointment, states: Sequence[str], now: datetime, *, only_upcoming: bool) -> None:
    if appointment.status not in states or (only_upcoming and appointment.starts_at <= now):
        raise Problem("conflict", conflict_detail(appointment.status, states))


def status_proposal(appointment: Appointment, directory: Directory, change: ChangeStatus) -> Proposal:
    """The proposal of a status change, with the appointment as the readBack."""
    summary = appointment_summary_body(appointment, directory)
    names = appointment_names(appointment, directory)
    read_back = {
        "appointmentId": appointment.id,
        "patientId": appointment.patient_id,
        "status": appointment.status,
        "start": summary["start"],
        "end": summary["end"],
        **names,
        "weekday": weekday(int(appointment.starts_at.timestamp()) // 60, names["timeZone"]),
    }
    if change.reason is not None:
        read_back["reason"] = change.reason
    return Proposal(read_back, change)
