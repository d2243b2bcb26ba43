"""The time axis: rows of wall clock that hold on ordinary days, and on those that are an hour shorter or longer."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.console.calendar.axis import STEP, Axis, GridPosition
from frontdesk.domain.local_time import local_day_bounds, minute_of
from tests.support.properties import examples

NEW_YORK = "America/New_York"
SPRING, AUTUMN, ORDINARY = date(2026, 3, 8), date(2026, 11, 1), date(2026, 11, 16)


def minute(text: str, zone: str = NEW_YORK, fold: int = 0) -> int:
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return minute_of(local)


def labels(axis: Axis) -> list[tuple[int, str | None]]:
    return [(mark.minute // 60, mark.zone) for mark in axis.marks]


def test_a_row_is_five_minutes_from_the_first_hour_on() -> None:
    axis = Axis([ORDINARY], NEW_YORK, 9 * 60, 17 * 60)
    assert axis.rows == 8 * 12
    assert axis.place(ORDINARY, minute("2026-11-16T09:00"), minute("2026-11-16T09:15")) == GridPosition(1, 3)
    assert axis.place(ORDINARY, minute("2026-11-16T12:30"), minute("2026-11-16T13:00")) == GridPosition(43, 6)
    assert [mark.place.at for mark in axis.marks] == [1, 13, 25, 37, 49, 61, 73, 85]


def test_what_reaches_over_the_edge_is_cut_and_what_lies_outside_is_not_placed() -> None:
    axis = Axis([ORDINARY], NEW_YORK, 9 * 60, 17 * 60)
    assert axis.place(ORDINARY, minute("2026-11-16T08:30"), minute("2026-11-16T09:10")) == GridPosition(1, 2)
    assert axis.place(ORDINARY, minute("2026-11-16T16:55"), minute("2026-11-16T18:00")) == GridPosition(96, 1)
    assert axis.place(ORDINARY, minute("2026-11-16T07:00"), minute("2026-11-16T09:00")) is None
    assert axis.place(ORDINARY, minute("2026-11-16T17:00"), minute("2026-11-16T18:00")) is None


def test_rows_have_the_times_of_the_clock_where_it_is_turned() -> None:
    assert Axis([ORDINARY], NEW_YORK, 0, 24 * 60).clocks(ORDINARY) is None
    assert Axis([AUTUMN], NEW_YORK, 9 * 60, 17 * 60).clocks(AUTUMN) is None
    autumn = Axis([AUTUMN], NEW_YORK, 0, 24 * 60).clocks(AUTUMN)
    assert autumn is not None
    assert [autumn[row] for row in (12, 23, 24, 35, 36)] == ["01:00", "01:55", "01:00/2", "01:55/2", "02:00"]
    spring = Axis([SPRING], NEW_YORK, 0, 24 * 60).clocks(SPRING)
    assert spring is not None
    assert spring[23:25] == ["01:55", "03:00"]
    beside = Axis([AUTUMN, AUTUMN + timedelta(days=1)], NEW_YORK, 0, 24 * 60).clocks(AUTUMN + timedelta(days=1))
    assert beside is not None
    assert beside[23:25] + beside[35:37] == ["01:55", "", "", "02:00"]


def test_odd_minutes_take_the_rows_they_touch() -> None:
    axis = Axis([ORDINARY], NEW_YORK, 9 * 60, 17 * 60)
    assert axis.place(ORDINARY, minute("2026-11-16T09:07"), minute("2026-11-16T09:11")) == GridPosition(2, 2)


def test_the_hour_that_spring_skips_has_no_rows() -> None:
    axis = Axis([SPRING], NEW_YORK, 0, 24 * 60)
    assert axis.rows == 23 * 12
    assert [hour for hour, _ in labels(axis)] == [0, 1, *range(3, 24)]
    place = axis.place(SPRING, minute("2026-03-08T01:45"), minute("2026-03-08T03:15"))
    assert place == GridPosition(22, 6)  # half an hour of real time


def test_the_hour_that_autumn_repeats_has_rows_for_each_time() -> None:
    axis = Axis([AUTUMN], NEW_YORK, 0, 24 * 60)
    assert axis.rows == 25 * 12
    assert labels(axis)[:4] == [(0, None), (1, "EDT"), (1, "EST"), (2, None)]
    first = axis.place(AUTUMN, minute("2026-11-01T01:30"), minute("2026-11-01T01:45"))
    second = axis.place(AUTUMN, minute("2026-11-01T01:30", fold=1), minute("2026-11-01T01:45", fold=1))
    assert (first, second) == (GridPosition(19, 3), GridPosition(31, 3))
    assert axis.place(AUTUMN, minute("2026-11-01T02:00"), minute("2026-11-01T02:30")) == GridPosition(37, 6)


def test_nine_stands_in_one_row_on_all_days_of_a_week_with_a_change() -> None:
    for monday in (date(2026, 3, 2), date(2026, 10, 26)):
        days = [monday + timedelta(days=number) for number in range(7)]
        axis = Axis(days, NEW_YORK, 0, 24 * 60)
        places = {axis.place(day, minute(f"{day}T09:00"), minute(f"{day}T10:00")) for day in days}
        assert len(places) == 1


def test_days_that_lack_an_hour_which_others_have_say_so() -> None:
    axis = Axis([date(2026, 10, 31), AUTUMN], NEW_YORK, 0, 24 * 60)
    assert axis.rows == 25 * 12
    assert axis.missing(AUTUMN) == []
    assert axis.missing(date(2026, 10, 31)) == [GridPosition(25, 12)]
    spring = Axis([date(2026, 3, 7), SPRING], NEW_YORK, 0, 24 * 60)
    assert spring.missing(SPRING) == [GridPosition(25, 12)]


def test_half_an_hour_of_change_is_half_an_hour_of_rows() -> None:
    lord_howe = "Australia/Lord_Howe"
    assert Axis([date(2026, 4, 5)], lord_howe, 0, 24 * 60).rows == 24 * 12 + 6
    assert Axis([date(2026, 10, 4)], lord_howe, 0, 24 * 60).rows == 24 * 12 - 6


@pytest.mark.parametrize("zone", [NEW_YORK, "Australia/Lord_Howe", "Europe/Berlin", "Africa/Cairo", "Asia/Kathmandu"])
@examples()
@given(
    day=st.dates(date(2026, 1, 1), date(2028, 12, 31)),
    starts=st.integers(0, 24 * 60),
    length=st.integers(1, 180),
)
def test_a_place_covers_exactly_the_real_minutes_of_its_day(zone: str, day: date, starts: int, length: int) -> None:
    axis = Axis([day], zone, 0, 24 * 60)
    begins, ends = local_day_bounds(day, zone)
    start, end = begins + starts, begins + starts + length
    place = axis.place(day, start, end)
    if start >= ends:
        assert place is None
        return
    assert place is not None
    instants = axis.instants(day)
    assert len(instants) == axis.rows == (ends - begins) // STEP
    covered = instants[place.at - 1 : place.at - 1 + place.rows]
    assert covered[0] <= start < covered[0] + STEP
    assert covered[-1] < min(end, ends) <= covered[-1] + STEP
