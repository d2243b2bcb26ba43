"""Appointments: the record, its states, and which steps between them are legal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

# A step is legal from these states. Confirming what is confirmed changes nothing and is no fault.
CANCELLABLE = ("booked", "confirmed")
CONFIRMABLE = ("booked", "confirmed")
RESCHEDULABLE = ("booked", "confirmed")
# What the practice itself records. A slip can be put right; recording the same once more changes nothing.
RECORDABLE = {
    "arrived": ("booked", "confirmed", "arrived", "completed", "noShow"),
    "completed": ("booked", "confirmed", "arrived", "completed"),
    "noShow": ("booked", "confirmed", "arrived", "noShow"),
}


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
    booked_by: str | None = None  # None where the scheduling system does not say


def conflict_detail(status: str, legal: Sequence[str]) -> str:
    """Why a step is refused: the status it is in, or, where that would be legal, that its time has come."""
    if status in legal:
        return "The appointment has already begun or is over."
    if status == "noShow":
        return "The patient did not show up for this appointment."
    return f"The appointment is already {status}."
