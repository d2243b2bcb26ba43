"""Geometry of charts: columns of stacked parts that a template draws as SVG.

The SVG is stretched to fit, so labels are outside of it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import floor, log10
from zoneinfo import ZoneInfo

from frontdesk.console.language import gettext as _
from frontdesk.console.language import weekdays
from frontdesk.console.times import TimeFormats
from frontdesk.desk.usage import REQUEST_OUTCOME_NAMES, REQUEST_OUTCOMES, Error, UsageReport
from frontdesk.domain.errors import CATALOGUE

WIDTH, HEIGHT = 1000, 200
_MAX_ERRORS = 4
_GAP = 0.25  # of a column's width
_LABELS = 5


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    look: str  # a CSS class
    total: int


@dataclass(frozen=True, slots=True)
class Part:
    look: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    counts: Sequence[int]  # one per series
    x: float
    width: float
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Chart:
    id: str
    title: str
    description: str
    series: Sequence[Series]
    columns: Sequence[Column]
    top: int
    labels: Sequence[str]  # evenly spaced
    heading: str  # of the labels, in the table

    @property
    def is_empty(self) -> bool:
        return not any(series.total for series in self.series)


def requests_chart(counted: UsageReport, zone: ZoneInfo, formats: TimeFormats) -> Chart:
    totals = counted.requests
    series = [Series(_(REQUEST_OUTCOME_NAMES[name]), f"ends-{name}", totals[name]) for name in REQUEST_OUTCOMES]
    rows = [[moment.requests[name] for name in REQUEST_OUTCOMES] for moment in counted.moments]
    return _usage_chart(
        "requests-chart", _("Requests over time"), counted, series, rows, _labels(counted, zone, formats)
    )


def errors_chart(counted: UsageReport, zone: ZoneInfo, formats: TimeFormats) -> Chart:
    """The most frequent errors, and the others as one series."""
    totals = counted.errors
    shown = [error for error, _count in totals.most_common(_MAX_ERRORS)]
    series = [Series(error_name(error), f"series-{place}", totals[error]) for place, error in enumerate(shown, 1)]
    rows = [[moment.errors[error] for error in shown] for moment in counted.moments]
    if len(totals) > len(shown):
        series.append(Series(_("Others"), "series-5", _rest(totals, shown)))
        for row, moment in zip(rows, counted.moments, strict=True):
            row.append(_rest(moment.errors, shown))
    return _usage_chart(
        "errors-chart", _("Errors by code over time"), counted, series, rows, _labels(counted, zone, formats)
    )


def error_name(error: Error) -> str:
    status, code = error
    return f"{status} {code}".strip()


def error_meaning(error: Error) -> str:
    kind = CATALOGUE.get(error[1])
    return "" if kind is None else _(kind.title)


def share(used: int, of: int) -> float:
    """Per cent, with a minimum that stays visible."""
    if used <= 0 or of <= 0:
        return 0.0
    return round(min(100.0, max(0.75, used * 100 / of)), 2)


def _rest(errors: Counter[Error], shown: Sequence[Error]) -> int:
    return sum(requests for error, requests in errors.items() if error not in shown)


def _usage_chart(
    chart_id: str, title: str, counted: UsageReport, series: list[Series], rows: list[list[int]], labels: list[str]
) -> Chart:
    when = _("In the last %(span)s", span=_(counted.span.label))
    return columns_chart(chart_id, title, when, series, labels, rows, _("From"))


def columns_chart(
    chart_id: str,
    title: str,
    when: str,
    series: Sequence[Series],
    labels: Sequence[str],
    rows: Sequence[Sequence[int]],
    heading: str,
) -> Chart:
    """One column for each label, with a count for each series."""
    top = _ceiling(max((sum(row) for row in rows), default=0))
    place = WIDTH / len(rows)
    columns = []
    for number, (label, row) in enumerate(zip(labels, rows, strict=True)):
        x = round((number + _GAP / 2) * place, 2)
        width = round(place * (1 - _GAP), 2)
        columns.append(Column(label, row, x, width, _stacked(series, row, top)))
    counts = ", ".join(f"{one.name} {one.total}" for one in series if one.total) or _("none")
    description = _("%(when)s: %(counts)s. The table below the chart has every number.", when=when, counts=counts)
    return Chart(chart_id, title, description, series, columns, top, _spread(labels), heading)


def _stacked(series: Sequence[Series], row: Sequence[int], top: int) -> list[Part]:
    parts, below = [], 0
    for one, count in zip(series, row, strict=True):
        if count:
            height = count * HEIGHT / top
            parts.append(Part(one.look, round(HEIGHT - (below + count) * HEIGHT / top, 2), round(height, 2)))
            below += count
    return parts


def _ceiling(maximum: int) -> int:
    """A round, even upper bound; half of it labels the middle line."""
    if maximum <= 2:
        return 2
    magnitude: int = 10 ** floor(log10(maximum))
    rounded = next(step * magnitude for step in (1, 2, 4, 6, 8, 10) if step * magnitude >= maximum)
    return max(2, rounded)


def _labels(counted: UsageReport, zone: ZoneInfo, formats: TimeFormats) -> list[str]:
    moments = [moment.began_at.astimezone(zone) for moment in counted.moments]
    if counted.span.step >= timedelta(days=1):
        return [formats.short_day(each) for each in moments]
    if counted.span.step >= timedelta(minutes=30):
        days = weekdays("abbreviated")
        return [f"{days[each.weekday()]} {formats.clock(each)}" for each in moments]
    return [formats.clock(each) for each in moments]


def _spread(labels: Sequence[str]) -> list[str]:
    return [labels[round(at * (len(labels) - 1) / (_LABELS - 1))] for at in range(_LABELS)]
