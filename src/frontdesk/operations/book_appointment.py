from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import PATIENT_ID, new_appointment_id
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations import _examples as examples
from frontdesk.operations._booking import bookable, booking_of, required_of_patient
from frontdesk.operations._fields import PatientId, SlotId, WriteInput
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation, Proposal
from frontdesk.operations._records import Record, visit_read_back
from frontdesk.systems.changes import Book
from frontdesk.systems.port import Capability, SlotState


class Request(WriteInput):
    patient_id: PatientId
    slot_id: SlotId


class Output(Record):
    appointment_id: str


async def run(context: Context, given: Request) -> Proposal:
    """Books an open slot for a patient. Call get_slot first. The first call only proposes: read provider, location,
    weekday and local time from the readBack aloud, and after a clear yes call again with the same arguments plus
    confirmationToken. On slot_unavailable search again; never book another slot without asking."""
    if not PATIENT_ID.match(given.patient_id):
        raise Problem("not_found", "There is no such patient.")
    context.subjects.append(given.patient_id)
    slot, checked = await bookable(context, given.slot_id, given.patient_id)
    return _proposal(given, slot, checked.slot, checked.version, unchecked=False)


async def run_unchecked(context: Context, given: Request) -> Proposal | None:
    slot = context.slot_ids.decode(given.slot_id)
    found = None if slot is None else await context.system.slot_by_hours(slot, context.now)
    if slot is None or found is None or not found[0].available or not PATIENT_ID.match(given.patient_id):
        return None
    context.subjects.append(given.patient_id)
    return _proposal(given, slot, *found, unchecked=True)


def _proposal(given: Request, slot: SlotRef, state: SlotState, version: int, *, unchecked: bool) -> Proposal:
    change = Book(
        version,
        new_appointment_id(),
        given.patient_id,
        booking_of(slot, state),
        required_of_patient(slot, state),
        unchecked,
    )
    read_back = visit_read_back(slot, state.directory)
    return Proposal({"patientId": given.patient_id, "slotId": given.slot_id, **read_back}, change)


OPERATION = Operation(
    name="book_appointment",
    title="Book an appointment",
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
    run_unchecked=run_unchecked,
    errors=("not_found", "slot_unavailable"),
    example={"patientId": examples.PATIENT_ID, "slotId": examples.SLOT_ID},
    example_answer={"appointmentId": examples.APPOINTMENT_ID},
    example_read_back={"patientId": examples.PATIENT_ID, "slotId": examples.SLOT_ID, **examples.VISIT_READ_BACK},
)
