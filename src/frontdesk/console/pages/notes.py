"""Adds and removes notes, from the page of a patient or an appointment."""

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.pages.appointments import appointment_page
from frontdesk.console.pages.patients import patient_page
from frontdesk.domain.errors import Problem

_REFUSALS = ("validation", "conflict")


async def _add_to_patient(request: ConsoleRequest) -> Response:
    view = await request.desk.patients.read(request.context, request.param("patient_id"))
    try:
        await _add(request, view.patient.id, None)
    except Problem as problem:
        if problem.code not in _REFUSALS:
            raise
        return await patient_page(request, problem, request.form)
    return request.redirect(f"/patients/{view.patient.id}", notice="note_added")


async def _add_to_appointment(request: ConsoleRequest) -> Response:
    """On the appointment or, if the form says so, on its patient."""
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    about = None if request.form.get("about") == "patient" else view.appointment.id
    try:
        await _add(request, view.appointment.patient_id, about)
    except Problem as problem:
        if problem.code not in _REFUSALS:
            raise
        return await appointment_page(request, problem, note=request.form)
    return request.redirect(f"/appointments/{view.appointment.id}", notice="note_added")


async def _add(request: ConsoleRequest, patient_id: str, appointment_id: str | None) -> None:
    kind, text, key = (request.form.get(name) for name in ("kind", "text", "key"))
    for_agents = request.form.get("for_agents") == "yes"
    await request.desk.notes.add(request.context, patient_id, appointment_id, kind, text, key, for_agents=for_agents)


async def _remove(request: ConsoleRequest) -> Response:
    patient_id, appointment_id = request.param("patient_id"), request.form.get("appointment")
    await request.desk.notes.remove(request.context, patient_id, request.form.get("note"))
    back = f"/appointments/{appointment_id}" if appointment_id else f"/patients/{patient_id}"
    return request.redirect(back, notice="note_removed")


PAGES = (
    Page("POST", "/patients/{patient_id}/notes", _add_to_patient),
    Page("POST", "/patients/{patient_id}/notes/remove", _remove),
    Page("POST", "/appointments/{appointment_id}/notes", _add_to_appointment),
)
