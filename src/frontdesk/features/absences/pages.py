"""A provider who is away: the appointments with their new times, the steps, and the list of whom to call."""

from starlette.responses import Response

from frontdesk.console.forms import labelled_errors, read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.blocks import FIELDS, LABELS, block_of
from frontdesk.console.pages.calendar import read_day
from frontdesk.desk.blocks import NOT_HERE, Affected
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import zone
from frontdesk.features.absences.absences import Absences
from frontdesk.texts import N_

_CHOICE = "choice-"


async def _new(request: ConsoleRequest) -> Response:
    """The form, filled in from the address: today's absence begins now."""
    asked = request.http.query_params
    given = dict.fromkeys(FIELDS, "")
    provider_id = read_id(asked.get("provider", ""))
    first, last = (read_day(asked.get(name, "")) for name in ("date", "to"))
    if provider_id is not None:
        given["who"] = f"provider-{provider_id}"
    if first is not None:
        given["from"], given["to"] = first.isoformat(), (last or first).isoformat()
        now = request.context.now.astimezone(zone(request.session.time_zone))
        if first == now.date():
            given["from_time"] = f"{now:%H:%M}"
    if not (given["who"] and given["from"]):
        return await _form(request, given)
    return await _show(request, given)


async def _start(request: ConsoleRequest) -> Response:
    given = {name: request.form.get(name) for name in FIELDS}
    if request.form.get("do") != "start":
        return await _show(request, given)
    try:
        absence_id = await request.services[Absences].start(request.context, block_of(given, request.context.now))
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _form(request, given, problem=problem)
    return request.redirect(f"/away/{absence_id}")


async def _show(request: ConsoleRequest, given: dict[str, str]) -> Response:
    """The form with the appointments in this time."""
    try:
        affected = await request.desk.blocks.affected(request.context, block_of(given, request.context.now))
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _form(request, given, problem=problem)
    return await _form(request, given, affected=affected)


async def _form(
    request: ConsoleRequest, given: dict[str, str], problem: Problem | None = None, affected: Affected | None = None
) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    return request.render(
        "absences/new.html",
        title=_("A provider is away"),
        status=200 if problem is None else problem.status,
        given=given,
        affected=affected,
        offered=await request.desk.blocks.offered(request.context),
        not_here=_(NOT_HERE),
        whom=[(f"provider-{each.id}", each.name) for each in directory.providers.values() if each.active],
        errors={} if problem is None else labelled_errors(problem, LABELS),
    )


async def _absence(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    view = await request.services[Absences].read(request.context, request.param("absence_id"))
    return request.render(
        "absences/absence.html",
        title=_("%(provider)s is away", provider=view.provider),
        status=200 if refused is None else refused.status,
        view=view,
        absence=view.absence,
        refused=refused,
        not_here=_(NOT_HERE),
        here=f"/console/away/{view.absence.absence_id}",
    )


async def _apply(request: ConsoleRequest) -> Response:
    """Stores the choices of the form, if it has any, and executes what is not executed yet."""
    absence_id, fields = request.param("absence_id"), request.form.fields
    chosen = {name.removeprefix(_CHOICE): values[0] for name, values in fields.items() if name.startswith(_CHOICE)}
    try:
        if chosen:
            await request.services[Absences].choose(request.context, absence_id, chosen)
        await request.services[Absences].work(request.context, absence_id)
    except Problem as problem:
        return await _refused(request, problem)
    return request.redirect(f"/away/{absence_id}")


async def _undo(request: ConsoleRequest) -> Response:
    absence_id = request.param("absence_id")
    appointment_id = None if request.form.get("all") == "yes" else request.form.get("appointment")
    try:
        await request.services[Absences].take_back(request.context, absence_id, appointment_id)
        await request.services[Absences].work(request.context, absence_id)
    except Problem as problem:
        return await _refused(request, problem)
    return request.redirect(f"/away/{absence_id}")


async def _refused(request: ConsoleRequest, problem: Problem) -> Response:
    if problem.code == "not_found":
        raise problem
    return await _absence(request, problem)


async def _calls(request: ConsoleRequest) -> Response:
    view = await request.services[Absences].read(request.context, request.param("absence_id"), "call_list")
    return request.render("absences/call_list.html", title=_("Whom to call"), view=view, absence=view.absence)


async def _record_call(request: ConsoleRequest) -> Response:
    absence_id, form, called = request.param("absence_id"), request.form, request.form.get("called") == "yes"
    await request.services[Absences].record_call(
        request.context, absence_id, form.get("appointment"), form.get("place"), called=called
    )
    return request.redirect(f"/away/{absence_id}/calls", notice="call_recorded" if called else "call_withdrawn")


NOTICES = {
    "call_recorded": N_("The call has been recorded."),
    "call_withdrawn": N_("The call is open again."),
}
PAGES = (
    Page("GET", "/away", _new),
    Page("POST", "/away", _start),
    Page("GET", "/away/{absence_id}", _absence),
    Page("POST", "/away/{absence_id}/apply", _apply),
    Page("POST", "/away/{absence_id}/undo", _undo),
    Page("GET", "/away/{absence_id}/calls", _calls),
    Page("POST", "/away/{absence_id}/calls", _record_call),
)
