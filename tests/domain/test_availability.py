from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from frontdesk.domain.availability import Busy
from frontdesk.domain.directory import Closure, TimeOff
from tests.domain.open_times import (
    FREE,
    LONG_BEFORE,
    MONDAY,
    VISIT,
    clocks,
    free_lane,
    hours,
    local,
    minute,
    offered,
    open_times,
)


def test_starts_lie_on_the_grid_and_the_whole_slot_lies_in_the_hours() -> None:
    assert offered(open_times(hours("09:00", "10:40")), MONDAY) == [
        "2026-11-16T09:00-05:00",
        "2026-11-16T09:30-05:00",
        "2026-11-16T10:00-05:00",
    ]


def test_the_grid_counts_from_each_opening() -> None:
    times = open_times(hours("09:10", "10:00"), hours("13:05", "14:05"), interval=20)
    assert clocks(offered(times, MONDAY)) == ["09:10", "09:30", "13:05", "13:25"]


def test_a_slot_may_cross_from_one_hours_entry_into_the_next() -> None:
    times = open_times(hours("09:00", "10:00"), hours("10:00", "11:00"), interval=60)
    assert clocks(offered(times, MONDAY, procedure=replace(VISIT, duration_minutes=90))) == ["09:00"]


def test_overlapping_hours_offer_a_start_once() -> None:
    times = open_times(hours("09:00", "11:00"), hours("10:00", "12:00"), interval=60)
    assert clocks(offered(times, MONDAY)) == ["09:00", "10:00", "11:00"]


def test_a_slot_may_cross_midnight_into_hours_of_the_next_day() -> None:
    times = open_times(hours("23:00", "24:00", [0]), hours("00:00", "00:15", [1]), interval=15)
    assert clocks(offered(times, MONDAY)) == ["23:00", "23:15", "23:30", "23:45"]
    assert clocks(offered(times, MONDAY, procedure=replace(VISIT, duration_minutes=45))) == ["23:00", "23:15", "23:30"]
    assert offered(times, MONDAY + timedelta(days=1)) == []


def test_a_slot_longer_than_a_day_needs_every_minute_of_it_open() -> None:
    always = open_times(hours("00:00", "24:00"), interval=720)
    two_days = replace(VISIT, duration_minutes=2880)
    assert clocks(offered(always, MONDAY, procedure=two_days)) == ["00:00", "12:00"]
    closed = open_times(
        hours("00:00", "24:00"), interval=720, closures=(Closure(date(2026, 11, 18), date(2026, 11, 18)),)
    )
    assert clocks(offered(closed, MONDAY, procedure=two_days)) == ["00:00"]


def test_hours_of_another_location_are_not_offered() -> None:
    times = open_times(replace(hours("09:00", "10:00"), location_id=2))
    assert offered(times, MONDAY) == []


def test_hours_hold_on_their_weekdays_and_effective_dates_both_included() -> None:
    times = open_times(
        hours("09:00", "09:30", [0, 2], effective_from=date(2026, 11, 16), effective_to=date(2026, 11, 25))
    )
    texts = offered(times, date(2026, 11, 1), date(2026, 12, 31))
    assert [text[:10] for text in texts] == ["2026-11-16", "2026-11-18", "2026-11-23", "2026-11-25"]


def test_nothing_is_offered_on_closed_dates_both_ends_included() -> None:
    times = open_times(hours("09:00", "09:30"), closures=(Closure(date(2026, 11, 17), date(2026, 11, 18)),))
    texts = offered(times, MONDAY, date(2026, 11, 19))
    assert [text[:10] for text in texts] == ["2026-11-16", "2026-11-19"]


def test_time_off_cuts_into_hours_and_across_midnights() -> None:
    times = open_times(
        hours("09:00", "12:00"), time_off=(TimeOff(local(2026, 11, 16, 10, 15), local(2026, 11, 18, 10, 30)),)
    )
    assert offered(times, MONDAY, date(2026, 11, 18)) == [
        "2026-11-16T09:00-05:00",
        "2026-11-16T09:30-05:00",
        "2026-11-18T10:30-05:00",
        "2026-11-18T11:00-05:00",
        "2026-11-18T11:30-05:00",
    ]


def test_time_off_until_further_notice_offers_nothing() -> None:
    times = open_times(hours("09:00", "12:00"), time_off=(TimeOff(local(2020, 1, 1), local(9999, 12, 31, 23, 59)),))
    assert offered(times, MONDAY, date(2027, 11, 18)) == []


def test_time_off_with_seconds_covers_every_minute_it_touches() -> None:
    off = TimeOff(local(2026, 11, 16, 9, 30, 59), local(2026, 11, 16, 10, 0, 1))
    times = open_times(hours("09:00", "11:00"), interval=1, time_off=(off,))
    assert clocks(offered(times, MONDAY, procedure=replace(VISIT, duration_minutes=29)))[:3] == [
        "09:00",
        "09:01",
        "10:01",
    ]


def test_time_off_leaves_the_last_minute_before_and_the_first_after_it() -> None:
    off = TimeOff(local(2026, 11, 16, 9, 1), local(2026, 11, 16, 9, 59))
    times = open_times(hours("09:00", "10:00"), interval=1, time_off=(off,))
    assert clocks(offered(times, MONDAY, procedure=replace(VISIT, duration_minutes=1))) == ["09:00", "09:59"]


def test_a_slot_that_has_begun_is_not_offered() -> None:
    times = open_times(hours("09:00", "10:00"))
    nine = minute(2026, 11, 16, 14, 0) * 60
    assert clocks(offered(times, MONDAY, now=nine - 0.001)) == ["09:00", "09:30"]
    assert clocks(offered(times, MONDAY, now=nine)) == ["09:30"]


def test_a_slot_inside_the_minimum_notice_is_not_offered() -> None:
    times = open_times(hours("09:00", "10:00"), notice=60)
    eight = minute(2026, 11, 16, 13, 0) * 60
    assert clocks(offered(times, MONDAY, now=eight)) == ["09:00", "09:30"]
    assert clocks(offered(times, MONDAY, now=eight + 0.001)) == ["09:30"]


def test_the_horizon_counts_local_dates_from_today_at_the_location() -> None:
    times = open_times(hours("09:00", "09:30"), zone="Pacific/Auckland", horizon=2)
    late_monday_in_utc = datetime(2026, 11, 16, 23, tzinfo=UTC).timestamp()
    texts = offered(times, MONDAY, date(2026, 12, 31), now=late_monday_in_utc, zone="Pacific/Auckland")
    assert [text[:10] for text in texts] == ["2026-11-18", "2026-11-19"]


def test_dates_as_far_as_they_go_are_searched_within_the_horizon() -> None:
    times = open_times(hours("09:00", "09:30"), horizon=1)
    now = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
    assert [text[:10] for text in offered(times, date.min, date.max, now=now)] == ["2026-11-16", "2026-11-17"]
    assert offered(times, date.max, date.max, now=now) == []
    assert offered(times, date(2026, 11, 17), date(2026, 11, 16), now=now) == []


def test_a_slot_and_its_buffer_keep_clear_of_appointments() -> None:
    times = open_times(hours("09:00", "12:00"))
    ten, eleven = minute(2026, 11, 16, 15, 0), minute(2026, 11, 16, 16, 0)
    busy = Busy([ten], [eleven], [1])
    assert clocks(offered(times, MONDAY, busy=busy)) == ["09:00", "09:30", "11:00", "11:30"]
    buffered = replace(VISIT, buffer_after_minutes=10)
    assert clocks(offered(times, MONDAY, busy=busy, procedure=buffered)) == ["09:00", "11:00", "11:30"]


def test_the_buffer_need_not_fit_into_the_hours() -> None:
    times = open_times(hours("09:00", "10:00"))
    assert clocks(offered(times, MONDAY, procedure=replace(VISIT, buffer_after_minutes=60))) == ["09:00", "09:30"]


def test_an_appointment_from_the_day_before_still_blocks_after_a_shorter_one() -> None:
    times = open_times(hours("00:00", "02:00"))
    midnight = minute(2026, 11, 16, 5, 0)
    busy = Busy([midnight - 120, midnight - 60], [midnight + 60, midnight - 30], [1, 1])
    assert clocks(offered(times, MONDAY, busy=busy)) == ["01:00", "01:30"]


def test_a_time_is_offered_as_long_as_one_lane_has_room() -> None:
    times = open_times(hours("09:00", "11:00"), capacity=2)
    nine = minute(2026, 11, 16, 14, 0)
    busy = Busy([nine, nine + 30, nine + 60], [nine + 60, nine + 60, nine + 90], [1, 2, 1])
    assert clocks(offered(times, MONDAY, busy=busy)) == ["09:00", "10:00", "10:30"]


def test_room_pieced_together_from_two_lanes_is_no_room() -> None:
    times = open_times(hours("09:00", "10:00"), capacity=2, interval=60)
    nine = minute(2026, 11, 16, 14, 0)
    busy = Busy([nine, nine + 30], [nine + 30, nine + 60], [1, 2])
    assert offered(times, MONDAY, busy=busy, procedure=replace(VISIT, duration_minutes=60)) == []
    assert free_lane(busy, nine, nine + 60, 2) is None


def test_the_smallest_free_lane_is_taken() -> None:
    busy = Busy([100, 100, 130], [130, 160, 160], [1, 2, 3])
    assert free_lane(busy, 100, 130, 3) == 3
    assert free_lane(busy, 130, 160, 3) == 1
    assert free_lane(busy, 90, 100, 3) == 1
    assert free_lane(busy, 115, 145, 3) is None
    assert free_lane(busy, 115, 145, 2) is None
    assert free_lane(FREE, 0, 1, 1) == 1


def test_a_cursor_goes_on_where_a_limited_page_stopped() -> None:
    times = open_times(hours("09:00", "11:00"))
    whole = times.starts(VISIT, MONDAY, date(2026, 11, 18), LONG_BEFORE, FREE)
    paged: list[int] = []
    while page := times.starts(
        VISIT, MONDAY, date(2026, 11, 18), LONG_BEFORE, FREE, limit=5, after=paged[-1] if paged else None
    ):
        assert len(page) <= 5
        paged += page
    assert paged == whole
    assert len(whole) == 12


def test_a_cursor_from_before_today_does_not_bring_back_the_past() -> None:
    times = open_times(hours("09:00", "10:00"))
    nine = minute(2026, 11, 16, 14, 0)
    assert times.starts(VISIT, MONDAY, MONDAY, nine * 60, FREE, after=nine - 1000) == [nine + 30]


def test_a_cursor_at_the_first_bookable_start_is_not_repeated() -> None:
    times = open_times(hours("09:00", "10:00"))
    nine = minute(2026, 11, 16, 14, 0)
    assert times.starts(VISIT, MONDAY, MONDAY, nine * 60 - 60, FREE, after=nine) == [nine + 30]


def test_a_limited_search_looks_no_further_than_it_must() -> None:
    times = open_times(hours("09:00", "11:00"))
    times.starts(VISIT, MONDAY, date(2027, 11, 16), LONG_BEFORE, FREE, limit=5)
    assert len(times._days) == 2


def test_remembered_days_stay_bounded() -> None:
    times = open_times(hours("09:00", "10:00"))
    everything = times.starts(VISIT, date(2026, 1, 1), date(2035, 12, 31), LONG_BEFORE, FREE)
    assert len(times._days) <= 1000
    assert len(everything) == 2 * (date(2036, 1, 1) - date(2026, 1, 1)).days


def test_only_an_offered_start_is_open() -> None:
    times = open_times(hours("09:00", "10:00"), horizon=700)
    nine = minute(2026, 11, 16, 14, 0)
    asked = [nine - 30, nine, nine + 1, nine + 30, nine + 60]
    assert [times.is_open(VISIT, start, LONG_BEFORE, FREE) for start in asked] == [False, True, False, True, False]
    assert not times.is_open(VISIT, nine, LONG_BEFORE, Busy([nine + 29], [nine + 31], [1]))
    assert not times.is_open(VISIT, nine, nine * 60, FREE)
    assert not times.is_open(VISIT, 2**32 - 1, LONG_BEFORE, FREE)


def test_the_window_is_the_real_time_of_its_local_dates() -> None:
    times = open_times()
    assert times.window(date(2026, 10, 31), date(2026, 11, 1)) == (minute(2026, 10, 31, 4), minute(2026, 11, 2, 5))
    assert times.window(date(2027, 3, 14), date(2027, 3, 14)) == (minute(2027, 3, 14, 5), minute(2027, 3, 15, 4))
