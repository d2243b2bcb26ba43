"""Makes and ends the link of an appointment that the practice sends to the patient."""

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _


async def _make(request: ConsoleRequest) -> Response:
    """Shows the link in the answer to the form, so that it is in no URL and cannot be opened again."""
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    link = await request.desk.patient_links.make(request.context, view)
    return request.render("patient_link.html", title=_("Patient's link"), view=view, link=link)


async def _end(request: ConsoleRequest) -> Response:
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    await request.desk.patient_links.end(request.context, view)
    return request.redirect(f"/appointments/{view.appointment.id}", notice="patient_link_ended")


PAGES = (
    Page("POST", "/appointments/{appointment_id}/link", _make),
    Page("POST", "/appointments/{appointment_id}/link/end", _end),
)
