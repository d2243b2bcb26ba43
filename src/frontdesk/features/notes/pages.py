"""Shows, adds and removes notes on the pages of patients and appointments."""

from collections.abc import Mapping

from starlette.responses import Response

from frontdesk.console.forms import NOTHING_SENT
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.pages.appointments import appointment_page
from frontdesk.console.pages.patients import patient_page
from frontdesk.console.panels import About, Panel
from frontdesk.domain.errors import Problem
from frontdesk.features.notes.notes import KINDS, Notes
from frontdesk.texts import N_

NOTICES = {"note_added": N_("The note has been added."), "note_removed": N_("The note has been removed.")}
_REFUSALS = ("validation", "conflict")


async def _add_to_patient(request: ConsoleRequest) -> Response:
    view = await request.desk.patients.read(request.context, request.param("patient_id"))
    try:
        await _add(request, view.patient.id, None)
    except Problem as problem:
        if problem.code not in _REFUSALS:
            raise
        return await patient_page(request, problem)
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
        return await appointment_page(request, problem)
    return request.redirect(f"/appointments/{view.appointment.id}", notice="note_added")


async def _add(request: ConsoleRequest, patient_id: str, appointment_id: str | None) -> None:
    kind, text, key = (request.form.get(name) for name in ("kind", "text", "key"))
    for_agents = request.form.get("for_agents") == "yes"
    await request.services[Notes].add(
        request.context, patient_id, appointment_id, kind, text, key, for_agents=for_agents
    )


async def _remove(request: ConsoleRequest) -> Response:
    patient_id, appointment_id = request.param("patient_id"), request.form.get("appointment")
    await request.services[Notes].remove(request.context, patient_id, request.form.get("note"))
    back = f"/appointments/{appointment_id}" if appointment_id else f"/patients/{patient_id}"
    return request.redirect(back, notice="note_removed")


async def _values(request: ConsoleRequest, about: About) -> Mapping[str, object]:
    services, practice_id = request.services[Notes], request.context.practice_id
    notes = await services.on_patients(practice_id, [about.patient_id])
    shown = [note for note in notes if note.appointment_id in (None, about.appointment_id)]
    is_refused = request.page in PAGES
    return {
        "about": about,
        "notes": shown,
        "authors": await services.authors(practice_id, shown),
        "kinds": KINDS,
        "typed": request.form if is_refused else NOTHING_SENT,
    }


PANEL = Panel("notes/panel.html", _values)
PAGES = (
    Page("POST", "/patients/{patient_id}/notes", _add_to_patient),
    Page("POST", "/patients/{patient_id}/notes/remove", _remove),
    Page("POST", "/appointments/{appointment_id}/notes", _add_to_appointment),
)
