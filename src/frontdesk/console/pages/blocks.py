"""Blocked time: list, add, remove. Affected appointments are shown before time is blocked."""

from datetime import datetime

from starlette.responses import Response

from frontdesk.console.forms import Form, labelled_errors, read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.calendar import read_day
from frontdesk.console.panels import block_panels
from frontdesk.console.practice_forms.hours import absence_bounds
from frontdesk.desk.blocks import NOT_HERE, Affected, Block, read_block
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.texts import N_, Text

FIELDS = ("who", "from", "from_time", "to", "to_time", "reason")
LABELS = {"from": N_("From"), "to": N_("To"), "reason": N_("Reason"), "who": N_("Who")}


async def _blocks(request: ConsoleRequest) -> Response:
    asked = request.http.query_params
    given = dict.fromkeys(FIELDS, "")
    provider_id = read_id(asked.get("provider", ""))
    if provider_id is not None:
        given["who"] = f"provider-{provider_id}"
    day = read_day(asked.get("date", ""))
    if day is not None:
        given["from"] = given["to"] = day.isoformat()
    return await _page(request, given)


async def _block(request: ConsoleRequest) -> Response:
    form = request.form
    given = {name: form.get(name) for name in FIELDS}
    try:
        block = block_of(given, request.context.now)
        if form.get("anyway") != "yes":
            affected = await request.desk.blocks.affected(request.context, block)
            if affected.count:
                return await _page(request, given, affected=affected)
        await request.desk.blocks.change(request.context, block)
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _page(request, given, problem=problem)
    return request.redirect("/blocks", notice="time_blocked")


async def _unblock(request: ConsoleRequest) -> Response:
    await request.desk.blocks.change(request.context, _stored(request.form), remove=True)
    return request.redirect("/blocks", notice="time_unblocked")


async def _page(
    request: ConsoleRequest, given: dict[str, str], problem: Problem | None = None, affected: Affected | None = None
) -> Response:
    offered = await request.desk.blocks.offered(request.context)
    directory = await request.desk.calendar.directory(request.context)
    return request.render(
        "blocks.html",
        title=_("Blocked time"),
        status=200 if problem is None else problem.status,
        offered=offered,
        not_here=_(NOT_HERE),
        whom=_whom(directory),
        names=dict(_whom(directory)),
        blocks=await request.desk.blocks.upcoming(request.context) if offered else [],
        given=given,
        affected=affected,
        panels=[] if affected is None else await block_panels(request, given),
        errors={} if problem is None else labelled_errors(problem, LABELS),
    )


def _whom(directory: Directory) -> list[tuple[str, str]]:
    providers = [(f"provider-{each.id}", each.name) for each in directory.providers.values() if each.active]
    locations = [
        (f"location-{each.id}", _("%(location)s, everybody", location=each.name))
        for each in directory.locations.values()
        if each.active
    ]
    return [*providers, *locations]


def block_of(given: dict[str, str], now: datetime) -> Block:
    """Reads the form: a provider's time to the minute or whole days, a location's whole days."""
    kind, place = _place(given["who"])
    if place is None:
        raise invalid([FieldError("who", "required", Text("%(field)s must be chosen"))])
    starts, ends = given["from"], given["to"] or given["from"]
    if kind == "location" and (given["from_time"] or given["to_time"]):
        whole = Text("%(field)s must be a whole day: a location closes for whole days")
        raise invalid([FieldError("from", "range", whole)])
    if kind == "provider":
        starts, ends = absence_bounds(given)
    return read_block(kind, place, starts, ends, given["reason"], now)


def _stored(form: Form) -> Block:
    """A block as the page listed it."""
    kind, place = _place(form.get("who"))
    if place is None:
        raise Problem("not_found", "There is no such provider or location.")
    return read_block(kind, place, form.get("starts"), form.get("ends"))


def _place(text: str) -> tuple[str, int | None]:
    kind, _, number = text.partition("-")
    return kind, read_id(number) if kind in ("provider", "location") else None


PAGES = (
    Page("GET", "/blocks", _blocks),
    Page("POST", "/blocks", _block),
    Page("POST", "/blocks/remove", _unblock),
)
