"""Makes and ends the link of an appointment that the practice sends to the patient."""

from collections.abc import Mapping

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.panels import About, Panel
from frontdesk.features.patient_links.making import PatientLinks, may_link
from frontdesk.texts import N_


async def _make(request: ConsoleRequest) -> Response:
    """Shows the link in the answer to the form, so that it is in no URL and cannot be opened again."""
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    link = await request.services[PatientLinks].make(request.context, view)
    return request.render("patient_links/made.html", title=_("Patient's link"), view=view, link=link)


async def _end(request: ConsoleRequest) -> Response:
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    await request.services[PatientLinks].end(request.context, view)
    return request.redirect(f"/appointments/{view.appointment.id}", notice="patient_link_ended")


async def _values(request: ConsoleRequest, about: About) -> Mapping[str, object] | None:
    view = about.appointment
    if view is None or not may_link(view, request.context.now):
        return None
    return {"link": await request.services[PatientLinks].of(request.context.practice_id, view.appointment.id)}


NOTICES = {"patient_link_ended": N_("The patient's link no longer works.")}
PANEL = Panel("patient_links/panel.html", _values, place="actions")
PAGES = (
    Page("POST", "/appointments/{appointment_id}/link", _make),
    Page("POST", "/appointments/{appointment_id}/link/end", _end),
)
