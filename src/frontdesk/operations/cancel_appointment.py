from typing import Annotated

from pydantic import BeforeValidator, Field

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.appointments import CANCELLABLE
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import AppointmentId, Reason, WriteInput, blank_as_none
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation, Proposal
from frontdesk.operations._records import AppointmentWritten
from frontdesk.operations._status_changes import propose_status
from frontdesk.systems.port import Capability


class Request(WriteInput):
    appointment_id: AppointmentId
    reason: Annotated[
        Reason | None, BeforeValidator(blank_as_none), Field(description="Why, in the person's words.")
    ] = None


async def run(context: Context, given: Request) -> Proposal:
    """Cancels an appointment and frees its time. Offer reschedule_appointment first. The first call only proposes: read
    the patient's name and the appointment back, and after a clear yes call again with the same arguments plus
    confirmationToken. A cancelled appointment cannot be brought back; book a new one instead."""
    return await propose_status(context, given.appointment_id, "cancelled", CANCELLABLE, reason=given.reason)


OPERATION = Operation(
    name="cancel_appointment",
    title="Cancel an appointment",
    audit=AuditSentence("%(actor)s cancelled an appointment", "%(actor)s cancelled an appointment of %(names)s"),
    group=APPOINTMENTS,
    method="POST",
    path="/appointments/{appointmentId}/cancel",
    scope="appointments:cancel",
    kind="write",
    overwrites=True,
    needs=Capability.CHANGE_STATUS,
    input=Request,
    output=AppointmentWritten,
    run=run,
    errors=("not_found", "conflict"),
    example={"appointmentId": examples.APPOINTMENT_ID, "reason": "Travelling that week"},
    example_answer={"appointmentId": examples.APPOINTMENT_ID, "status": "cancelled"},
    example_read_back={**examples.APPOINTMENT_READ_BACK, "reason": "Travelling that week"},
)
