"""Booking by staff: choose the patient, the visit and the time, then confirm."""

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from frontdesk.console.actions.patients import PatientHits
from frontdesk.console.pages.patients import searched
from frontdesk.console.pages.slot_choice import carried, slot_choice
from frontdesk.console.visit import Page, Visit
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem


async def _find(visit: Visit) -> Response:
    text = visit.form.get("search")
    return await _who(visit, text, *await searched(visit, text))


async def _who(
    visit: Visit,
    text: str = "",
    hits: PatientHits | None = None,
    faults: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    supports = await visit.desk.patients.supports(visit.context)
    if "book_appointment" not in supports:
        raise Problem("capability_not_supported")
    return visit.render(
        "book_who.html",
        title="New booking",
        status=status,
        searchable=await visit.desk.patients.searchable(visit.context),
        can_create="create_patient" in supports,
        text=text,
        hits=hits,
        faults=faults or {},
        carried=carried(visit),
    )


async def _when(visit: Visit) -> Response:
    body = await visit.run("get_patient", {"patientId": visit.param("patient_id")})
    directory = await visit.desk.calendar.directory(visit.context)
    visits = _visits(directory, body["patientKind"])
    chosen = _chosen(visit.request.query_params.get("visit", ""), visits)
    choice = None
    if chosen is not None:
        choice = await slot_choice(visit, visit_type_id=chosen[0], procedure_id=chosen[1])
    return visit.render(
        "book_when.html",
        title="New booking",
        patient=body,
        visits=visits,
        chosen="" if chosen is None else f"{chosen[0]}-{chosen[1]}",
        choice=choice,
        carried=carried(visit),
        choose=f"/console/book/{body['id']}/confirm",
        asked=visit.request.query_params,
    )


async def _confirm(visit: Visit, refused: Problem | None = None) -> Response:
    patient_id = visit.param("patient_id")
    slot_id = visit.form.get("slot") or visit.request.query_params.get("slot", "")
    body = await visit.run("get_patient", {"patientId": patient_id})
    slot = await visit.run("get_slot", {"slotId": slot_id})
    visited = f"{slot['visitTypeId']}-{slot['procedureId']}"
    return visit.render(
        "book_confirm.html",
        title="New booking",
        status=200 if refused is None else refused.status,
        patient=body,
        slot=slot,
        refused=refused,
        again="/console/book/"
        + patient_id
        + "?"
        + urlencode({"visit": visited, "provider": slot["providerId"], "location": slot["locationId"],
                     "date": slot["start"][:10]}),
    )  # fmt: skip


async def _book(visit: Visit) -> Response:
    patient_id, slot_id = visit.param("patient_id"), visit.form.get("slot")
    try:
        made = await visit.run("book_appointment", {"patientId": patient_id, "slotId": slot_id})
    except Problem as problem:
        if problem.code not in ("slot_unavailable", "validation", "conflict", "upstream_unavailable"):
            raise
        return await _confirm(visit, problem)
    slot = await visit.run("get_slot", {"slotId": slot_id})
    there = {"date": slot["start"][:10], "location": slot["locationId"], "show": made["appointmentId"]}
    return visit.redirect("/calendar?" + urlencode(there), notice="appointment_booked")


def _visits(directory: Directory, kind: str) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """Visits that a new or an existing patient can book, grouped by visit type."""
    groups = []
    for visit_type in directory.visit_types.values():
        if visit_type.active and visit_type.patient_kind in ("any", kind):
            offered = [
                (f"{visit_type.id}-{procedure.id}", f"{procedure.name}, {procedure.duration_minutes} min")
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
