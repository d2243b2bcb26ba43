"""The links that staff make for patients."""

from dataclasses import dataclass
from datetime import datetime

from frontdesk.desk.actors import actors_of
from frontdesk.desk.appointments import AppointmentView
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.errors import Problem
from frontdesk.features.patient_links.actions import END, MAKE
from frontdesk.features.patient_links.links import MadeLink, end_link, link_address, made_link, make_link
from frontdesk.features.patient_links.my_appointments import BY_LINK
from frontdesk.store.database import Database


@dataclass(frozen=True, slots=True)
class ShownLink:
    made: MadeLink
    by: Actor


@dataclass(frozen=True, slots=True)
class PatientLinks:
    database: Database
    public_url: str

    async def of(self, practice_id: int, appointment_id: str) -> ShownLink | None:
        """The link that was made for an appointment."""
        async with self.database.transaction(practice_id) as connection:
            made = await made_link(connection, practice_id, appointment_id)
        if made is None:
            return None
        return ShownLink(made, (await actors_of(self.database, practice_id, [made.made_by]))[made.made_by])

    async def make(self, context: ActionContext, view: AppointmentView) -> str:
        """The address of a new link, which cannot be shown again."""
        if not may_link(view, context.now):
            raise Problem("conflict", "Only an upcoming appointment of a patient on file can have a link.")
        appointment = view.appointment
        subjects = [appointment.id, appointment.patient_id]
        entry = context.audit.entry(context.practice_id, MAKE.name, subjects)
        token = await make_link(self.database, appointment.id, entry)
        context.seal_soon()
        return link_address(self.public_url, token)

    async def end(self, context: ActionContext, view: AppointmentView) -> None:
        appointment = view.appointment
        subjects = [appointment.id, appointment.patient_id]
        entry = context.audit.entry(context.practice_id, END.name, subjects)
        await end_link(self.database, appointment.id, entry)
        context.seal_soon()


def may_link(view: AppointmentView, now: datetime) -> bool:
    """Whether there is a patient who can still do something by a link."""
    return view.patient is not None and view.appointment.starts_at > now and not view.may.isdisjoint(BY_LINK)
