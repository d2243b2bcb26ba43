"""Patients: search, show, add, edit. Searches are POSTs, so that no URL holds a name."""

from starlette.responses import Response

from frontdesk.console.forms import Form, labelled_errors
from frontdesk.console.guard import ConsoleRequest, Page, path_and_query
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.slot_choice import next_step_query
from frontdesk.console.panels import About, panels_on
from frontdesk.desk.patients import PatientHits
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_

FIELDS = ("firstName", "lastName", "dob", "phone", "email")
_LABELS = {
    "firstName": N_("First name"),
    "lastName": N_("Last name"),
    "dob": N_("Date of birth"),
    "phone": N_("Phone"),
    "email": N_("E-mail"),
}
_CHANGED = N_("Somebody else has changed the same field meanwhile. Check the fields, and save again.")


async def _search(request: ConsoleRequest) -> Response:
    if not await request.desk.patients.searchable(request.context):
        return await _match(request)
    text = request.form.get("search")
    hits, errors, status = await search_patients(request, text)
    return await _search_page(request, text=text, hits=hits, errors=errors, status=status)


async def search_patients(request: ConsoleRequest, text: str) -> tuple[PatientHits | None, dict[str, str], int]:
    """The patients found, or the errors of the search text, with the status."""
    try:
        return await request.desk.patients.search(request.context, text), {}, 200
    except Problem as problem:
        if problem.code != "validation":
            raise
        return None, labelled_errors(problem, _LABELS), problem.status


def search_changed(form: Form) -> bool:
    """Whether the text to search is another than the one that the shown patients were found by."""
    return form.all("searched") not in ([], [form.get("search")])


async def search_to_choose(request: ConsoleRequest) -> tuple[PatientHits | None, dict[str, str], int]:
    """Searches for a form in which one of the patients found is chosen. Asks for it if they were shown before."""
    form = request.form
    hits, errors, status = await search_patients(request, form.get("search"))
    if hits is not None and hits.items and form.all("searched") == [form.get("search")] and not form.get("patient"):
        return hits, {"patient": _("Choose the patient.")}, 422
    return hits, errors, status


async def _match(request: ConsoleRequest) -> Response:
    """Matches all four fields, if the scheduling system cannot search."""
    given = {name: request.form.get(name) for name in FIELDS if name != "email"}
    try:
        found = await request.run("match_patient", given)
    except Problem as problem:
        if problem.code not in ("validation", "not_found"):
            raise
        missed = problem.code == "not_found"
        return await _search_page(
            request, given=given, errors=labelled_errors(problem, _LABELS), status=problem.status, missed=missed
        )
    return request.redirect(f"/patients/{found['items'][0]['id']}")


async def _search_page(
    request: ConsoleRequest,
    *,
    text: str = "",
    given: dict[str, str] | None = None,
    hits: PatientHits | None = None,
    errors: dict[str, str] | None = None,
    missed: bool = False,
    status: int = 200,
) -> Response:
    return request.render(
        "patients.html",
        title=_("Patients"),
        status=status,
        searchable=await request.desk.patients.searchable(request.context),
        can_create="create_patient" in await request.desk.patients.supports(request.context),
        text=text,
        given=given or dict.fromkeys(FIELDS, ""),
        hits=hits,
        errors=errors or {},
        missed=missed,
    )


async def patient_page(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    view = await request.desk.patients.read(request.context, request.param("patient_id"))
    return request.render(
        "patient.html",
        title=_("Patient"),
        status=200 if refused is None else refused.status,
        refused=refused,
        view=view,
        patient=view.patient,
        panels=await panels_on(request, About(view.patient.id, None, request.zone)),
    )


async def _new(request: ConsoleRequest) -> Response:
    return _form_page(request, dict.fromkeys(FIELDS, ""))


async def _create(request: ConsoleRequest) -> Response:
    given = {name: request.form.get(name) for name in FIELDS}
    arguments = {name: value for name, value in given.items() if value or name != "email"}
    try:
        made = await request.run("create_patient", arguments)
    except Problem as problem:
        if problem.code not in ("validation", "conflict"):
            raise
        return _form_page(request, given, problem)
    if request.http.query_params.get("then") == "book":
        return request.redirect(f"/book/{made['patientId']}{next_step_query(request)}", notice="patient_created")
    return request.redirect(f"/patients/{made['patientId']}", notice="patient_created")


async def _edit(request: ConsoleRequest) -> Response:
    body = await request.run("get_patient", {"patientId": request.param("patient_id")})
    now = {name: body.get(name, "") for name in FIELDS}
    return _form_page(request, now, patient_id=body["id"], shown=now)


async def _update(request: ConsoleRequest) -> Response:
    patient_id = request.param("patient_id")
    before = await request.run("get_patient", {"patientId": patient_id})
    now = {name: before.get(name, "") for name in FIELDS}
    given = {name: request.form.get(name) for name in FIELDS}
    shown = {name: request.form.get(f"shown-{name}") for name in FIELDS}  # when the form was opened
    changed = {name: value for name, value in given.items() if value != shown[name]}
    if any(shown[name] != now[name] for name in changed):
        return _form_page(request, {**now, **changed}, Problem("conflict", _CHANGED), patient_id, now)
    if not changed:
        return request.redirect(f"/patients/{patient_id}", notice="nothing_changed")
    removed = {"email": None} if changed.get("email") == "" else {}
    try:
        await request.run("update_patient", {"patientId": patient_id, **changed, **removed})
    except Problem as problem:
        if problem.code not in ("validation", "conflict"):
            raise
        return _form_page(request, given, problem, patient_id, shown)
    return request.redirect(f"/patients/{patient_id}", notice="patient_changed")


def _form_page(
    request: ConsoleRequest,
    given: dict[str, str],
    problem: Problem | None = None,
    patient_id: str | None = None,
    shown: dict[str, str] | None = None,
) -> Response:
    """`shown`: of a patient who is edited, the values by which a change is recognized."""
    return request.render(
        "patient_form.html",
        title=_("New patient") if patient_id is None else _("Edit patient"),
        status=200 if problem is None else problem.status,
        patient_id=patient_id,
        given=given,
        shown=shown or {},
        errors={} if problem is None else labelled_errors(problem, _LABELS),
        problem=problem,
        action=path_and_query(request.http),
    )


PAGES = (
    Page("GET", "/patients", _search_page),
    Page("POST", "/patients", _search),
    Page("GET", "/patients/new", _new),
    Page("POST", "/patients/new", _create),
    Page("GET", "/patients/{patient_id}", patient_page),
    Page("GET", "/patients/{patient_id}/edit", _edit),
    Page("POST", "/patients/{patient_id}/edit", _update),
)
