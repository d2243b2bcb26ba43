"""Writes that only staff perform: no door offers them, and no scope includes them."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.appointments import RECORDABLE, RESCHEDULABLE, RESTORABLE, restored_status
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.operations._booking import booking_of
from frontdesk.operations._fields import AppointmentId, Reason, SlotId, WriteInput, blank_as_none
from frontdesk.operations._lookups import existing_appointment
from frontdesk.operations._operation import Context, Given, Operation, Proposal
from frontdesk.operations._records import AppointmentWritten, visit_read_back
from frontdesk.operations._status_changes import propose_status, require_state
from frontdesk.systems.changes import CallIn, Reschedule
from frontdesk.systems.port import Capability
from frontdesk.texts import Text

UNDO = timedelta(minutes=1)  # so long a step is taken back without a reason


class Request(WriteInput):
    appointment_id: AppointmentId


class RestoreRequest(Request):
    reason: Annotated[Reason | None, BeforeValidator(blank_as_none)] = None


class MoveBackRequest(Request):
    slot_id: SlotId


def _staff_write(
    name: str,
    title: str,
    audit: AuditSentence,
    request: type[Given],
    run: Callable[[Context, Given], Awaitable[Proposal]],
) -> Operation[Given, Proposal]:
    return Operation(
        name=f"console.{name}",
        title=title,
        audit=audit,
        method="POST",
        path="/appointments/{appointmentId}",
        scope=None,
        kind="write",
        needs=Capability.RECORD_ATTENDANCE,
        input=request,
        output=AppointmentWritten,
        run=run,
    )


def _recording(name: str, title: str, audit: AuditSentence, status: str) -> Operation:
    async def run(context: Context, given: Request) -> Proposal:
        return await propose_status(context, given.appointment_id, status, RECORDABLE[status])

    return _staff_write(name, title, audit, Request, run)


async def _restore(context: Context, given: RestoreRequest) -> Proposal:
    appointment = await existing_appointment(context, given.appointment_id)
    if appointment.status not in RESTORABLE:
        raise Problem("conflict", "There is nothing to undo: the appointment is booked.")
    if given.reason is None and context.now - appointment.updated_at > UNDO:
        raise invalid([FieldError("reason", "required", Text("%(field)s is required: this was recorded a while ago"))])
    status = restored_status(appointment)
    return await propose_status(context, appointment.id, status, (appointment.status,), reason=given.reason)


async def _move_back(context: Context, given: MoveBackRequest) -> Proposal:
    """Moves an appointment to a time that it had, even if the provider's time is blocked now. Whether the time is free
    is checked by the statement that commits it."""
    appointment = await existing_appointment(context, given.appointment_id)
    require_state(appointment, RESCHEDULABLE, context.now, only_upcoming=True)
    slot, patient_id = context.slot_ids.decode(given.slot_id), appointment.patient_id
    checked = (
        None
        if slot is None
        else await context.system.bookings.check_booking(slot, patient_id, context.now, appointment)
    )
    if slot is None or checked is None:
        raise Problem("not_found", "There is no such slot.")
    if slot.start * 60 <= context.now.timestamp():
        raise Problem("conflict", "The earlier time has passed.")
    if not checked.slot.directory.providers[slot.provider_id].active:
        raise Problem("slot_unavailable")
    change = Reschedule(
        checked.slot.version,
        appointment.id,
        patient_id,
        from_provider_id=appointment.provider_id,
        from_states=RESCHEDULABLE,
        booking=booking_of(slot, checked.slot),
    )
    read_back = {"appointmentId": appointment.id, **visit_read_back(slot, checked.slot.directory)}
    return Proposal(read_back, change, patient_id)


def _calling(name: str, title: str, audit: AuditSentence, *, called: bool) -> Operation:
    async def run(context: Context, given: Request) -> Proposal:
        appointment = await existing_appointment(context, given.appointment_id)
        require_state(appointment, ("arrived",), context.now, only_upcoming=False)
        read_back = {
            "appointmentId": appointment.id,
            "patientId": appointment.patient_id,
            **visit_read_back(appointment, await context.system.directory()),
        }
        return Proposal(read_back, CallIn(appointment.id, called), appointment.patient_id)

    return _staff_write(name, title, audit, Request, run)


CALL_IN = _calling(
    "call_in",
    "Record that a patient is with the provider",
    AuditSentence("%(actor)s called a patient in", "%(actor)s called in %(names)s"),
    called=True,
)
RETURN_TO_WAITING = _calling(
    "return_to_waiting",
    "Record that a patient waits again",
    AuditSentence("%(actor)s sent a patient back to wait", "%(actor)s sent %(names)s back to wait"),
    called=False,
)
RESTORE = _staff_write(
    "restore_appointment",
    "Undo a status change or a cancellation",
    AuditSentence(
        "%(actor)s undid a status change of an appointment",
        "%(actor)s undid a status change of an appointment of %(names)s",
    ),
    RestoreRequest,
    _restore,
)
MOVE_BACK = _staff_write(
    "move_back",
    "Move an appointment back to the time before",
    AuditSentence(
        "%(actor)s moved an appointment back to the time before",
        "%(actor)s moved an appointment of %(names)s back to the time before",
    ),
    MoveBackRequest,
    _move_back,
)
RECORDINGS: Mapping[str, Operation] = {
    "arrived": _recording(
        "record_arrived",
        "Record an arrival",
        AuditSentence("%(actor)s recorded an arrival", "%(actor)s recorded the arrival of %(names)s"),
        "arrived",
    ),
    "completed": _recording(
        "record_completed",
        "Record a completed visit",
        AuditSentence("%(actor)s recorded a completed visit", "%(actor)s recorded a completed visit of %(names)s"),
        "completed",
    ),
    "noShow": _recording(
        "record_no_show",
        "Record that a patient did not come",
        AuditSentence(
            "%(actor)s recorded that a patient did not come", "%(actor)s recorded that %(names)s did not come"
        ),
        "noShow",
    ),
}
