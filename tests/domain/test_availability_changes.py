"""The calendar on the days a zone changes its offset."""

from dataclasses import replace
from datetime import date, datetime

import pytest

from frontdesk.domain.directory import TimeOff
from tests.domain.open_times import MONDAY, NEW_YORK, VISIT, clocks, hours, local, offered, open_times


def test_nine_o_clock_is_nine_o_clock_on_both_sides_of_a_change() -> None:
    times = open_times(hours("09:00", "09:30"))
    assert offered(times, date(2026, 10, 31), date(2026, 11, 1)) == ["2026-10-31T09:00-04:00", "2026-11-01T09:00-05:00"]
    assert offered(times, date(2027, 3, 13), date(2027, 3, 14)) == ["2027-03-13T09:00-05:00", "2027-03-14T09:00-04:00"]


SPRING_FORWARD = [
    # zone, date, hours around the change, what a day offers on a half-hour grid for a visit of half an hour
    (NEW_YORK, date(2027, 3, 14), ("01:30", "03:30"), ["01:30-05:00", "03:00-04:00"]),
    ("Europe/London", date(2027, 3, 28), ("00:30", "02:30"), ["00:30+00:00", "02:00+01:00"]),
    ("Australia/Lord_Howe", date(2026, 10, 4), ("01:30", "03:30"), ["01:30+10:30", "02:30+11:00", "03:00+11:00"]),
    ("America/Santiago", date(2026, 9, 6), ("00:00", "02:00"), ["01:00-03:00", "01:30-03:00"]),
    ("Africa/Casablanca", date(2025, 4, 6), ("01:30", "03:30"), ["01:30+00:00", "03:00+01:00"]),
]

FALL_BACK = [
    (
        NEW_YORK,
        date(2026, 11, 1),
        ("00:30", "02:30"),
        ["00:30-04:00", "01:00-04:00", "01:30-04:00", "01:00-05:00", "01:30-05:00", "02:00-05:00"],
    ),
    (
        "Europe/London",
        date(2026, 10, 25),
        ("00:30", "02:30"),
        ["00:30+01:00", "01:00+01:00", "01:30+01:00", "01:00+00:00", "01:30+00:00", "02:00+00:00"],
    ),
    (
        "Australia/Lord_Howe",
        date(2026, 4, 5),
        ("01:00", "02:30"),
        ["01:00+11:00", "01:30+11:00", "01:30+10:30", "02:00+10:30"],
    ),
    (
        "America/Santiago",
        date(2026, 4, 4),
        ("22:30", "24:00"),
        ["22:30-03:00", "23:00-03:00", "23:30-03:00", "23:00-04:00", "23:30-04:00"],
    ),
    (
        "Africa/Casablanca",
        date(2025, 2, 23),
        ("01:30", "03:30"),
        ["01:30+01:00", "02:00+01:00", "02:30+01:00", "02:00+00:00", "02:30+00:00", "03:00+00:00"],
    ),
]


@pytest.mark.parametrize(("zone", "day", "span", "expected"), SPRING_FORWARD + FALL_BACK)
def test_a_missing_hour_offers_nothing_and_a_repeated_hour_is_offered_each_time(
    zone: str, day: date, span: tuple[str, str], expected: list[str]
) -> None:
    texts = offered(open_times(hours(*span), zone=zone), day, zone=zone)
    assert [text[11:] for text in texts] == expected
    assert {text[:10] for text in texts} == {day.isoformat()}


def test_a_zone_of_odd_offset_and_no_changes_is_offered_like_any_other() -> None:
    times = open_times(hours("09:00", "10:00"), zone="Asia/Kathmandu")
    assert offered(times, MONDAY, zone="Asia/Kathmandu") == ["2026-11-16T09:00+05:45", "2026-11-16T09:30+05:45"]


def test_a_slot_lasts_its_real_minutes_across_a_change() -> None:
    times = open_times(hours("01:00", "04:00"), interval=60)
    long_visit = replace(VISIT, duration_minutes=120)
    assert clocks(offered(times, date(2027, 3, 14), procedure=long_visit)) == ["01:00"]
    assert clocks(offered(times, date(2026, 11, 1), procedure=long_visit)) == ["01:00", "01:00", "02:00"]


def test_hours_that_end_in_a_repeated_hour_leave_a_gap_before_its_repetition() -> None:
    times = open_times(hours("00:30", "01:30"))
    assert offered(times, date(2026, 11, 1)) == [
        "2026-11-01T00:30-04:00",
        "2026-11-01T01:00-04:00",
        "2026-11-01T01:00-05:00",
    ]
    assert clocks(offered(times, date(2026, 11, 1), procedure=replace(VISIT, duration_minutes=60))) == ["00:30"]


def test_time_off_in_a_repeated_hour_lasts_from_the_first_start_to_the_last_end() -> None:
    times = open_times(
        hours("00:00", "03:00"), time_off=(TimeOff(local(2026, 11, 1, 1, 0), local(2026, 11, 1, 1, 30)),)
    )
    assert offered(times, date(2026, 11, 1)) == [
        "2026-11-01T00:00-04:00",
        "2026-11-01T00:30-04:00",
        "2026-11-01T01:30-05:00",
        "2026-11-01T02:00-05:00",
        "2026-11-01T02:30-05:00",
    ]


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        (local(2027, 3, 14, 2, 30), local(2027, 3, 14, 3, 30), ["01:00", "01:30", "03:30"]),
        (local(2027, 3, 14, 1, 30), local(2027, 3, 14, 2, 30), ["01:00", "03:00", "03:30"]),
        (local(2027, 3, 14, 2, 10), local(2027, 3, 14, 2, 50), ["01:00", "01:30", "03:00", "03:30"]),
    ],
)
def test_time_off_is_not_shortened_by_a_local_time_that_does_not_exist(
    starts: datetime, ends: datetime, expected: list[str]
) -> None:
    times = open_times(hours("01:00", "04:00"), time_off=(TimeOff(starts, ends),))
    assert clocks(offered(times, date(2027, 3, 14))) == expected
