from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.local_time import (
    first_instant,
    is_skipped,
    iso_local,
    iso_utc,
    last_instant,
    local_date,
    local_day_bounds,
    occurrences,
    weekday,
    zone,
)
from tests.support.properties import examples

ZONES = (
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
    "Etc/GMT+12",
    "UTC",
)
DAY = 1440


def minutes(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp()) // 60


def wall(*when: int) -> int:
    """A wall-clock time counted as if its zone were UTC."""
    return minutes(*when)


@pytest.mark.parametrize(
    ("instant", "name", "text"),
    [
        ((2026, 11, 16, 14, 0), "America/New_York", "2026-11-16T09:00:00-05:00"),
        ((2026, 7, 1, 13, 0), "America/New_York", "2026-07-01T09:00:00-04:00"),
        ((2026, 7, 1, 13, 0), "Asia/Kathmandu", "2026-07-01T18:45:00+05:45"),
        ((2026, 7, 1, 13, 0), "UTC", "2026-07-01T13:00:00+00:00"),
        ((2026, 7, 1, 1, 5), "America/St_Johns", "2026-06-30T22:35:00-02:30"),
        ((2026, 12, 31, 10, 0), "Pacific/Kiritimati", "2027-01-01T00:00:00+14:00"),
        ((1969, 12, 31, 23, 59), "UTC", "1969-12-31T23:59:00+00:00"),
    ],
)
def test_local_text_carries_the_offset_of_its_zone_and_moment(instant: tuple[int, ...], name: str, text: str) -> None:
    assert iso_local([minutes(*instant)], name) == [text]


def test_an_hour_that_occurs_twice_differs_by_its_offset() -> None:
    first = minutes(2026, 11, 1, 5, 30)
    assert iso_local([first, first + 60], "America/New_York") == [
        "2026-11-01T01:30:00-04:00",
        "2026-11-01T01:30:00-05:00",
    ]


def test_no_text_falls_into_an_hour_that_does_not_exist() -> None:
    before = minutes(2027, 3, 14, 6, 59)
    assert iso_local([before, before + 1], "America/New_York") == [
        "2027-03-14T01:59:00-05:00",
        "2027-03-14T03:00:00-04:00",
    ]


def test_local_text_keeps_the_order_given() -> None:
    assert iso_local([minutes(2026, 1, 2), minutes(2026, 1, 1), minutes(2026, 1, 2)], "UTC") == [
        "2026-01-02T00:00:00+00:00",
        "2026-01-01T00:00:00+00:00",
        "2026-01-02T00:00:00+00:00",
    ]


def test_no_instants_give_no_text() -> None:
    assert iso_local([], "UTC") == []


@examples(50)
@given(
    st.sampled_from(ZONES),
    st.lists(st.integers(minutes(1987, 1, 1), minutes(2060, 1, 1)), max_size=20),
)
def test_text_date_and_weekday_are_those_of_the_standard_library(name: str, instants: list[int]) -> None:
    aware = [datetime.fromtimestamp(instant * 60, ZoneInfo(name)) for instant in instants]
    assert iso_local(instants, name) == [each.isoformat() for each in aware]
    assert [local_date(instant, name) for instant in instants] == [each.date() for each in aware]
    assert [weekday(instant, name) for instant in instants] == [each.strftime("%A") for each in aware]


@examples(50)
@given(st.sampled_from(ZONES), st.dates(date(1996, 1, 1), date(2060, 1, 1)))
def test_a_day_begins_where_the_day_before_ends_and_holds_only_its_own_minutes(name: str, day: date) -> None:
    first, end = local_day_bounds(day, name)
    assert local_day_bounds(day - timedelta(days=1), name)[1] == first
    assert local_date(first, name) == local_date(end - 1, name) == day
    assert local_date(first - 1, name) < day < local_date(end, name)


@pytest.mark.parametrize(
    ("name", "day", "hours"),
    [
        ("America/New_York", date(2027, 3, 14), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("America/Santiago", date(2026, 9, 6), 23),
        ("America/Santiago", date(2026, 4, 4), 25),
        ("Africa/Casablanca", date(2025, 2, 23), 25),
        ("Africa/Casablanca", date(2025, 4, 6), 23),
        ("Asia/Kathmandu", date(2026, 6, 1), 24),
        ("Asia/Kathmandu", date(1986, 1, 1), 23.75),
    ],
)
def test_a_day_has_as_many_hours_as_its_zone_gives_it(name: str, day: date, hours: float) -> None:
    first, end = local_day_bounds(day, name)
    assert end - first == hours * 60


def test_a_date_that_a_zone_skipped_is_empty() -> None:
    first, end = local_day_bounds(date(2011, 12, 30), "Pacific/Apia")
    assert first == end == local_day_bounds(date(2011, 12, 29), "Pacific/Apia")[1]
    assert end == local_day_bounds(date(2011, 12, 31), "Pacific/Apia")[0]


@pytest.mark.parametrize("name", ZONES)
def test_the_first_and_last_dates_there_are_have_bounds(name: str) -> None:
    for day in (date.min, date.max):
        first, end = local_day_bounds(day, name)
        assert end - first == DAY


def test_a_local_time_that_occurs_twice_has_a_first_and_a_last_instant() -> None:
    local = wall(2026, 11, 1, 1, 30)
    assert first_instant(local, "America/New_York") == minutes(2026, 11, 1, 5, 30)
    assert last_instant(local, "America/New_York") == minutes(2026, 11, 1, 6, 30)


def test_only_a_local_time_that_occurs_twice_has_two_occurrences() -> None:
    autumn, spring = date(2026, 11, 1), date(2026, 3, 8)
    found = occurrences(autumn, time(1, 30), "America/New_York")
    assert [each.isoformat() for each in found] == ["2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00"]
    assert occurrences(autumn, time(1, 30, fold=1), "America/New_York") == found
    for day, clock in ((autumn, time(2, 0)), (autumn, time(0, 55)), (spring, time(2, 30)), (spring, time(3, 0))):
        assert occurrences(day, clock, "America/New_York") == ()
        assert is_skipped(day, clock, "America/New_York") == ((day, clock) == (spring, time(2, 30)))
    assert not is_skipped(autumn, time(1, 30), "America/New_York")


def test_a_local_time_that_does_not_occur_is_the_end_of_its_gap() -> None:
    local = wall(2026, 9, 6, 0, 20)
    assert first_instant(local, "America/Santiago") == minutes(2026, 9, 6, 4, 0)
    assert last_instant(local, "America/Santiago") == minutes(2026, 9, 6, 4, 0)


def test_an_ordinary_local_time_is_one_instant() -> None:
    local = wall(2026, 11, 16, 0, 0)
    assert first_instant(local, "Asia/Kathmandu") == last_instant(local, "Asia/Kathmandu") == local - 345


def test_utc_text_ends_in_z_and_has_whole_seconds() -> None:
    assert iso_utc(datetime(2026, 11, 16, 14, 0, 59, 999_999, tzinfo=UTC)) == "2026-11-16T14:00:59Z"
    eastern = timezone(timedelta(hours=-5))
    assert iso_utc(datetime(2026, 11, 16, 22, 0, tzinfo=eastern)) == "2026-11-17T03:00:00Z"


def test_a_datetime_without_a_zone_has_no_utc_text() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        iso_utc(datetime(2026, 11, 16, 14, 0))


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ZoneInfoNotFoundError):
        zone("Mars/Olympus_Mons")
