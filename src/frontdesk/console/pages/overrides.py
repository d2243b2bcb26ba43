"""Booking against the rules: what would be broken is read back and booked with a reason; walk-ins likewise, for now."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from starlette.responses import Response

from frontdesk.console.forms import labelled_errors, read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.calendar import read_day
from frontdesk.console.pages.chosen_time import (
    SHOWN_ON_FORM,
    ChosenTime,
    all_visits,
    chosen_time,
    occurrence_choices,
    read_clock,
    visit_of,
)
from frontdesk.console.pages.patients import search_changed, search_to_choose
from frontdesk.console.times import FIRST, SECOND
from frontdesk.desk.appointments import AppointmentView
from frontdesk.desk.calendar import shown_locations
from frontdesk.desk.patients import PatientHits
from frontdesk.domain.booking_rules import BrokenRule
from frontdesk.domain.directory import Directory, Procedure, VisitType
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import zone
from frontdesk.texts import N_

_CARRIED = ("provider", "location", "date", "time", "visit", "patient", "appointment", "arrived")
_ASKED = ("provider", "location", "date", "time", "occurrence", "visit", "reason", "arrived")
_LABELS = {"reason": N_("The reason")}
_ROUNDED = 5  # minutes


async def _override(request: ConsoleRequest) -> Response:
    """Reads the booking or the move back, and carries it out once it is confirmed."""
    form = request.form
    directory = await request.desk.calendar.directory(request.context)
    chosen, visit = chosen_time(directory, {name: form.get(name) for name in _CARRIED}), None
    view: AppointmentView | None = None
    if form.get("appointment"):
        view = await request.desk.appointments.read(request.context, form.get("appointment"))
        visit = visit_of(directory, f"{view.appointment.visit_type_id}-{view.appointment.procedure_id}")
    else:
        visit = visit_of(directory, form.get("visit"))
    if visit is None:
        raise Problem("not_found", "There is no such visit.")
    if not form.get("sure"):
        return await _read_back(request, chosen, visit, view)
    given: dict[str, Any] = {  # arguments of either action
        "slot_id": chosen.slot_id(request, *visit),
        "rules": form.all("rule"),
        "reason": form.get("reason"),
        "key": form.get("key"),
    }
    overrides = request.desk.overrides
    try:
        if view is not None:
            await overrides.move(request.context, appointment_id=view.appointment.id, **given)
            return request.redirect(f"/appointments/{view.appointment.id}", notice="override_moved")
        arrived = bool(form.get("arrived"))
        made = await overrides.book(request.context, patient_id=form.get("patient"), arrived=arrived, **given)
    except Problem as problem:
        if problem.code not in SHOWN_ON_FORM:
            raise
        return await _read_back(request, chosen, visit, view, problem)
    if arrived:
        return request.redirect(f"/arrivals?location={chosen.location.id}", notice="walk_in_arrived")
    return request.redirect(f"/appointments/{made}", notice="override_booked")


async def _read_back(
    request: ConsoleRequest,
    chosen: ChosenTime,
    visit: tuple[VisitType, Procedure],
    view: AppointmentView | None,
    refused: Problem | None = None,
) -> Response:
    form = request.form
    patient_id = form.get("patient") if view is None else view.appointment.patient_id
    patient = await request.run("get_patient", {"patientId": patient_id})
    moved = None if view is None else view.appointment
    broken: Sequence[BrokenRule] | None = None
    try:
        broken = await request.desk.overrides.broken_rules(request.context, chosen.slot(*visit), patient["id"], moved)
    except Problem as problem:
        if problem.code not in SHOWN_ON_FORM:
            raise
        refused = problem
    slot = await request.run("get_slot", {"slotId": chosen.slot_id(request, *visit)})
    errors = {} if refused is None else labelled_errors(refused, _LABELS)
    return request.render(
        "override_confirm.html",
        title=_("Book against the rules") if view is None else _("Move against the rules"),
        status=200 if refused is None else refused.status,
        patient=patient,
        born=date.fromisoformat(patient["dob"]),
        view=view,
        slot=slot,
        broken=broken,
        reason=form.get("reason"),
        arrived=bool(form.get("arrived")),
        errors=errors,
        refused=refused,
        fields={name: form.get(name) for name in _CARRIED if form.get(name)} | chosen.fields,
    )


async def _walk_in(request: ConsoleRequest) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    return await _walk_in_page(request, directory, _now_here(request, directory))


async def _check_walk_in(request: ConsoleRequest) -> Response:
    """Searches the patient, or reads back the visit of the one who was chosen."""
    form = request.form
    directory = await request.desk.calendar.directory(request.context)
    asked = {name: form.get(name) for name in _ASKED}
    visit = visit_of(directory, asked["visit"])
    if form.get("patient") and visit is not None and not search_changed(form):
        return await _read_back(request, chosen_time(directory, asked), visit, None)
    hits, errors, status = await search_to_choose(request)
    return await _walk_in_page(request, directory, asked, hits=hits, errors=errors, status=status)


async def _walk_in_page(
    request: ConsoleRequest,
    directory: Directory,
    asked: Mapping[str, str],
    *,
    hits: PatientHits | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    if not await request.desk.overrides.offered(request.context):
        raise Problem("capability_not_supported", "Walk-ins are booked in the practice's own system.")
    location = shown_locations(directory, read_id(asked["location"]))[0]
    day, clock = read_day(asked["date"]), read_clock(asked["time"])
    return request.render(
        "walk_in.html",
        title=_("Walk-in"),
        status=status,
        asked=asked,
        day=asked["date"],
        occurrences=[] if day is None or clock is None else occurrence_choices(day, clock, location),
        locations=[(each.id, each.name) for each in directory.locations.values() if each.active],
        providers=[(each.id, each.name) for each in directory.providers.values() if each.active],
        visits=[
            (key, _("%(visit)s, %(minutes)s min", visit=procedure.name, minutes=procedure.duration_minutes))
            for key, procedure, _visit_type in all_visits(directory)
        ],
        text=request.form.get("search"),
        patient_id=request.form.get("patient"),
        hits=hits,
        errors=errors or {},
    )


def _now_here(request: ConsoleRequest, directory: Directory) -> dict[str, str]:
    """A walk-in at the location asked for, or the first one, at its own time."""
    location = shown_locations(directory, read_id(request.http.query_params.get("location", "")))[0]
    here, now = zone(location.time_zone), request.context.now
    # Subtracted before it is local: local datetimes forget their fold.
    local: datetime = (now - timedelta(minutes=now.astimezone(here).minute % _ROUNDED)).astimezone(here)
    return {
        "provider": "",
        "location": str(location.id),
        "date": local.date().isoformat(),
        "time": f"{local:%H:%M}",
        "occurrence": SECOND if local.fold else FIRST,
        "visit": "",
        "reason": _("Walk-in"),
        "arrived": "yes",
    }


PAGES = (
    Page("POST", "/override", _override),
    Page("GET", "/walk-in", _walk_in),
    Page("POST", "/walk-in", _check_walk_in),
)
