"""Booking by staff: choose the patient, the visit and the time, then confirm."""

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.chosen_time import NO_OVERRIDE, override_of
from frontdesk.console.pages.patients import search_patients
from frontdesk.console.pages.slot_choice import next_step_query, slot_choice
from frontdesk.desk.patients import PatientHits
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem


async def _find(request: ConsoleRequest) -> Response:
    text = request.form.get("search")
    return await _who(request, text, *await search_patients(request, text))


async def _who(
    request: ConsoleRequest,
    text: str = "",
    hits: PatientHits | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    supports = await request.desk.patients.supports(request.context)
    if "book_appointment" not in supports:
        raise Problem("capability_not_supported")
    return request.render(
        "book_who.html",
        title=_("New booking"),
        status=status,
        searchable=await request.desk.patients.searchable(request.context),
        can_create="create_patient" in supports,
        text=text,
        hits=hits,
        errors=errors or {},
        carried=next_step_query(request),
    )


async def _when(request: ConsoleRequest) -> Response:
    body = await request.run("get_patient", {"patientId": request.param("patient_id")})
    directory = await request.desk.calendar.directory(request.context)
    visits = _visits(directory, body["patientKind"])
    chosen = _chosen(request.http.query_params.get("visit", ""), visits)
    choice = None
    if chosen is not None:
        choice = await slot_choice(request, visit_type_id=chosen[0], procedure_id=chosen[1])
    return request.render(
        "book_when.html",
        title=_("New booking"),
        patient=body,
        visits=visits,
        chosen="" if chosen is None else f"{chosen[0]}-{chosen[1]}",
        choice=choice,
        carried=next_step_query(request),
        choose=f"/console/book/{body['id']}/confirm",
        asked=request.http.query_params,
    )


async def _confirm(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    patient_id = request.param("patient_id")
    slot_id = request.form.get("slot") or request.http.query_params.get("slot", "")
    body = await request.run("get_patient", {"patientId": patient_id})
    slot = await request.run("get_slot", {"slotId": slot_id})
    override = await override_of(request, slot, body["id"]) if refused or not slot["available"] else NO_OVERRIDE
    visited = f"{slot['visitTypeId']}-{slot['procedureId']}"
    return request.render(
        "book_confirm.html",
        title=_("New booking"),
        status=200 if refused is None else refused.status,
        patient=body,
        slot=slot,
        refused=refused,
        **override,
        again="/console/book/"
        + patient_id
        + "?"
        + urlencode({"visit": visited, "provider": slot["providerId"], "location": slot["locationId"],
                     "date": slot["start"][:10]}),
    )  # fmt: skip


async def _book(request: ConsoleRequest) -> Response:
    patient_id, slot_id = request.param("patient_id"), request.form.get("slot")
    try:
        made = await request.run("book_appointment", {"patientId": patient_id, "slotId": slot_id})
    except Problem as problem:
        if problem.code not in ("slot_unavailable", "validation", "conflict", "upstream_unavailable"):
            raise
        return await _confirm(request, problem)
    slot = await request.run("get_slot", {"slotId": slot_id})
    there = {"date": slot["start"][:10], "location": slot["locationId"], "show": made["appointmentId"]}
    return request.redirect("/calendar?" + urlencode(there), notice="appointment_booked")


def _visits(directory: Directory, kind: str) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """Visits that a new or an existing patient can book, grouped by visit type."""
    groups = []
    for visit_type in directory.visit_types.values():
        if visit_type.active and visit_type.patient_kind in ("any", kind):
            offered = [
                (
                    f"{visit_type.id}-{procedure.id}",
                    _("%(visit)s, %(minutes)s min", visit=procedure.name, minutes=procedure.duration_minutes),
                )
                for procedure in visit_type.procedures
                if procedure.active
            ]
            if offered:
                groups.append((visit_type.name, offered))
    return groups


def _chosen(text: str, visits: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> tuple[int, int] | None:
    if not any(text == value for _, offered in visits for value, _ in offered):
        return None
    visit_type, _, procedure = text.partition("-")
    return int(visit_type), int(procedure)


PAGES = (
    Page("GET", "/book", _who),
    Page("POST", "/book", _find),
    Page("GET", "/book/{patient_id}", _when),
    Page("GET", "/book/{patient_id}/confirm", _confirm),
    Page("POST", "/book/{patient_id}", _book),
)
