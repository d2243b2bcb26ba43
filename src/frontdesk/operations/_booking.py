"""What booking, rescheduling and holding share: whether a patient may have a slot now."""

from datetime import timedelta

from frontdesk.domain.appointments import RESCHEDULABLE, Appointment
from frontdesk.domain.booking_rules import patient_rules
from frontdesk.domain.errors import PATIENT_OVERLAP, Problem, declined
from frontdesk.domain.local_time import instant_at
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations._operation import Context
from frontdesk.operations._status_changes import require_state
from frontdesk.systems.changes import Booking
from frontdesk.systems.port import BookingCheck, SlotState


async def bookable(
    context: Context,
    slot: SlotRef | None,
    patient_id: str,
    moved: Appointment | None = None,
    hold_id: str | None = None,
) -> tuple[SlotRef, SlotState]:
    """The slot and its current state. Raises Problem if the patient cannot have it, or `moved` cannot be moved now."""
    checked = None
    if slot is not None:
        checked = await context.system.bookings.check_booking(slot, patient_id, context.now, moved, hold_id)
    if slot is None or checked is None:
        raise Problem("not_found", "There is no such slot.")
    if moved is not None and checked.patient_seen is not None:
        require_state(moved, RESCHEDULABLE, context.now, only_upcoming=True)
    refused = booking_refusal(slot, checked)
    if refused is not None:
        raise refused
    return slot, checked.slot


def booking_refusal(slot: SlotRef, checked: BookingCheck) -> Problem | None:
    """Why the patient cannot have the slot now: the first reason in the contract's order. None: the patient can."""
    if checked.patient_seen is None:
        return Problem("not_found", "There is no such patient.")
    provider = checked.slot.directory.providers[slot.provider_id]
    for broken in patient_rules(provider, checked.slot.visit_type, seen=checked.patient_seen):
        return declined(broken.text)
    if not checked.slot.available:
        return Problem("slot_unavailable")
    if checked.patient_busy:
        return declined(PATIENT_OVERLAP)
    return None


def required_of_patient(slot: SlotRef, state: SlotState) -> bool | None:
    """Whether the practice must have seen the patient before, or must not have; None: either."""
    kind = state.visit_type.patient_kind
    if kind == "any":
        return None if state.directory.providers[slot.provider_id].accepts_new_patients else True
    return kind == "existing"


def booking_of(slot: SlotRef, state: SlotState) -> Booking:
    starts = instant_at(slot.start)
    ends = starts + timedelta(minutes=slot.duration_minutes)
    return Booking(
        provider_id=slot.provider_id,
        location_id=slot.location_id,
        visit_type_id=slot.visit_type_id,
        procedure_id=slot.procedure_id,
        starts_at=starts,
        ends_at=ends,
        busy_until=ends + timedelta(minutes=state.procedure.buffer_after_minutes),
    )
