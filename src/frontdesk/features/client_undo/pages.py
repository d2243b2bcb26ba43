"""What a client did since a time, before and while it is undone, and the patients to call."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from starlette.responses import Response

from frontdesk.access.clients.records import ClientRecord
from frontdesk.console.csv_files import csv_file
from frontdesk.console.guard import ConsoleRequest, Page, with_query
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.calendar import read_day
from frontdesk.console.panels import Panel
from frontdesk.domain.errors import Problem
from frontdesk.features.client_undo.client_undo import ClientUndos
from frontdesk.features.client_undo.views import UndoRow
from frontdesk.features.client_undo.words import what_it_did, what_was_done, what_will_be_done

_USUAL = timedelta(hours=1)  # back from now


async def _preview(request: ConsoleRequest) -> Response:
    asked = request.http.query_params
    return await _preview_page(request, {name: asked.get(name, "") for name in ("from", "from_time")})


async def _preview_page(request: ConsoleRequest, given: dict[str, str], refused: Problem | None = None) -> Response:
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    error, preview = "", None
    if not given["from"]:
        given = _as_given(request.context.now - _USUAL, request.zone)
    since = _since(given, request.zone)
    if since is None:
        error = _("Enter a day and a time.")
    elif since > request.context.now:
        error = _("This time has not come yet.")
    else:
        preview = await request.services[ClientUndos].preview(request.context, client.client_id, since)
    return request.render(
        "client_undo/preview.html",
        title=_("Undo what %(client)s did", client=client.name),
        status=422 if error else 200 if refused is None else refused.status,
        client=client,
        given=given,
        error=error,
        preview=preview,
        refused=refused,
        what_it_did=what_it_did,
        what_will_be_done=what_will_be_done,
    )


async def _start(request: ConsoleRequest) -> Response:
    """Disables the client, or stores what is to be undone and begins."""
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    form = request.form
    given = {name: form.get(name) for name in ("from", "from_time")}
    if form.get("do") == "disable":
        await request.desk.clients.set_disabled(request.context, client.client_id, disabled=True)
        return request.redirect(_address(client.client_id, given), notice="client_disabled")
    since = _since(given, request.zone)
    if since is None:
        return await _preview_page(request, given)
    undos = request.services[ClientUndos]
    try:
        undo_id = await undos.start(request.context, client.client_id, since, form.get("shown"), form.get("key"))
    except Problem as problem:
        if problem.code != "conflict":
            raise
        return await _preview_page(request, given, problem)
    return await _work(request, client.client_id, undo_id)


async def _continue(request: ConsoleRequest) -> Response:
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    return await _work(request, client.client_id, request.param("undo_id"))


async def _work(request: ConsoleRequest, client_id: str, undo_id: str) -> Response:
    try:
        await request.services[ClientUndos].work(request.context, client_id, undo_id)
    except Problem as problem:
        if problem.code == "not_found":
            raise
        return await _undo_page(request, client_id, undo_id, problem)
    return request.redirect(f"/clients/{client_id}/undo/{undo_id}")


async def _undo(request: ConsoleRequest) -> Response:
    return await _undo_page(request, request.param("client_id"), request.param("undo_id"))


async def _undo_page(request: ConsoleRequest, client_id: str, undo_id: str, refused: Problem | None = None) -> Response:
    client = await request.desk.clients.one(request.context, client_id)
    view = await request.services[ClientUndos].read(request.context, client.client_id, undo_id)
    return request.render(
        "client_undo/undo.html",
        title=_("What %(client)s did was undone", client=client.name),
        status=200 if refused is None else refused.status,
        client=client,
        view=view,
        refused=refused,
        what_it_did=what_it_did,
        what_was_done=what_was_done,
        here=f"/console/clients/{client.client_id}/undo/{undo_id}",
    )


async def _calls(request: ConsoleRequest) -> Response:
    client = await request.desk.clients.one(request.context, request.param("client_id"))
    undo_id = request.param("undo_id")
    view = await request.services[ClientUndos].read(request.context, client.client_id, undo_id, as_file=True)
    headings = (_("Patient"), _("Phone"), _("Appointment"), _("Provider"), _("What was undone"), _("Not undone"))
    started = view.undo.started_at.astimezone(request.zone)
    file = f"{request.staff.practice_slug}-calls-{started:%Y-%m-%d}.csv"
    return csv_file(file, headings, [_call(row) for row in view.calls])


def _call(row: UndoRow) -> tuple[str, ...]:
    name, phone = (row.patient.name, row.patient.phone) if row.patient else ("", "")
    start = f"{row.start:%Y-%m-%d %H:%M}" if row.start else ""
    return name, phone, start, row.provider, what_was_done(row.entry), _(row.entry.failure) if row.entry.failure else ""


def _since(given: Mapping[str, str], zone: ZoneInfo) -> datetime | None:
    """The time of a form, which is the practice's; None if it cannot be read."""
    day = read_day(given["from"])
    try:
        clock = time.fromisoformat(given["from_time"] or "00:00")
    except ValueError:
        return None
    return None if day is None or clock.tzinfo is not None else datetime.combine(day, clock, zone).astimezone(UTC)


def _as_given(moment: datetime, zone: ZoneInfo) -> dict[str, str]:
    local = moment.astimezone(zone)
    return {"from": f"{local:%Y-%m-%d}", "from_time": f"{local:%H:%M}"}


def _address(client_id: str, given: Mapping[str, str]) -> str:
    return with_query(f"/clients/{client_id}/undo", given).removeprefix("/console")


async def _panel(request: ConsoleRequest, client: ClientRecord) -> Mapping[str, object]:
    return {
        "client": client,
        "given": _as_given(request.context.now - _USUAL, request.zone),
        "undos": await request.services[ClientUndos].of_client(request.context, client.client_id),
    }


PANEL = Panel("client_undo/panel.html", _panel)
PAGES = (
    Page("GET", "/clients/{client_id}/undo", _preview, role="admin"),
    Page("POST", "/clients/{client_id}/undo", _start, role="admin"),
    Page("GET", "/clients/{client_id}/undo/{undo_id}", _undo, role="admin"),
    Page("POST", "/clients/{client_id}/undo/{undo_id}", _continue, role="admin"),
    Page("GET", "/clients/{client_id}/undo/{undo_id}/calls", _calls, role="admin"),
)
