"""Formats dates and times. Except for `when`, they are already in the right zone."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def time_span(start: datetime, end: datetime) -> str:
    return f"{start:%H:%M}–{end:%H:%M}"


def long_day(day: date) -> str:
    return f"{day:%A}, {day.day} {day:%B %Y}"


def short_day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"


def dated(day: date) -> str:
    return f"{day.day} {day:%b %Y}"


def week_of(first: date, last: date) -> str:
    """For example 16–22 November 2026."""
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{last.day} {last:%B %Y}"
    if first.year == last.year:
        return f"{first.day} {first:%b} – {last.day} {last:%b %Y}"
    return f"{dated(first)} – {dated(last)}"


def block_span(starts: datetime | date, ends: datetime | date) -> str:
    """Whole days as dates, anything else to the minute."""
    if isinstance(starts, datetime) and isinstance(ends, datetime):
        if starts.time() != time() or ends.time() != time():
            if starts.date() == ends.date():
                return f"{short_day(starts)} {starts.year}, {time_span(starts, ends)}"
            return f"{short_day(starts)} {starts.year}, {clock(starts)} – {short_day(ends)} {ends.year}, {clock(ends)}"
        starts, ends = starts.date(), ends.date() - timedelta(days=1)
    if starts == ends:
        return f"{short_day(starts)} {starts.year}"
    return f"{short_day(starts)} {starts.year} – {short_day(ends)} {ends.year}"


def moment(text: str) -> datetime:
    """Parses a time from an operation's answer."""
    return datetime.fromisoformat(text)


def when(moment: datetime, zone: ZoneInfo) -> str:
    """A date and time in the given zone."""
    local = moment.astimezone(zone)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M}"


_FILTERS = (moment, clock, time_span, long_day, short_day, dated, week_of, block_span, when)
FILTERS: dict[str, Callable[..., Any]] = {each.__name__: each for each in _FILTERS}
