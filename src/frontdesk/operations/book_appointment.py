from dataclasses import replace
from functools import partial

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import PATIENT_ID, new_appointment_id
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations import _examples as examples
from frontdesk.operations._booking import (
    bookable,
    booking_of,
    booking_refusal,
    required_of_patient,
)
from frontdesk.operations._fields import PatientId, SlotId, WriteInput
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation, Proposal
from frontdesk.operations._records import Record, visit_read_back
from frontdesk.systems.changes import Book
from frontdesk.systems.port import BookingCheck, BookingSeen, Capability, SlotState


class Request(WriteInput):
    patient_id: PatientId
    slot_id: SlotId


class Output(Record):
    appointment_id: str


async def run(context: Context, given: Request) -> Proposal:
    """Books an open slot for a patient. Call get_slot first. The first call only proposes: read provider, location,
    weekday and local time from the readBack aloud, and after a clear yes call again with the same arguments plus
    confirmationToken. On slot_unavailable search again; never book another slot without asking."""
    return await propose(context, given.patient_id, given.slot_id, context.slot_ids.decode(given.slot_id))


async def propose(
    context: Context, patient_id: str, slot_id: str, slot: SlotRef | None, *, hold_id: str | None = None
) -> Proposal:
    """Books the slot, or the time that the hold keeps. Reads the calendar only for a slot that is not offered as far as
    the directory in memory tells."""
    if not PATIENT_ID.match(patient_id):
        raise Problem("not_found", "There is no such patient.")
    context.subjects.append(patient_id)
    own = context.system.own_calendar
    state = None if slot is None or own is None else await own.slot_by_hours(slot, context.now)
    if slot is None or state is None or not state.available:
        slot, state = await bookable(context, slot, patient_id, hold_id=hold_id)
    change = Book(
        state.version,
        new_appointment_id(),
        patient_id,
        booking_of(slot, state),
        required_of_patient(slot, state),
        hold_id,
    )
    read_back = {"patientId": patient_id, "slotId": slot_id, **visit_read_back(slot, state.directory)}
    return Proposal(read_back, change, refusal=partial(_refusal, slot, state))


def _refusal(slot: SlotRef, state: SlotState, seen: BookingSeen) -> Problem | None:
    state = replace(state, available=seen.available)
    return booking_refusal(slot, BookingCheck(state, seen.patient_seen, seen.patient_busy))


OPERATION = Operation(
    name="book_appointment",
    title="Book an appointment",
    audit=AuditSentence("%(actor)s booked an appointment", "%(actor)s booked an appointment for %(names)s"),
    group=APPOINTMENTS,
    method="POST",
    path="/appointments",
    scope="appointments:book",
    kind="write",
    creates=True,
    needs=Capability.BOOK,
    input=Request,
    output=Output,
    run=run,
    checked_at_commit=True,
    errors=("not_found", "slot_unavailable"),
    example={"patientId": examples.PATIENT_ID, "slotId": examples.SLOT_ID},
    example_answer={"appointmentId": examples.APPOINTMENT_ID},
    example_read_back={"patientId": examples.PATIENT_ID, "slotId": examples.SLOT_ID, **examples.VISIT_READ_BACK},
)
