"""The arrivals board as a page, its lists for live updates, and its steps."""

from typing import Any

from starlette.responses import Response

from frontdesk.console.forms import read_id
from frontdesk.console.guard import ConsoleRequest, Page, with_query
from frontdesk.console.language import gettext as _
from frontdesk.console.rendering import compressed
from frontdesk.console.tags import tag_of
from frontdesk.desk.arrivals import PLACES, Board
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem

_NOTICES = {
    "arrived": "arrival_recorded",
    "call_in": "called_in",
    "completed": "visit_completed",
    "noShow": "no_show_recorded",
    "return_to_waiting": "waiting_again",
    "restore": "appointment_restored",
}


async def _arrivals(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    if not any(location.active for location in directory.locations.values()):
        return request.render("calendar_empty.html", title=_("Arrivals"))
    asked = _asked(request, directory)
    board = await request.desk.arrivals.read(request.context, *asked)
    assert board is not None
    done = request.http.query_params.get("done", "")
    response = request.render(
        "arrivals.html",
        title=_("Arrivals"),
        status=200 if refused is None else refused.status,
        refused=refused,
        overrides=await request.desk.overrides.offered(request.context),
        here=_address("/arrivals", asked),
        long_day=request.formats.long_day(board.day),
        location_choices=_locations(directory),
        provider_choices=[(each.id, each.name) for each in directory.providers.values() if each.active],
        undone=next((each for place in PLACES for each in board.places[place] if each.id == done and each.undo), None),
        **_lists(board, asked),
    )
    return await compressed(request.http, response)


async def _board(request: ConsoleRequest) -> Response:
    """The part of the page that live updates replace; 304 if it has not changed."""
    directory = await request.desk.calendar.directory(request.context)
    known = request.http.headers.get("if-none-match", "").strip('"')
    asked = _asked(request, directory)
    board = await request.desk.arrivals.read(request.context, *asked, lambda found: tag_of(found) == known)
    if board is None:
        return Response(status_code=304, headers={"ETag": f'"{known}"'})
    response = request.render("arrivals_board.html", title=_("Arrivals"), **_lists(board, asked))
    response.headers["ETag"] = f'"{tag_of(board)}"'
    return await compressed(request.http, response)


async def _step(request: ConsoleRequest) -> Response:
    appointment_id, step = request.param("appointment_id"), request.form.get("step")
    try:
        await request.desk.arrivals.take_step(request.context, appointment_id, step, request.form.get("key"))
    except Problem as problem:
        if problem.code == "validation" and step == "restore":
            return request.redirect(f"/appointments/{appointment_id}", notice="undo_needs_reason")
        if problem.code != "conflict":
            raise
        return await _arrivals(request, problem)
    directory = await request.desk.calendar.directory(request.context)
    there = _address("/arrivals", _asked(request, directory), done=appointment_id)
    return request.redirect(there.removeprefix("/console"), notice=_NOTICES[step])


def _asked(request: ConsoleRequest, directory: Directory) -> tuple[int | None, tuple[int, ...]]:
    """The location and the providers of the address or the form; what is unknown counts as absent."""
    location_id, provider_id = (
        read_id(request.form.get(name) or request.http.query_params.get(name, "")) for name in ("location", "provider")
    )
    return location_id, () if provider_id is None or provider_id not in directory.providers else (provider_id,)


def _lists(board: Board, asked: tuple[int | None, tuple[int, ...]]) -> dict[str, Any]:  # values of a template
    location_id, providers = asked
    return {
        "board": board,
        "tag": tag_of(board),
        "lists": _address("/arrivals/board", asked),
        "location_id": location_id or "",
        "provider_id": providers[0] if providers else "",
    }


def _locations(directory: Directory) -> list[tuple[object, str]]:
    active = [location for location in directory.locations.values() if location.active]
    one_zone = len({location.time_zone for location in active}) == 1
    return [*([("", _("All locations"))] if one_zone else []), *((each.id, each.name) for each in active)]


def _address(path: str, asked: tuple[int | None, tuple[int, ...]], **further: str) -> str:
    location_id, providers = asked
    return with_query(path, {"location": location_id, "provider": providers, **further})


PAGES = (
    Page("GET", "/arrivals", _arrivals),
    Page("GET", "/arrivals/board", _board, counts_as_use=False),
    Page("POST", "/arrivals/{appointment_id}", _step),
)
