"""One appointment: details, history, and the actions on it."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from frontdesk.console.actions.notes import KINDS
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.pages.chosen_time import NO_OVERRIDE, override_of
from frontdesk.console.pages.slot_choice import slot_choice
from frontdesk.domain.errors import Problem

_STEPS: Mapping[str, tuple[str, str]] = {
    "confirm": ("confirm_attendance", "attendance_confirmed"),
    "cancel": ("cancel_appointment", "appointment_cancelled"),
}
_RECORDED = {"arrived": "arrival_recorded", "completed": "visit_completed", "noShow": "no_show_recorded"}
# What was done, and what was attempted.
DONE: Mapping[str, tuple[str, str]] = {
    "book_appointment": ("Booked", "Booking"),
    "confirm_attendance": ("Attendance confirmed", "Confirming attendance"),
    "cancel_appointment": ("Cancelled", "Cancelling"),
    "reschedule_appointment": ("Moved", "Moving"),
    "console.record_arrived": ("Arrived", "Recording the arrival"),
    "console.record_completed": ("Completed", "Recording the visit"),
    "console.record_no_show": ("Recorded as no-show", "Recording a no-show"),
    "console.call_in": ("With the provider", "Calling in"),
    "console.return_to_waiting": ("Waiting again", "Returning to waiting"),
    "console.move_back": ("Moved back", "Moving back"),
    "console.restore_appointment": ("Undone: booked again", "Undoing"),
    "console.override_booking": ("Booked against the rules", "Booking against the rules"),
    "console.override_move": ("Moved against the rules", "Moving against the rules"),
}


AGREED = {
    "token": "confirmed by the agent",
    "elicitation": "agreed when the assistant asked",
    "card": "agreed on a card",
    "link": "agreed by the patient's link",
}


async def appointment_page(
    request: ConsoleRequest, refused: Problem | None = None, reason: str = "", note: str = ""
) -> Response:
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    return request.render(
        "appointment.html",
        title="Appointment",
        status=200 if refused is None else refused.status,
        view=view,
        appointment=view.appointment,
        refused=refused,
        reason=reason,
        note=note,
        happened=happened,
        note_kinds=KINDS,
        agreed=AGREED,
    )


async def _step(request: ConsoleRequest) -> Response:
    appointment_id = request.param("appointment_id")
    operation, notice = _STEPS[request.http.scope["path"].rpartition("/")[2]]
    arguments: dict[str, Any] = {"appointmentId": appointment_id}
    reason = request.form.get("reason")
    if reason and operation == "cancel_appointment":
        arguments["reason"] = reason
    try:
        await request.run(operation, arguments)
    except Problem as problem:
        return await _refused(request, problem, reason)
    return request.redirect(f"/appointments/{appointment_id}", notice=notice)


async def _record(request: ConsoleRequest) -> Response:
    form = request.form
    appointment_id, status = request.param("appointment_id"), form.get("status")
    try:
        await request.desk.appointments.record(request.context, appointment_id, status, form.get("key"))
    except Problem as problem:
        return await _refused(request, problem)
    return request.redirect(f"/appointments/{appointment_id}", notice=_RECORDED[status])


async def _undo(request: ConsoleRequest) -> Response:
    appointment_id, reason = request.param("appointment_id"), request.form.get("reason")
    try:
        await request.desk.appointments.restore(request.context, appointment_id, reason, request.form.get("key"))
    except Problem as problem:
        return await _refused(request, problem, reason)
    return request.redirect(f"/appointments/{appointment_id}", notice="appointment_restored")


async def _move(request: ConsoleRequest) -> Response:
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    appointment = view.appointment
    if "reschedule_appointment" not in view.may:
        raise Problem("conflict", "This appointment can no longer be moved.")
    choice = await slot_choice(
        request,
        visit_type_id=appointment.visit_type_id,
        procedure_id=appointment.procedure_id,
        provider_id=appointment.provider_id,
        location_id=appointment.location_id,
        day=view.start.date(),
    )
    return request.render(
        "move.html",
        title="Move appointment",
        view=view,
        choice=choice,
        choose=f"/console/appointments/{appointment.id}/move/confirm",
    )


async def _confirm_move(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    slot_id = request.form.get("slot") or request.http.query_params.get("slot", "")
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    slot = await request.run("get_slot", {"slotId": slot_id})
    override = NO_OVERRIDE
    if refused or not slot["available"]:
        override = await override_of(request, slot, view.appointment.patient_id, view.appointment)
    return request.render(
        "move_confirm.html",
        title="Move appointment",
        status=200 if refused is None else refused.status,
        view=view,
        slot=slot,
        refused=refused,
        **override,
    )


async def _do_move(request: ConsoleRequest) -> Response:
    appointment_id = request.param("appointment_id")
    arguments = {"appointmentId": appointment_id, "slotId": request.form.get("slot")}
    try:
        await request.run("reschedule_appointment", arguments)
    except Problem as problem:
        if problem.code in ("slot_unavailable", "validation", "conflict", "upstream_unavailable"):
            return await _confirm_move(request, problem)
        raise
    return request.redirect(f"/appointments/{appointment_id}", notice="appointment_moved")


async def _refused(request: ConsoleRequest, problem: Problem, reason: str = "") -> Response:
    """Shows the refusal on the appointment's page, if the appointment exists."""
    if problem.code == "not_found":
        raise problem
    return await appointment_page(request, problem, reason)


def happened(operation: str, outcome: str) -> str:
    """An audit record in words."""
    done, trying = DONE.get(operation, (operation, operation))
    if outcome == "executed":
        return done
    if outcome == "unchanged":
        return f"{done} (nothing changed)"
    if outcome == "confirmation_required":
        return f"{trying} was proposed"
    if outcome in ("confirmation_incomplete", "incomplete"):
        return f"{trying}: the outcome is not known yet"
    return f"{trying} was refused ({outcome.replace('_', ' ')})"


PAGES = (
    Page("GET", "/appointments/{appointment_id}", appointment_page),
    Page("POST", "/appointments/{appointment_id}/confirm", _step),
    Page("POST", "/appointments/{appointment_id}/cancel", _step),
    Page("POST", "/appointments/{appointment_id}/record", _record),
    Page("POST", "/appointments/{appointment_id}/undo", _undo),
    Page("GET", "/appointments/{appointment_id}/move", _move),
    Page("GET", "/appointments/{appointment_id}/move/confirm", _confirm_move),
    Page("POST", "/appointments/{appointment_id}/move", _do_move),
)
