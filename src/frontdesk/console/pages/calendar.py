"""The calendar as a page, its grid for live updates, and the day sheet for printing."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.datastructures import QueryParams
from starlette.responses import Response

from frontdesk.console.actions.calendar import CalendarQuery, shown_locations
from frontdesk.console.calendar.view import CalendarView
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.times import long_day, week_of
from frontdesk.domain.directory import Directory

_FIRST, _LAST = date(1970, 1, 8), date(2200, 1, 1)


async def _calendar(request: ConsoleRequest) -> Response:
    query = asked(request.http.query_params)
    directory = await request.desk.calendar.directory(request.context)
    if not any(location.active for location in directory.locations.values()):
        return request.render("calendar_empty.html", title="Calendar")
    view = await request.desk.calendar.read(request.context, query)
    assert view is not None
    title = _title(query, view)
    return request.render(
        "calendar.html",
        title=title,
        native=await request.desk.blocks.offered(request.context),
        new=request.http.query_params.get("show", ""),
        **_frame(query, view, directory),
    )


async def _grid(request: ConsoleRequest) -> Response:
    """The part of the page that live updates replace; 304 if it is unchanged."""
    query = asked(request.http.query_params)
    known = request.http.headers.get("if-none-match", "").strip('"')
    view = await request.desk.calendar.read(request.context, query, known=known or None)
    if view is None:
        return Response(status_code=304, headers={"ETag": f'"{known}"'})
    directory = await request.desk.calendar.directory(request.context)
    response = request.render("calendar_grid.html", title="Calendar", new="", **_frame(query, view, directory))
    response.headers["ETag"] = f'"{view.tag}"'
    return response


async def _day_sheet(request: ConsoleRequest) -> Response:
    query = replace(asked(request.http.query_params), span="day")
    view = await request.desk.calendar.read(request.context, query, purpose="day_sheet")
    assert view is not None
    directory = await request.desk.calendar.directory(request.context)
    return request.render("day_sheet.html", title=f"Day sheet, {_title(query, view)}", **_frame(query, view, directory))


def asked(parameters: QueryParams | Mapping[str, str]) -> CalendarQuery:
    """Reads the query string; invalid values count as absent."""
    return CalendarQuery(
        day=read_day(parameters.get("date", "")),
        span="week" if parameters.get("view") == "week" else "day",
        location_id=read_id(parameters.get("location", "")),
        provider_id=read_id(parameters.get("provider", "")),
        cancelled=parameters.get("cancelled") == "yes",
    )


def read_day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if _FIRST <= day <= _LAST else None


def read_id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _title(query: CalendarQuery, view: CalendarView) -> str:
    days = view.days
    return long_day(days[0].date) if query.span == "day" else week_of(days[0].date, days[-1].date)


def _frame(query: CalendarQuery, view: CalendarView, directory: Directory) -> dict[str, Any]:
    day = query.day or view.today
    step = timedelta(days=7 if query.span == "week" else 1)
    active = [location for location in directory.locations.values() if location.active]
    one_zone = len({location.time_zone for location in active}) == 1
    location_id = query.location_id
    if location_id is None and not (one_zone and len(active) > 1):
        location_id = shown_locations(directory, None)[0].id
    noon = datetime.combine(view.days[0].date, time(12), ZoneInfo(view.zone))
    return {
        "view": view,
        "query": query,
        "day": day,
        "before": _address("/calendar", query, day=max(day - step, _FIRST)),
        "after": _address("/calendar", query, day=min(day + step, _LAST)),
        "now_there": _address("/calendar", query, day=None),
        "as_day": _address("/calendar", query, span="day"),
        "as_week": _address("/calendar", query, span="week"),
        "grid": _address("/calendar/grid", query),
        "sheet": _address("/day-sheet", query, span="day"),
        "locations": [*([("", "All locations")] if one_zone and len(active) > 1 else []),
                      *((location.id, location.name) for location in active)],
        "location_id": location_id or "",
        "providers": [("", "All providers"),
                      *((each.id, each.name) for each in directory.providers.values() if each.active)],
        "zone_name": f"{view.zone.rpartition('/')[2].replace('_', ' ')} ({noon.tzname()})",
        "address": lambda **changes: _address("/calendar", query, **changes),
    }  # fmt: skip


def _address(path: str, query: CalendarQuery, **changes: Any) -> str:
    wanted = replace(query, **changes)
    parameters = {
        "date": None if wanted.day is None else wanted.day.isoformat(),
        "view": None if wanted.span == "day" else wanted.span,
        "location": wanted.location_id,
        "provider": wanted.provider_id,
        "cancelled": "yes" if wanted.cancelled else None,
    }
    said = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"/console{path}" + (f"?{said}" if said else "")


PAGES = (
    Page("GET", "/calendar", _calendar),
    Page("GET", "/calendar/grid", _grid, counts_as_use=False),
    Page("GET", "/day-sheet", _day_sheet),
)
