"""One appointment: details, history, and the actions on it."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from starlette.responses import Response

from frontdesk.console.audit_sentences import operation_title
from frontdesk.console.consent_texts import consent_texts
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.chosen_time import NO_OVERRIDE, override_of
from frontdesk.console.pages.slot_choice import slot_choice
from frontdesk.console.panels import About, panels_on
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_

_STEPS: Mapping[str, tuple[str, str]] = {
    "confirm": ("confirm_attendance", "attendance_confirmed"),
    "cancel": ("cancel_appointment", "appointment_cancelled"),
}
_RECORDED = {"arrived": "arrival_recorded", "completed": "visit_completed", "noShow": "no_show_recorded"}
# What was done, and what was attempted.
DONE: Mapping[str, tuple[str, str]] = {
    "book_appointment": (N_("Booked"), N_("Booking")),
    "confirm_attendance": (N_("Attendance confirmed"), N_("Confirming attendance")),
    "cancel_appointment": (N_("Cancelled"), N_("Cancelling")),
    "reschedule_appointment": (N_("Moved"), N_("Moving")),
    "console.record_arrived": (N_("Arrived"), N_("Recording the arrival")),
    "console.record_completed": (N_("Completed"), N_("Recording the visit")),
    "console.record_no_show": (N_("Recorded as no-show"), N_("Recording a no-show")),
    "console.call_in": (N_("With the provider"), N_("Calling in")),
    "console.return_to_waiting": (N_("Waiting again"), N_("Returning to waiting")),
    "console.move_back": (N_("Moved back"), N_("Moving back")),
    "console.restore_appointment": (N_("Undone: booked again"), N_("Undoing")),
    "console.override_booking": (N_("Booked against the rules"), N_("Booking against the rules")),
    "console.override_move": (N_("Moved against the rules"), N_("Moving against the rules")),
}


async def appointment_page(request: ConsoleRequest, refused: Problem | None = None, reason: str = "") -> Response:
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    about = About(view.appointment.patient_id, view, ZoneInfo(view.zone))
    return request.render(
        "appointment.html",
        title=_("Appointment"),
        status=200 if refused is None else refused.status,
        view=view,
        appointment=view.appointment,
        refused=refused,
        reason=reason,
        record_text=record_text,
        panels=await panels_on(request, about),
        agreed=consent_texts(),
    )


async def _step(request: ConsoleRequest) -> Response:
    appointment_id = request.param("appointment_id")
    operation, notice = _STEPS[request.http.scope["path"].rpartition("/")[2]]
    arguments: dict[str, object] = {"appointmentId": appointment_id}
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
        title=_("Move appointment"),
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
        title=_("Move appointment"),
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


def record_text(operation: str, outcome: str) -> str:
    """An audit record in words."""
    done, trying = map(_, DONE[operation]) if operation in DONE else (operation_title(operation),) * 2
    if outcome == "executed":
        return done
    if outcome == "unchanged":
        return _("%(done)s (nothing changed)", done=done)
    if outcome == "confirmation_required":
        return _("%(act)s was proposed", act=trying)
    if outcome in ("confirmation_incomplete", "incomplete"):
        return _("%(act)s: the outcome is not known yet", act=trying)
    return _("%(act)s was refused (%(code)s)", act=trying, code=outcome.replace("_", " "))


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
