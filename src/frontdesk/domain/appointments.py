"""The appointment record, its states and the legal transitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.domain.local_time import local_date, minute_of
from frontdesk.texts import N_

# Legal states before each transition. Confirming a confirmed appointment changes nothing.
CANCELLABLE = ("booked", "confirmed")
CONFIRMABLE = ("booked", "confirmed")
RESCHEDULABLE = ("booked", "confirmed")
# Transitions that staff record. Mistakes can be corrected, and recording the same state again changes nothing.
RECORDABLE = {
    "arrived": ("booked", "confirmed", "arrived", "completed", "noShow"),
    "completed": ("booked", "confirmed", "arrived", "completed"),
    "noShow": ("booked", "confirmed", "arrived", "noShow"),
}
_BEGUN = N_("The appointment has already begun or is over.")
_CONFLICTS = {
    "booked": N_("The appointment is already booked."),
    "confirmed": N_("The appointment is already confirmed."),
    "arrived": N_("The patient has already arrived."),
    "completed": N_("The appointment is already completed."),
    "noShow": N_("The patient did not show up for this appointment."),
    "cancelled": N_("The appointment is already cancelled."),
}
# States that staff take back: the appointment is booked or confirmed again.
RESTORABLE = ("confirmed", "arrived", "completed", "noShow", "cancelled")


@dataclass(frozen=True, slots=True)
class Appointment:
    id: str
    patient_id: str
    provider_id: int
    location_id: int
    visit_type_id: int
    procedure_id: int
    status: str
    starts_at: datetime
    ends_at: datetime
    created_at: datetime
    updated_at: datetime
    attendance_confirmed_at: datetime | None = None
    cancelled_at: datetime | None = None
    cancellation_reason: str | None = None
    rescheduled_from: datetime | None = None
    booked_by: str | None = None  # None if the scheduling system does not record it
    of_several: bool = False  # other patients take part, for whom this one does not decide


def has_come(appointment: Appointment, time_zone: str, now: datetime, status: str) -> bool:
    """Patients arrive on the day; whether a visit took place shows once it should have begun."""
    if status != "arrived":
        return appointment.starts_at <= now
    day, today = (local_date(minute_of(moment), time_zone) for moment in (appointment.starts_at, now))
    return day <= today


def restored_status(appointment: Appointment) -> str:
    """The status before what is taken back: a confirmation, or whatever came after it."""
    if appointment.status == "confirmed" or appointment.attendance_confirmed_at is None:
        return "booked"
    return "confirmed"


def conflict_detail(status: str, legal: Sequence[str]) -> str:
    """Why a transition is refused: the current status or, if that is legal, the time of the appointment."""
    return _BEGUN if status in legal else _CONFLICTS[status]
