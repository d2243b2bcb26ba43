from frontdesk.audit.sentences import AuditSentence
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import AppointmentId, Input
from frontdesk.operations._lookups import existing_appointment
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation
from frontdesk.operations._records import AppointmentRecord, appointment_body
from frontdesk.systems.port import Capability


class Request(Input):
    appointment_id: AppointmentId


async def run(context: Context, given: Request) -> dict[str, object]:
    """Reads one appointment with names, local time and its history of confirmation, move and cancellation. Call it
    before confirm_attendance, reschedule_appointment or cancel_appointment, and to verify a booking."""
    appointment = await existing_appointment(context, given.appointment_id)
    return appointment_body(appointment, await context.system.directory())


OPERATION = Operation(
    name="get_appointment",
    title="Read one appointment",
    audit=AuditSentence("%(actor)s read an appointment", "%(actor)s read an appointment of %(names)s"),
    group=APPOINTMENTS,
    path="/appointments/{appointmentId}",
    scope="appointments:read",
    needs=Capability.READ_APPOINTMENTS,
    input=Request,
    output=AppointmentRecord,
    run=run,
    errors=("not_found",),
    reads_phi=True,
    example={"appointmentId": examples.APPOINTMENT_ID},
    example_answer={
        **examples.APPOINTMENT,
        **examples.NAMES,
        "createdAt": "2026-11-15T08:00:00Z",
        "updatedAt": "2026-11-15T08:00:00Z",
    },
)
