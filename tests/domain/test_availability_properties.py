"""The calendar against a slow one that goes minute by minute through aware datetimes, around offset changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.availability import Busy, OpenTimes
from frontdesk.domain.directory import Closure, Location, OpeningHours, Practice, Procedure, Provider, TimeOff
from tests.domain.open_times import free_lane
from tests.support.properties import examples

CHANGES = [
    ("America/New_York", date(2026, 11, 1)),
    ("America/New_York", date(2027, 3, 14)),
    ("Europe/London", date(2026, 10, 25)),
    ("Europe/London", date(2027, 3, 28)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("America/Santiago", date(2026, 4, 4)),
    ("America/Santiago", date(2026, 9, 6)),
    ("Africa/Casablanca", date(2025, 2, 23)),
    ("Africa/Casablanca", date(2025, 4, 6)),
    ("Asia/Kathmandu", date(1986, 1, 1)),
    ("Asia/Kathmandu", date(2026, 6, 1)),
]
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
REACH = 2  # days on each side of the change that anything in an example may touch


@dataclass(frozen=True)
class Case:
    practice: Practice
    provider: Provider
    location: Location
    procedure: Procedure
    first: date
    last: date
    now: float
    busy: Busy

    def starts(self) -> list[int]:
        times = OpenTimes(self.practice, self.provider, self.location)
        return times.starts(self.procedure, self.first, self.last, self.now, self.busy)


@lru_cache(maxsize=64)
def walls(zone: str, day: date) -> dict[int, datetime]:
    """What the wall clock shows at every minute of one UTC day."""
    start = datetime.combine(day, time(), UTC)
    return {
        int((start + n * MINUTE).timestamp()) // 60: (start + n * MINUTE)
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None)
        for n in range(1440)
    }


class Slow:
    """The rules, read out one by one."""

    def __init__(self, case: Case, around: date) -> None:
        self.case = case
        self.walls: dict[int, datetime] = {}
        for offset in range(-REACH - 1, REACH + 3):
            self.walls |= walls(case.location.time_zone, around + offset * DAY)
        self.off = {minute for off in case.provider.time_off for minute in self.minutes_off(off)}
        self.known: dict[int, bool] = {}

    def minutes_off(self, off: TimeOff) -> Iterator[int]:
        begin = min(minute for minute, wall in self.walls.items() if wall >= off.starts)
        shown = [minute for minute, wall in self.walls.items() if wall == off.ends]
        end = max(shown) if shown else min(minute for minute, wall in self.walls.items() if wall > off.ends)
        return iter(range(begin, end))

    def hours(self, minute: int) -> list[OpeningHours]:
        """The entries whose hours the wall clock lies in."""
        wall = self.walls[minute]
        today, clock = wall.date(), wall.hour * 60 + wall.minute
        return [
            entry
            for entry in self.case.provider.hours
            if entry.location_id == self.case.location.id
            and today.weekday() in entry.days
            and entry.opens <= clock < entry.closes
            and (entry.effective_from or date.min) <= today <= (entry.effective_to or date.max)
        ]

    def is_open_minute(self, minute: int) -> bool:
        if minute not in self.known:
            today = self.walls[minute].date()
            closed = any(closure.first <= today <= closure.last for closure in self.case.location.closures)
            self.known[minute] = not closed and minute not in self.off and bool(self.hours(minute))
        return self.known[minute]

    def is_on_grid(self, minute: int) -> bool:
        clock = self.walls[minute].hour * 60 + self.walls[minute].minute
        interval = self.case.practice.slot_interval_minutes
        return any((clock - entry.opens) % interval == 0 for entry in self.hours(minute))

    def has_room(self, minute: int) -> bool:
        procedure, busy = self.case.procedure, self.case.busy
        wanted = set(range(minute, minute + procedure.duration_minutes + procedure.buffer_after_minutes))
        held = list(zip(busy.lanes, busy.starts, busy.ends, strict=True))
        return any(
            all(wanted.isdisjoint(range(start, end)) for lane, start, end in held if lane == wanted_lane)
            for wanted_lane in range(1, self.case.provider.capacity + 1)
        )

    def starts(self) -> list[int]:
        case = self.case
        today = datetime.fromtimestamp(case.now, ZoneInfo(case.location.time_zone)).date()
        return [
            minute
            for minute, wall in self.walls.items()
            if case.first <= wall.date() <= case.last
            and wall.date() <= today + case.practice.booking_horizon_days * DAY
            and minute * 60 > case.now
            and minute * 60 - case.now >= case.practice.minimum_notice_minutes * 60
            and self.is_on_grid(minute)
            and all(self.is_open_minute(minute + n) for n in range(case.procedure.duration_minutes))
            and self.has_room(minute)
        ]


clocks = st.one_of(st.sampled_from([0, 30, 60, 90, 120, 150, 180, 540, 1380, 1410, 1440]), st.integers(0, 1440))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, date]:
    zone, around = draw(st.sampled_from(CHANGES))
    near = st.integers(-1, 1).map(lambda n: around + n * DAY)

    def two(values: st.SearchStrategy[Any]) -> list[Any]:
        return sorted(draw(st.lists(values, min_size=2, max_size=2, unique=True)))

    def usually(usual: Any, otherwise: st.SearchStrategy[Any]) -> Any:
        return draw(otherwise) if draw(st.integers(0, 5)) == 5 else usual

    def opening_hours() -> OpeningHours:
        opens, closes = two(clocks) if draw(st.booleans()) else (draw(st.sampled_from([0, 30, 540])), 1440)
        weekdays = usually(set(range(7)), st.sets(st.integers(0, 6)))
        effective_from, effective_to = usually(None, near), usually(None, near)
        location_id = usually(1, st.just(2))
        return OpeningHours(location_id, frozenset(weekdays), opens, closes, effective_from, effective_to)

    def time_off() -> TimeOff:
        times = st.builds(lambda day, clock: datetime.combine(day, time()) + clock * MINUTE, near, clocks)
        return TimeOff(*two(times))

    middle = int(datetime.combine(around, time(12), UTC).timestamp()) // 60
    capacity = draw(st.integers(1, 3))
    held = []
    for _ in range(draw(st.integers(0, 8 * capacity))):
        start = middle + draw(st.integers(-96, 96)) * 15
        lasts = draw(st.one_of(st.integers(1, 40).map(lambda n: n * 15), st.integers(1, 600)))
        held.append((start, start + lasts, draw(st.integers(1, capacity + 1))))
    held.sort()
    early = (middle - (REACH + 2) * 1440) * 60
    moments = st.one_of(st.integers(early // 900, middle // 15).map(lambda n: n * 900), st.floats(early, middle * 60))
    case = Case(
        Practice(
            slug="harbor",
            name="Harbor",
            time_zone="UTC",
            minimum_notice_minutes=usually(0, st.sampled_from([1, 60, 1440, 2000])),
            booking_horizon_days=usually(90, st.integers(0, 6)),
            slot_interval_minutes=draw(st.sampled_from([5, 7, 10, 15, 25, 30, 45, 60, 90])),
        ),
        Provider(
            id=10,
            name="Dr. Chen",
            capacity=capacity,
            hours=tuple(opening_hours() for _ in range(draw(st.integers(1, 3)))),
            time_off=tuple(time_off() for _ in range(draw(st.integers(0, 2)))),
        ),
        Location(
            id=1,
            name="Downtown",
            time_zone=zone,
            closures=usually((), st.builds(lambda *days: (Closure(min(days), max(days)),), near, near)),
        ),
        Procedure(
            id=100,
            name="Visit",
            duration_minutes=usually(draw(st.sampled_from([1, 5, 15, 20, 30, 60])), st.integers(60, 1500)),
            buffer_after_minutes=draw(st.sampled_from([0, 0, 5, 10, 45])),
        ),
        first=around - draw(st.integers(0, REACH)) * DAY,
        last=around + draw(st.integers(0, REACH)) * DAY,
        now=usually(early, moments),
        busy=Busy([start for start, _, _ in held], [end for _, end, _ in held], [lane for _, _, lane in held]),
    )
    return case, around


@examples(50)
@given(cases())
def test_exactly_what_the_rules_allow_is_offered(drawn: tuple[Case, date]) -> None:
    case, around = drawn
    assert case.starts() == Slow(case, around).starts()


@examples(25)
@given(cases())
def test_a_start_is_open_and_has_a_lane_exactly_if_it_is_offered(drawn: tuple[Case, date]) -> None:
    case, _ = drawn
    times = OpenTimes(case.practice, case.provider, case.location)
    begin, end = times.window(case.first, case.last)
    taken = case.procedure.duration_minutes + case.procedure.buffer_after_minutes
    nobody = Busy((), (), ())
    unbooked = times.starts(case.procedure, case.first, case.last, case.now, nobody)
    bookable = [
        start for start in unbooked if free_lane(case.busy, start, start + taken, case.provider.capacity) is not None
    ]
    offered = case.starts()
    assert offered == bookable
    assert all(begin <= start < end for start in unbooked)
    asked = {*range(begin - 30, end + 30, 30), *unbooked, *(start + 1 for start in unbooked)}
    everywhere = Case(**{**vars(case), "first": case.first - DAY, "last": case.last + DAY}).starts()
    assert {start for start in asked if times.is_open(case.procedure, start, case.now, case.busy)} == asked & {
        *everywhere
    }


@examples(25)
@given(cases(), st.integers(1, 9))
def test_pages_put_together_are_the_whole(drawn: tuple[Case, date], limit: int) -> None:
    case, _ = drawn
    times = OpenTimes(case.practice, case.provider, case.location)
    whole = case.starts()
    paged: list[int] = []
    while page := times.starts(
        case.procedure, case.first, case.last, case.now, case.busy, limit, paged[-1] if paged else None
    ):
        assert page == whole[len(paged) : len(paged) + limit]
        paged += page
    assert paged == whole


@examples(15)
@given(cases(), cases())
def test_what_was_asked_before_does_not_change_an_answer(one: tuple[Case, date], other: tuple[Case, date]) -> None:
    case, earlier = one[0], other[0]
    times = OpenTimes(case.practice, case.provider, case.location)
    times.starts(earlier.procedure, case.first - DAY, case.last + DAY, 0, earlier.busy)
    assert times.starts(case.procedure, case.first, case.last, case.now, case.busy) == case.starts()
