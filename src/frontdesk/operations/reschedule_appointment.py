from datetime import timedelta

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.appointments import RESCHEDULABLE, Appointment
from frontdesk.domain.local_time import instant_at
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations import _examples as examples
from frontdesk.operations._booking import bookable, booking_of
from frontdesk.operations._fields import AppointmentId, SlotId, WriteInput
from frontdesk.operations._lookups import existing_appointment
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation, Proposal
from frontdesk.operations._records import AppointmentWritten, visit_read_back, visit_times
from frontdesk.operations._status_changes import require_state
from frontdesk.systems.changes import ChangeStatus, Reschedule
from frontdesk.systems.port import Capability


class Request(WriteInput):
    appointment_id: AppointmentId
    slot_id: SlotId


async def run(context: Context, given: Request) -> Proposal:
    """Moves an appointment to another open slot; the old time is kept until the move has succeeded. Find the slot with
    search_slots first. The first call only proposes: read the patient's name, the old time (rescheduledFrom) and the
    new time aloud, and after a clear yes call again with the same arguments plus confirmationToken. The moved
    appointment is booked again and its attendance is unconfirmed. Moving it to the slot it already has changes
    nothing."""
    appointment = await existing_appointment(context, given.appointment_id)
    slot = context.slot_ids.decode(given.slot_id)
    change: Reschedule | ChangeStatus
    if slot is not None and _is_own(slot, appointment):  # it may have it, even where nobody could book it now
        require_state(appointment, RESCHEDULABLE, context.now, only_upcoming=True)
        directory = await context.system.directory()
        change = ChangeStatus(
            appointment.id,
            appointment.status,
            (appointment.status,),
            only_upcoming=True,
            starts_at=appointment.starts_at,
        )
    else:
        slot, state = await bookable(context, slot, appointment.patient_id, moved=appointment)
        directory = state.directory
        change = Reschedule(
            state.version,
            appointment.id,
            appointment.patient_id,
            from_provider_id=appointment.provider_id,
            from_states=RESCHEDULABLE,
            booking=booking_of(slot, state),
        )
    read_back = {
        "appointmentId": appointment.id,
        "patientId": appointment.patient_id,
        "slotId": given.slot_id,
        "rescheduledFrom": visit_times(appointment, directory)["start"],
        **visit_read_back(slot, directory),
    }
    return Proposal(read_back, change, appointment.patient_id)


def _is_own(slot: SlotRef, appointment: Appointment) -> bool:
    starts = instant_at(slot.start)
    return (
        slot.provider_id == appointment.provider_id
        and slot.location_id == appointment.location_id
        and slot.visit_type_id == appointment.visit_type_id
        and slot.procedure_id == appointment.procedure_id
        and starts == appointment.starts_at
        and starts + timedelta(minutes=slot.duration_minutes) == appointment.ends_at
    )


OPERATION = Operation(
    name="reschedule_appointment",
    title="Move an appointment",
    audit=AuditSentence("%(actor)s moved an appointment", "%(actor)s moved an appointment of %(names)s"),
    group=APPOINTMENTS,
    method="POST",
    path="/appointments/{appointmentId}/reschedule",
    scope="appointments:book",
    kind="write",
    overwrites=True,
    needs=Capability.RESCHEDULE,
    input=Request,
    output=AppointmentWritten,
    run=run,
    errors=("not_found", "conflict", "slot_unavailable"),
    example={"appointmentId": examples.APPOINTMENT_ID, "slotId": examples.SLOT_ID},
    example_answer={"appointmentId": examples.APPOINTMENT_ID, "status": "booked"},
    example_read_back={
        **examples.PATIENT_NAME,
        "appointmentId": examples.APPOINTMENT_ID,
        "patientId": examples.PATIENT_ID,
        "slotId": examples.SLOT_ID,
        "rescheduledFrom": "2026-11-13T14:30:00-05:00",
        **examples.VISIT_READ_BACK,
    },
)
