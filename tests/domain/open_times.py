"""Small calendars, and what they offer as local clock texts."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from frontdesk.domain.availability import Busy, OpenTimes
from frontdesk.domain.directory import Closure, Location, OpeningHours, Practice, Procedure, Provider, TimeOff
from frontdesk.domain.local_time import iso_local, minute_of

NEW_YORK = "America/New_York"
EVERY_DAY = frozenset(range(7))
FREE = Busy((), (), ())
VISIT = Procedure(id=100, name="Visit", duration_minutes=30)
MONDAY = date(2026, 11, 16)
LONG_BEFORE = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


def minute(*when: int) -> int:
    return minute_of(datetime(*when, tzinfo=UTC))


def local(*when: int) -> datetime:
    return datetime(*when)


def clock(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def hours(opens: str, closes: str, days: Sequence[int] = tuple(EVERY_DAY), **effective: date) -> OpeningHours:
    return OpeningHours(1, frozenset(days), clock(opens), clock(closes), **effective)


def open_times(
    *entries: OpeningHours,
    zone: str = NEW_YORK,
    interval: int = 30,
    notice: int = 0,
    horizon: int = 10_000,
    capacity: int = 1,
    closures: tuple[Closure, ...] = (),
    time_off: tuple[TimeOff, ...] = (),
) -> OpenTimes:
    practice = Practice(
        slug="harbor",
        name="Harbor",
        time_zone="UTC",
        minimum_notice_minutes=notice,
        booking_horizon_days=horizon,
        slot_interval_minutes=interval,
    )
    provider = Provider(id=10, name="Dr. Chen", capacity=capacity, hours=entries, time_off=time_off)
    return OpenTimes(practice, provider, Location(id=1, name="Downtown", time_zone=zone, closures=closures))


def offered(
    times: OpenTimes,
    day: date,
    last: date | None = None,
    *,
    procedure: Procedure = VISIT,
    busy: Busy = FREE,
    now: float = LONG_BEFORE,
    zone: str = NEW_YORK,
) -> list[str]:
    """The offered starts as local texts without their seconds."""
    starts = times.starts(procedure, day, last or day, now, busy)
    return [text[:16] + text[19:] for text in iso_local(starts, zone)]


def clocks(texts: list[str]) -> list[str]:
    return [text[11:16] for text in texts]


def free_lane(busy: Busy, start: int, busy_until: int, capacity: int) -> int | None:
    """The smallest lane that is free for all of start <= t < busy_until."""
    held = {
        lane
        for lane, held_from, held_until in zip(busy.lanes, busy.starts, busy.ends, strict=True)
        if held_from < busy_until and held_until > start
    }
    return next((lane for lane in range(1, capacity + 1) if lane not in held), None)
