"""Writes dates and times as the practice wants them, in the language of the request.

Except in `when`, they are already in the right zone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from frontdesk.console.language import Width, months, weekdays
from frontdesk.console.language import gettext as _
from frontdesk.domain.directory import DateFormat, Practice, TimeFormat
from frontdesk.domain.local_time import clock_text, occurrences, twelve_hour

FIRST, SECOND = "/1", "/2"  # occurrences of a time that its day has twice; the second one stands after the time

_FILTERS = (
    "clock", "hour", "time_span", "brief_span", "long_day", "short_day", "dated", "month", "week_of", "block_span",
    "when", "brief_when", "exact_when",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimeFormats:
    times: TimeFormat = "24h"
    dates: DateFormat = "dayFirst"

    @classmethod
    def of(cls, practice: Practice) -> Self:
        return cls(practice.time_format, practice.date_format)

    def clock(self, moment: datetime) -> str:
        return clock_text(moment, twelve_hours=self.times == "12h")

    def hour(self, number: int) -> str:
        """A full hour of the day, for example 09:00 or 9 AM."""
        start = time(number % 24)
        return f"{start:%H:%M}" if self.times == "24h" else f"{twelve_hour(start)} {start:%p}"

    def time_span(self, start: datetime, end: datetime) -> str:
        if self.times == "12h" and f"{start:%j %p}" == f"{end:%j %p}":
            return f"{twelve_hour(start)}:{start:%M}–{self.clock(end)}"
        return f"{self.clock(start)}–{self.clock(end)}"

    def brief_span(self, start: datetime, end: datetime) -> str:
        """A span of time without the minutes of full hours, where they are not needed."""
        span = self.time_span(start, end)
        return span if self.times == "24h" else span.replace(":00", "")

    def opening(self, opens: int, closes: int) -> str:
        """Opening hours in minutes of the day, up to 24:00."""
        if self.times == "24h":
            return f"{opens // 60:02}:{opens % 60:02}–{closes // 60:02}:{closes % 60:02}"
        midnight = datetime(2000, 1, 1, tzinfo=UTC)
        return self.time_span(midnight + timedelta(minutes=opens), midnight + timedelta(minutes=closes))

    def long_day(self, day: date) -> str:
        match self.dates:
            case "dayFirst":
                return _("%(weekday)s, %(day)s %(month)s %(year)s", **_named(day, "wide"))
            case "monthFirst":
                return _("%(weekday)s, %(month)s %(day)s, %(year)s", **_named(day, "wide"))
            case "yearFirst":
                return f"{weekdays('wide')[day.weekday()]}, {_iso(day)}"

    def short_day(self, day: date) -> str:
        match self.dates:
            case "dayFirst":
                return _("%(weekday)s %(day)s %(month)s", **_named(day))
            case "monthFirst":
                return _("%(weekday)s, %(month)s %(day)s", **_named(day))
            case "yearFirst":
                return f"{weekdays('abbreviated')[day.weekday()]} {day:%m-%d}"

    def dated(self, day: date) -> str:
        match self.dates:
            case "dayFirst":
                return _("%(day)s %(month)s %(year)s", **_named(day))
            case "monthFirst":
                return _("%(month)s %(day)s, %(year)s", **_named(day))
            case "yearFirst":
                return _iso(day)

    def month(self, day: date) -> str:
        return _("%(month)s %(year)s", **_named(day, "wide"))

    def week_of(self, first: date, last: date) -> str:
        """The span of two dates as text, such as 16–22 November 2026."""
        if self.dates == "yearFirst" or first.year != last.year:
            return f"{self.dated(first)} – {self.dated(last)}"
        if self.dates == "dayFirst":
            if first.month == last.month:
                return _("%(first)s–%(day)s %(month)s %(year)s", first=first.day, **_named(last, "wide"))
            begins = _("%(day)s %(month)s", **_named(first))
            return f"{begins} – {self.dated(last)}"
        if first.month == last.month:
            return _("%(month)s %(first)s–%(day)s, %(year)s", first=first.day, **_named(last, "wide"))
        begins = _("%(month)s %(day)s", **_named(first))
        return f"{begins} – {self.dated(last)}"

    def block_span(self, starts: datetime | date, ends: datetime | date) -> str:
        """Whole days as dates, anything else to the minute."""
        if isinstance(starts, datetime) and isinstance(ends, datetime):
            if starts.time() != time() or ends.time() != time():
                if starts.date() == ends.date():
                    return f"{self._full_day(starts)}, {self.time_span(starts, ends)}"
                return f"{self._full_day(starts)}, {self.clock(starts)} – {self._full_day(ends)}, {self.clock(ends)}"
            starts, ends = starts.date(), ends.date() - timedelta(days=1)
        if starts == ends:
            return self._full_day(starts)
        return f"{self._full_day(starts)} – {self._full_day(ends)}"

    def when(self, moment: datetime, zone: ZoneInfo) -> str:
        """A date and time in the given zone."""
        local = moment.astimezone(zone)
        return f"{self._full_day(local)}, {self.clock(local)}"

    def brief_when(self, moment: datetime, zone: ZoneInfo) -> str:
        """Date and time without the day of the week."""
        local = moment.astimezone(zone)
        return f"{self.dated(local)}, {self.clock(local)}"

    def exact_when(self, moment: datetime, zone: ZoneInfo) -> str:
        """Date and time to the second, without the day of the week."""
        local = moment.astimezone(zone)
        clock = f"{local:%H:%M:%S}" if self.times == "24h" else f"{twelve_hour(local)}:{local:%M:%S %p}"
        return f"{self.dated(local)}, {clock}"

    def filters(self) -> Mapping[str, Callable[..., object]]:
        return {name: getattr(self, name) for name in _FILTERS} | {"moment": moment, "repeated_zone": repeated_zone}

    def _full_day(self, day: date) -> str:
        separator = ", " if self.dates == "monthFirst" else " "
        return f"{weekdays('abbreviated')[day.weekday()]}{separator}{self.dated(day)}"


def moment(text: str) -> datetime:
    """Parses a time from an operation's answer."""
    return datetime.fromisoformat(text)


def repeated_zone(text: str, time_zone: str) -> str:
    """The name of the zone at a time that its day has twice, for example EST; empty for any other."""
    local = moment(text).astimezone(ZoneInfo(time_zone))
    return (local.tzname() or "") if occurrences(local.date(), local.time(), time_zone) else ""


def _named(day: date, width: Width = "abbreviated") -> dict[str, object]:
    """The parts of a date, with the names of the language."""
    return {
        "weekday": weekdays(width)[day.weekday()],
        "day": day.day,
        "month": months(width)[day.month - 1],
        "year": f"{day:%Y}",
    }


def _iso(day: date) -> str:
    return f"{day:%Y-%m-%d}"
