"""Time zones, local dates and the text of times, on whole minutes and days since the Unix epoch.

Assumes that offsets are whole minutes, that no zone changes its offset twice within a day, and that a local date is one
contiguous stretch of time.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

DAY_MINUTES = 1440

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
# Beyond these a datetime overflows in some zones; the offset at the limit is used there.
_FIRST_KNOWN = (datetime(1, 1, 3, tzinfo=UTC) - _EPOCH) // timedelta(minutes=1)
_LAST_KNOWN = (datetime(9999, 12, 29, tzinfo=UTC) - _EPOCH) // timedelta(minutes=1)

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CLOCK = tuple(f"{minute // 60:02}:{minute % 60:02}:00" for minute in range(DAY_MINUTES))


class Span(NamedTuple):
    """The time start <= t < end during which a zone has one offset, in minutes east of UTC."""

    start: int
    end: int
    offset: int


class _TextSpan(NamedTuple):
    """The time start <= t < end on one local date, with the text around the clock time and the instant of midnight."""

    start: int
    end: int
    before: str
    after: str
    midnight: int


@cache
def zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def minute_of(moment: datetime) -> int:
    """The whole minutes since the epoch."""
    return int(moment.timestamp()) // 60


def instant_at(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, tz=UTC)


def day_number(day: date) -> int:
    """Days since the epoch."""
    return day.toordinal() - _EPOCH_ORDINAL


def date_of(number: int) -> date:
    return date.fromordinal(number + _EPOCH_ORDINAL)


def local_day_number(minute: int, name: str) -> int:
    """The local date at an instant, as a day number."""
    return (minute + _offset_at(minute, name)) // DAY_MINUTES


def local_date(minutes: int, zone: str) -> date:
    return date_of(local_day_number(minutes, zone))


def weekday(minutes: int, zone: str) -> str:
    return _WEEKDAYS[local_date(minutes, zone).weekday()]


def local_day_bounds(day: date, zone: str) -> tuple[int, int]:
    """The first instant of a local date and the one after its last; equal if the zone skipped the date."""
    number = day_number(day)
    spans = local_day_spans(number, zone)
    if not spans:
        end = local_day_spans(number - 1, zone)[-1].end
        return end, end
    return spans[0].start, spans[-1].end


@lru_cache(maxsize=8192)
def local_day_spans(number: int, name: str) -> tuple[Span, ...]:
    """The time of one local date, split where the offset changes."""
    midnight = number * DAY_MINUTES
    spans: list[Span] = []
    for utc_day in (number - 1, number, number + 1):
        for start, end, offset in _utc_day_spans(utc_day, name):
            first = max(start, midnight - offset)
            last = min(end, midnight + DAY_MINUTES - offset)
            if first >= last:
                continue
            if spans and spans[-1].offset == offset:
                first = spans.pop().start
            spans.append(Span(first, last, offset))
    return tuple(spans)


def first_instant(local_minute: int, name: str) -> int:
    """The first instant at or after a local time, given in wall-clock minutes since the epoch.

    That is the first occurrence of a time that occurs twice, and the end of the gap for a time that is skipped.
    """
    return min(max(s, local_minute - o) for s, e, o in _spans_around(local_minute, name) if local_minute - o < e)


def last_instant(local_minute: int, name: str) -> int:
    """The last occurrence of a local time, or the end of the gap if it is skipped."""
    return max(min(e, local_minute - o) for s, e, o in _spans_around(local_minute, name) if s <= local_minute - o)


def occurrences(day: date, clock: time, name: str) -> tuple[datetime, ...]:
    """Both occurrences of a time that a day has twice; empty for any other time."""
    first, second = _readings(day, clock, name)
    return (first, second) if first.timestamp() < second.timestamp() else ()


def is_skipped(day: date, clock: time, name: str) -> bool:
    """Whether the day does not have the time."""
    first, second = _readings(day, clock, name)
    return first.timestamp() > second.timestamp()


def clock_text(moment: datetime | time, *, twelve_hours: bool) -> str:
    """The time of day, for example 14:05 or 2:05 PM."""
    return f"{twelve_hour(moment)}:{moment:%M %p}" if twelve_hours else f"{moment:%H:%M}"


def twelve_hour(moment: datetime | time) -> int:
    """The hour on a clock of twelve hours."""
    return (moment.hour + 11) % 12 + 1


def iso_local(minutes: Sequence[int], zone: str) -> list[str]:
    """Instants as ISO 8601 with the zone's offset: 2026-11-16T09:00:00-05:00."""
    texts: list[str] = []
    start = end = midnight = 0
    before = after = ""
    for minute in minutes:
        if not start <= minute < end:
            spans = _text_spans(minute // DAY_MINUTES, zone)
            start, end, before, after, midnight = next(span for span in spans if minute < span.end)
        texts.append(f"{before}{_CLOCK[minute - midnight]}{after}")
    return texts


def iso_utc(instant: datetime) -> str:
    """An aware datetime as 2026-11-16T14:00:00Z, without fractions of a second."""
    if instant.tzinfo is None:
        raise ValueError("a datetime without a zone is not an instant")
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _readings(day: date, clock: time, name: str) -> tuple[datetime, datetime]:
    """With the offset before and after a clock change; equal instants for a time that the day has once."""
    first, second = (datetime.combine(day, clock.replace(fold=fold), zone(name)) for fold in (0, 1))
    return first, second


def _spans_around(local_minute: int, name: str) -> tuple[Span, ...]:
    day = local_minute // DAY_MINUTES
    return local_day_spans(day - 1, name) + local_day_spans(day, name) + local_day_spans(day + 1, name)


def _offset_at(minute: int, name: str) -> int:
    spans = _utc_day_spans(minute // DAY_MINUTES, name)
    return spans[0].offset if minute < spans[0].end else spans[-1].offset


@lru_cache(maxsize=8192)
def _utc_day_spans(number: int, name: str) -> tuple[Span, ...]:
    """One UTC day, split where the zone's offset changes."""
    start, end = number * DAY_MINUTES, (number + 1) * DAY_MINUTES
    before, after = _read_offset(start, name), _read_offset(end, name)
    if before == after:
        return (Span(start, end, before),)
    unchanged, changed = start, end
    while changed - unchanged > 1:
        middle = (unchanged + changed) // 2
        if _read_offset(middle, name) == before:
            unchanged = middle
        else:
            changed = middle
    if changed == end:
        return (Span(start, end, before),)
    return Span(start, changed, before), Span(changed, end, after)


def _read_offset(minute: int, name: str) -> int:
    known = min(max(minute, _FIRST_KNOWN), _LAST_KNOWN)
    offset = (_EPOCH + timedelta(minutes=known)).astimezone(zone(name)).utcoffset()
    assert offset is not None
    return offset // timedelta(minutes=1)


@lru_cache(maxsize=8192)
def _text_spans(number: int, name: str) -> tuple[_TextSpan, ...]:
    """One UTC day, split where the local date or the offset changes."""
    spans = []
    for start, end, offset in _utc_day_spans(number, name):
        hours, minutes = divmod(abs(offset), 60)
        after = f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"
        for day in range((start + offset) // DAY_MINUTES, (end - 1 + offset) // DAY_MINUTES + 1):
            midnight = day * DAY_MINUTES - offset
            first, last = max(start, midnight), min(end, midnight + DAY_MINUTES)
            spans.append(_TextSpan(first, last, f"{date_of(day).isoformat()}T", after, midnight))
    return tuple(spans)
