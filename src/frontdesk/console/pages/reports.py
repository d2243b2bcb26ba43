"""Reports as charts, the same as tables, and as CSV."""

from dataclasses import replace
from datetime import date, timedelta

from starlette.responses import Response

from frontdesk.console.charts import share
from frontdesk.console.csv_files import csv_file
from frontdesk.console.forms import read_id
from frontdesk.console.guard import ConsoleRequest, Page, with_query
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.calendar import read_day
from frontdesk.console.report_tables import TABLES, chart_of
from frontdesk.desk.reports import Period
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem

_SPANS = (7, 30, 90)  # days
_USUAL = 30


async def _reports(request: ConsoleRequest) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    period, refused = _asked(request, directory), None
    try:
        report = await request.desk.reports.read(request.context, period)
    except Problem as problem:
        if problem.code != "validation":
            raise
        refused = problem
        period = _until_today(request, _USUAL, period)
        report = await request.desk.reports.read(request.context, period)
    spans = [(days, _until_today(request, days, period)) for days in _SPANS]
    first, last = request.formats.dated(period.first), request.formats.dated(period.last)
    when = _("%(first)s to %(last)s", first=first, last=last)
    drawn = ("outcomes", "bookings", "lead-time") if report.counts_appointments else ()
    listed = ("providers", "visit-types", "bookers") if report.counts_appointments else ()
    return request.render(
        "reports.html",
        title=_("Reports"),
        status=200 if refused is None else refused.status,
        refused=refused,
        report=report,
        period=period,
        when=when,
        spans=[(days, _address("/reports", span), span == period) for days, span in spans],
        providers=[(each.id, each.name) for each in directory.providers.values()],
        visit_types=[(each.id, each.name) for each in directory.visit_types.values()],
        charts={name: chart_of(name, report, when, request.formats) for name in (*drawn, "failed-by-day")},
        tables={name: TABLES[name](report) for name in (*listed, "failed")},
        csv=lambda table: _address("/reports/csv", period, table=table),
        share=share,
    )


async def _csv(request: ConsoleRequest) -> Response:
    name = request.http.query_params.get("table", "")
    if name not in TABLES:
        raise Problem("not_found", "There is no such table.")
    directory = await request.desk.calendar.directory(request.context)
    period = _asked(request, directory)
    table = TABLES[name](await request.desk.reports.read(request.context, period))
    file = f"{request.staff.practice_slug}-{name}-{period.first}-{period.last}.csv"
    return csv_file(file, table.headings, table.rows)


def _asked(request: ConsoleRequest, directory: Directory) -> Period:
    """Reads the address; what is invalid or unknown counts as absent."""
    asked = request.http.query_params
    provider_id, visit_type_id = read_id(asked.get("provider", "")), read_id(asked.get("visit", ""))
    last = read_day(asked.get("to", "")) or _today(request)
    return Period(
        first=read_day(asked.get("from", "")) or last - timedelta(days=_USUAL - 1),
        last=last,
        provider_id=provider_id if provider_id in directory.providers else None,
        visit_type_id=visit_type_id if visit_type_id in directory.visit_types else None,
    )


def _until_today(request: ConsoleRequest, days: int, period: Period) -> Period:
    today = _today(request)
    return replace(period, first=today - timedelta(days=days - 1), last=today)


def _today(request: ConsoleRequest) -> date:
    return request.context.now.astimezone(request.zone).date()


def _address(path: str, period: Period, **further: str) -> str:
    parameters = {
        "from": period.first.isoformat(),
        "to": period.last.isoformat(),
        "provider": period.provider_id,
        "visit": period.visit_type_id,
        **further,
    }
    return with_query(path, parameters)


PAGES = (
    Page("GET", "/reports", _reports, role="admin"),
    Page("GET", "/reports/csv", _csv, role="admin"),
)
