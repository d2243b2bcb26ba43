"""The links that staff make for patients."""

from dataclasses import dataclass

from frontdesk.access.patient_links import end_link, link_address, make_link
from frontdesk.desk.appointments import AppointmentView
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database


@dataclass(frozen=True, slots=True)
class PatientLinks:
    database: Database
    public_url: str

    async def make(self, context: ActionContext, view: AppointmentView) -> str:
        """The address of a new link, which cannot be shown again."""
        if not view.may_link:
            raise Problem("conflict", "Only an upcoming appointment of a patient on file can have a link.")
        appointment = view.appointment
        subjects = [appointment.id, appointment.patient_id]
        entry = context.audit.entry(context.practice_id, "console.new_patient_link", subjects)
        token = await make_link(self.database, appointment.id, entry)
        context.seal_soon()
        return link_address(self.public_url, token)

    async def end(self, context: ActionContext, view: AppointmentView) -> None:
        appointment = view.appointment
        subjects = [appointment.id, appointment.patient_id]
        entry = context.audit.entry(context.practice_id, "console.end_patient_link", subjects)
        await end_link(self.database, appointment.id, entry)
        context.seal_soon()
