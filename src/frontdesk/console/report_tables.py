"""The tables of a report. The page draws some of them as charts; a download has the same numbers."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from frontdesk.console.charts import Chart, Series, columns_chart
from frontdesk.console.domain_texts import actor_name
from frontdesk.console.language import gettext as _
from frontdesk.console.times import TimeFormats
from frontdesk.desk.reports import BOOKERS, LEADS, OUTCOMES, Report, Tally
from frontdesk.texts import N_

_DRAWN_DAYS = 45  # more are added up by weeks
_NAMED_CODES = 4
_OUTCOMES = (N_("Completed"), N_("No-show"), N_("Cancelled"), N_("Open"))
_BOOKERS = (N_("By agents"), N_("By integrations"), N_("By staff"), N_("By others"))
_KINDS = {"agent": N_("Agent"), "integration": N_("Integration"), "staff": N_("Staff"), "other": N_("Other")}
_LOOKS = {
    "outcomes": ("ends-succeeded", "series-1", "series-2", "series-5"),
    "bookings": ("ends-succeeded", "series-3", "series-1", "series-5"),
    "lead-time": ("ends-succeeded",),
    "failed-by-day": ("series-1", "series-2", "series-3", "series-4", "series-5"),
}


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]  # the first cell names the row


def chart_of(name: str, report: Report, when: str, formats: TimeFormats) -> Chart:
    table = TABLES[name](report)
    labels = [formats.short_day(row[0]) if isinstance(row[0], date) else row[0] for row in table.rows]
    counts = [row[1:] for row in table.rows]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    series = [Series(*each) for each in zip(table.headings[1:], _LOOKS[name], totals, strict=False)]
    return columns_chart(f"{name}-chart", table.title, when, series, labels, counts, table.headings[0])


def _outcomes(report: Report) -> Table:
    rows = [
        [days[0], *(sum(report.by_day[day].outcomes[each] for day in days) for each in OUTCOMES)]
        for days in _steps(report)
    ]
    return Table(_("Appointments by outcome"), [_("From"), *map(_, _OUTCOMES)], rows)


def _bookings(report: Report) -> Table:
    rows = [
        [days[0], *(sum(report.by_day[day].bookers[each] for day in days) for each in BOOKERS)]
        for days in _steps(report)
    ]
    return Table(_("Appointments by who booked them"), [_("From"), *map(_, _BOOKERS)], rows)


def _lead_time(report: Report) -> Table:
    rows = [[_(each), report.leads[each]] for each in LEADS]
    return Table(_("Time between booking and visit"), [_("Booked before"), _("Appointments")], rows)


def _providers(report: Report) -> Table:
    headings = [_("Provider"), *map(_, _TALLIED), _("Hours open"), _("Hours booked"), _("Utilisation %")]
    rows = [
        [
            name,
            *_tallied(tally),
            round(tally.open_minutes / 60, 1),
            round(tally.booked_minutes / 60, 1),
            _percent(tally.booked_minutes, tally.open_minutes),
        ]
        for name, tally in report.providers
    ]
    return Table(_("By provider"), headings, rows)


def _visit_types(report: Report) -> Table:
    rows = [[name, *_tallied(tally)] for name, tally in report.visit_types]
    return Table(_("By visit type"), [_("Visit type"), *map(_, _TALLIED)], rows)


def _bookers(report: Report) -> Table:
    rows = [
        [actor_name(actor), _(_KINDS[actor.kind]), tally.appointments, *(tally.outcomes[each] for each in OUTCOMES)]
        for actor, tally in report.bookers
    ]
    return Table(_("By who booked"), [_("Booked by"), _("Kind"), _("Appointments"), *map(_, _OUTCOMES)], rows)


def _failed(report: Report) -> Table:
    rows = [[each.client, each.operation or _("none"), each.status, each.code, each.requests] for each in report.failed]
    return Table(_("Failed calls of agents"), [_("Agent"), _("Operation"), _("Status"), _("Code"), _("Calls")], rows)


def _failed_by_day(report: Report) -> Table:
    totals: Counter[str] = sum(report.failed_by_day.values(), Counter())
    codes = [code for code, _count in totals.most_common(_NAMED_CODES)]
    rows = []
    for days in _steps(report):
        counts: Counter[str] = sum((report.failed_by_day[day] for day in days), Counter())
        rows.append([days[0], *(counts[code] for code in codes), _rest(counts, codes)])
    return Table(_("Failed calls of agents over time"), [_("From"), *codes, _("Others")], rows)


def _steps(report: Report) -> list[list[date]]:
    """The days that make up each row: one by one, or by weeks."""
    days = report.period.days
    length = 1 if len(days) <= _DRAWN_DAYS else 7
    return [days[at : at + length] for at in range(0, len(days), length)]


_TALLIED = (N_("Appointments"), *_OUTCOMES, N_("No-show %"), N_("Median days ahead"), *_BOOKERS)


def _tallied(tally: Tally) -> list[object]:
    due = tally.outcomes["completed"] + tally.outcomes["noShow"]
    return [
        tally.appointments,
        *(tally.outcomes[each] for each in OUTCOMES),
        _percent(tally.outcomes["noShow"], due),
        "" if tally.median_lead is None else tally.median_lead,
        *(tally.bookers[each] for each in BOOKERS),
    ]


def _percent(part: int, whole: int) -> float | str:
    return round(part * 100 / whole, 1) if whole else ""


def _rest(counts: Counter[str], named: Iterable[str]) -> int:
    return counts.total() - sum(counts[code] for code in named)


TABLES: Mapping[str, Callable[[Report], Table]] = {
    "outcomes": _outcomes,
    "bookings": _bookings,
    "lead-time": _lead_time,
    "providers": _providers,
    "visit-types": _visit_types,
    "bookers": _bookers,
    "failed": _failed,
    "failed-by-day": _failed_by_day,
}
