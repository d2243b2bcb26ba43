"""Writes that only staff perform: no door offers them, and no scope leads to them."""

from collections.abc import Mapping

from frontdesk.domain.appointments import RECORDABLE
from frontdesk.operations._fields import AppointmentId, WriteInput
from frontdesk.operations._operation import Context, Operation, Proposal
from frontdesk.operations._records import AppointmentWritten
from frontdesk.operations._status_changes import propose_status
from frontdesk.systems.port import Capability


class Request(WriteInput):
    appointment_id: AppointmentId


def _recording(name: str, title: str, status: str) -> Operation:
    async def run(context: Context, given: Request) -> Proposal:
        return await propose_status(context, given.appointment_id, status, RECORDABLE[status])

    return Operation(
        name=f"console.{name}",
        title=title,
        method="POST",
        path="/appointments/{appointmentId}",
        scope=None,
        kind="write",
        needs=Capability.RECORD_ATTENDANCE,
        input=Request,
        output=AppointmentWritten,
        run=run,
    )


RECORDINGS: Mapping[str, Operation] = {
    "arrived": _recording("record_arrived", "Record an arrival", "arrived"),
    "completed": _recording("record_completed", "Record a completed visit", "completed"),
    "noShow": _recording("record_no_show", "Record that a patient did not come", "noShow"),
}
