"""The calendar as a page, its grid for live updates, and the day sheet for printing."""

from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from starlette.datastructures import QueryParams
from starlette.responses import Response

from frontdesk.console.calendar.grid import MAX_SHORTEST_ROWS
from frontdesk.console.calendar.layout import HUES
from frontdesk.console.calendar.month import MonthView, lay_out_month
from frontdesk.console.calendar.tagged_view import tagged_view
from frontdesk.console.calendar.view import CalendarView
from frontdesk.console.forms import read_id
from frontdesk.console.guard import ConsoleRequest, Page, with_query
from frontdesk.console.language import gettext as _
from frontdesk.console.panels import ShownDays, calendar_panels
from frontdesk.console.rendering import compressed
from frontdesk.console.tags import tag_of
from frontdesk.console.times import TimeFormats
from frontdesk.desk.calendar import CalendarQuery, shown_locations
from frontdesk.desk.calendar_preferences import COLOURS, DENSITIES, ZOOMS, CalendarPreferences
from frontdesk.domain.directory import Directory

KNOWN_COLUMNS = "X-Calendar-Columns"
_FIRST, _LAST = date(1970, 1, 8), date(2200, 1, 1)
_SPANS: tuple[Literal["week", "month"], ...] = ("week", "month")


@dataclass(frozen=True, slots=True)
class _PageTag:
    """The ETag of a page: the checksum of its data, if there is one, the tag of its grid, and that of the proposals."""

    checksum: str = ""
    grid: str = ""
    proposals: str = ""

    def __str__(self) -> str:
        return f"{self.checksum}.{self.grid}.{self.proposals}"

    @classmethod
    def read(cls, text: str) -> "_PageTag":
        """An empty one for what is not a tag of this release."""
        parts = text.strip('"').split(".")
        return cls(*parts) if len(parts) == len(fields(cls)) else cls()


async def _calendar(request: ConsoleRequest) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    if not any(location.active for location in directory.locations.values()):
        return request.render("calendar_empty.html", title=_("Calendar"))
    query = read_calendar_query(request.http.query_params, directory)
    preferences = await request.desk.preferences.read(request.context, directory)
    shown = query
    if not (query.providers or query.visit_types):  # what the address names comes before what the person prefers
        shown = replace(query, providers=preferences.providers, visit_types=preferences.visit_types)
    if query.span == "month":
        return await _month(request, query, shown, directory, preferences)
    if query.day is None and query.span == "day":
        day = await request.desk.calendar.next_working_day(request.context, shown)
        query, shown = replace(query, day=day), replace(shown, day=day)
    waiting = await request.desk.confirmations.recent(request.context, state="pending")
    checksum = await _checksum(request, shown)  # before what it is to describe
    view = await request.desk.calendar.read(request.context, shown, tagged_view())
    assert view is not None
    days = ShownDays(view.days[0].date, view.days[-1].date, directory)
    response = await request.render_in_steps(
        "calendar.html",
        title=_title(query, view, request.formats),
        tag=_PageTag(checksum, view.tag, tag_of(waiting)),
        panels=await calendar_panels(request, days),
        books=await request.desk.patients.searchable(request.context),
        interval=directory.practice.slot_interval_minutes,
        native=await request.desk.blocks.offered(request.context),
        new=request.http.query_params.get("show", ""),
        waiting=waiting,
        here=_address("/calendar", query),
        **_frame(query, shown, view, directory, preferences),
        **_grid_frame(view, shown),
    )
    return await compressed(request.http, response)


async def _month(
    request: ConsoleRequest,
    query: CalendarQuery,
    shown: CalendarQuery,
    directory: Directory,
    preferences: CalendarPreferences,
) -> Response:
    view = lay_out_month(await request.desk.months.read(request.context, shown))
    return request.render(
        "calendar.html",
        title=_heading(request.formats.month(view.first)),
        panels=await calendar_panels(request, None),
        native=await request.desk.blocks.offered(request.context),
        here=_address("/calendar", query),
        **_frame(query, shown, view, directory, preferences),
        **_days(view, shown),
    )


async def _month_grid(request: ConsoleRequest) -> Response:
    """The days of a month, for live updates and for choosing a day; 304 if nothing has changed."""
    directory = await request.desk.calendar.directory(request.context)
    query = read_calendar_query(request.http.query_params, directory)
    known = request.http.headers.get("if-none-match", "").strip('"')
    view = lay_out_month(await request.desk.months.read(request.context, query))
    if view.tag == known:
        return Response(status_code=304, headers={"ETag": f'"{known}"'})
    response = request.render("calendar_month.html", title=_("Month"), **_days(view, query))
    response.headers["ETag"] = f'"{view.tag}"'
    return response


def _days(view: MonthView, query: CalendarQuery) -> dict[str, Any]:  # values of a template
    """A day of a month leads to the week if that is where it was chosen, else to the day."""
    span = "week" if query.span == "week" else "day"
    return {
        "view": view,
        "chosen": query.day or view.today,
        "day_address": lambda day: _address("/calendar", query, day=day, span=span),
        "month_before": _address("/calendar/month", query, day=_month_away(view.first, -1)),
        "month_after": _address("/calendar/month", query, day=_month_away(view.first, 1)),
    }


def _month_away(day: date, step: int) -> date:
    """The first of the month before or after."""
    months = day.year * 12 + day.month - 1 + step
    return min(max(date(months // 12, months % 12 + 1, 1), _FIRST), _LAST)


async def _grid(request: ConsoleRequest) -> Response:
    """What live updates replace: the grid, without columns that the page has, or only the proposals below it; 304 if
    nothing has changed."""
    directory = await request.desk.calendar.directory(request.context)
    query = read_calendar_query(request.http.query_params, directory)
    known = _PageTag.read(request.http.headers.get("if-none-match", ""))
    columns = frozenset(filter(None, request.http.headers.get(KNOWN_COLUMNS, "").split(",")))
    waiting = await request.desk.confirmations.recent(request.context, state="pending")
    checksum = await _checksum(request, query)  # before what it is to describe
    proposals = tag_of(waiting)
    view = None
    if not checksum or checksum != known.checksum:
        view = await request.desk.calendar.read(request.context, query, tagged_view(known.grid, columns))
    tag = _PageTag(checksum, known.grid if view is None else view.tag, proposals)
    headers = {"ETag": f'"{tag}"'}
    if view is None and proposals == known.proposals:
        return Response(status_code=304, headers=headers)
    if view is None:
        response = request.render("calendar_proposals.html", title=_("Calendar"), waiting=waiting)
        response.headers.update(headers)
        return response
    preferences = await request.desk.preferences.read(request.context, directory)
    response = await request.render_in_steps(
        "calendar_grid.html",
        title=_("Calendar"),
        new="",
        waiting=waiting,
        **_frame(query, query, view, directory, preferences),
        **_grid_frame(view, query),
    )
    response.headers.update(headers)
    return await compressed(request.http, response)


async def _checksum(request: ConsoleRequest, query: CalendarQuery) -> str:
    """Empty if only reading the appointments would tell whether they have changed."""
    version = await request.desk.calendar.version(request.context, query)
    return "" if version is None else tag_of(version)


async def _save_preferences(request: ConsoleRequest) -> Response:
    """Keeps how this person wants the calendar. What the form leaves out stays as it is."""
    form = request.form
    directory = await request.desk.calendar.directory(request.context)
    before = await request.desk.preferences.read(request.context, directory)
    wanted: dict[str, object] = {
        "density": form.get("density") or before.density,
        "zoom": read_id(form.get("zoom")) or before.zoom,
        "colours": form.get("colours") or before.colours,
        "providers": before.providers,
        "visit_types": before.visit_types,
    }
    if form.get("filter"):
        wanted["providers"], wanted["visit_types"] = _ids(form.all("provider")), _ids(form.all("visit"))
    await request.desk.preferences.save(request.context, wanted, directory)
    back = read_calendar_query(
        QueryParams({name: form.get(name) for name in ("date", "view", "location", "cancelled")}), directory
    )
    return request.redirect(_address("/calendar", back).removeprefix("/console"))


async def _day_sheet(request: ConsoleRequest) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    query = replace(read_calendar_query(request.http.query_params, directory), span="day")
    view = await request.desk.calendar.read(request.context, query, tagged_view(), purpose="day_sheet")
    assert view is not None
    return await request.render_in_steps(
        "day_sheet.html",
        title=_("Day sheet, %(day)s", day=_title(query, view, request.formats)),
        **_frame(query, query, view, directory, CalendarPreferences()),
        **_grid_frame(view, query),
    )


def read_calendar_query(parameters: QueryParams, directory: Directory) -> CalendarQuery:
    """Reads the query string; invalid values and unknown providers and visit types count as absent."""
    return CalendarQuery(
        day=read_day(parameters.get("date", "")),
        span=next((span for span in _SPANS if span == parameters.get("view")), "day"),
        location_id=read_id(parameters.get("location", "")),
        providers=tuple(sorted(_ids(parameters.getlist("provider")) & directory.providers.keys())),
        visit_types=tuple(sorted(_ids(parameters.getlist("visit")) & directory.visit_types.keys())),
        cancelled=parameters.get("cancelled") == "yes",
    )


def read_day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if _FIRST <= day <= _LAST else None


def _ids(texts: list[str]) -> set[int]:
    return {number for number in map(read_id, texts) if number is not None}


def _title(query: CalendarQuery, view: CalendarView, formats: TimeFormats) -> str:
    days = view.days
    return _heading(
        formats.long_day(days[0].date) if query.span == "day" else formats.week_of(days[0].date, days[-1].date)
    )


def _heading(text: str) -> str:
    """In some languages the names of days and months begin with a small letter."""
    return text[:1].upper() + text[1:]


def _frame(
    query: CalendarQuery,
    shown: CalendarQuery,
    view: CalendarView | MonthView,
    directory: Directory,
    preferences: CalendarPreferences,
) -> dict[str, Any]:  # values of a template
    """Links keep what the address asks for; the grid is read with the person's own filters, too."""
    day = query.day or view.today
    before, after = _steps(query, day)
    active = [location for location in directory.locations.values() if location.active]
    one_zone = len({location.time_zone for location in active}) == 1
    location_id = query.location_id
    if location_id is None and not (one_zone and len(active) > 1):
        location_id = shown_locations(directory, None)[0].id
    noon = datetime.combine(view.first, time(12), ZoneInfo(view.zone))
    return {
        "query": query,
        "shown": shown,
        "day": day,
        "before": _address("/calendar", query, day=before),
        "after": _address("/calendar", query, day=after),
        "now_there": _address("/calendar", query, day=view.today),
        "as_day": _address("/calendar", query, span="day"),
        "as_week": _address("/calendar", query, span="week"),
        "as_month": _address("/calendar", query, span="month"),
        "month": _address("/calendar/month", replace(shown, day=day)),
        "sheet": _address("/day-sheet", shown, span="day"),
        "locations": [*([("", _("All locations"))] if one_zone and len(active) > 1 else []),
                      *((location.id, location.name) for location in active)],
        "location_id": location_id or "",
        "providers": [(each.id, each.name) for each in directory.providers.values() if each.active],
        "visit_types": [(each.id, each.name, 1 + at % HUES) for at, each in enumerate(directory.visit_types.values())
                        if each.active],
        "preferences": preferences,
        "densities": DENSITIES,
        "colourings": COLOURS,
        "zooms": ZOOMS,
        "zone_name": f"{view.zone.rpartition('/')[2].replace('_', ' ')} ({noon.tzname()})",
        "address": lambda **changes: _address("/calendar", query, **changes),
    }  # fmt: skip


def _steps(query: CalendarQuery, day: date) -> tuple[date, date]:
    """The day to show before and after this one."""
    if query.span == "month":
        return _month_away(day, -1), _month_away(day, 1)
    step = timedelta(days=7 if query.span == "week" else 1)
    return max(day - step, _FIRST), min(day + step, _LAST)


def _grid_frame(view: CalendarView, shown: CalendarQuery) -> dict[str, object]:
    return {
        "view": view,
        "grid": _address("/calendar/grid", shown, day=view.first),  # also after midnight
        "shortest": min(view.shortest, MAX_SHORTEST_ROWS),
    }


def _address(path: str, query: CalendarQuery, **changes: Any) -> str:  # fields of the query
    wanted = replace(query, **changes)
    parameters = {
        "date": None if wanted.day is None else wanted.day.isoformat(),
        "view": None if wanted.span == "day" else wanted.span,
        "location": wanted.location_id,
        "provider": wanted.providers,
        "visit": wanted.visit_types,
        "cancelled": "yes" if wanted.cancelled else None,
    }
    return with_query(path, parameters)


PAGES = (
    Page("GET", "/calendar", _calendar),
    Page("GET", "/calendar/grid", _grid, counts_as_use=False),
    Page("GET", "/calendar/month", _month_grid, counts_as_use=False),
    Page("POST", "/calendar/preferences", _save_preferences),
    Page("GET", "/day-sheet", _day_sheet),
)
