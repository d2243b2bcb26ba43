from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.appointments import CONFIRMABLE
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import AppointmentId, WriteInput
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation, Proposal
from frontdesk.operations._records import AppointmentWritten
from frontdesk.operations._status_changes import propose_status
from frontdesk.systems.port import Capability


class Request(WriteInput):
    appointment_id: AppointmentId


async def run(context: Context, given: Request) -> Proposal:
    """Records that the patient will attend an upcoming appointment. Find it with list_appointments; never confirm for a
    person who has not said that they will come. Confirming twice changes nothing. The first call only proposes: read
    the patient's name and the appointment back, and after a clear yes call again with the same arguments plus
    confirmationToken."""
    return await propose_status(context, given.appointment_id, "confirmed", CONFIRMABLE, only_upcoming=True)


OPERATION = Operation(
    name="confirm_attendance",
    title="Confirm attendance",
    audit=AuditSentence(
        "%(actor)s confirmed the attendance at an appointment", "%(actor)s confirmed that %(names)s will attend"
    ),
    group=APPOINTMENTS,
    method="POST",
    path="/appointments/{appointmentId}/confirm",
    scope="appointments:confirm",
    kind="write",
    needs=Capability.CHANGE_STATUS,
    input=Request,
    output=AppointmentWritten,
    run=run,
    errors=("not_found", "conflict"),
    example={"appointmentId": examples.APPOINTMENT_ID},
    example_answer={"appointmentId": examples.APPOINTMENT_ID, "status": "confirmed"},
    example_read_back=examples.APPOINTMENT_READ_BACK,
)
