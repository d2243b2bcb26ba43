"""Which rules a booking would break, and what overrides do to the times that are offered."""

import random
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest

from frontdesk.domain.availability import OVERRIDE_LANE, Busy, OpenTimes, free_gaps
from frontdesk.domain.booking_rules import RULES, ProposedVisit, why_closed
from frontdesk.domain.directory import (
    Closure,
    Directory,
    Location,
    OpeningHours,
    PatientKind,
    Practice,
    Procedure,
    Provider,
    TimeFormat,
    TimeOff,
    VisitType,
)
from frontdesk.domain.local_time import minute_of

VISIT = Procedure(1, "Visit", 30, buffer_after_minutes=5)
FREE = Busy((), (), ())


def minute(text: str) -> int:
    return minute_of(datetime.fromisoformat(f"2026-11-{text}:00+00:00"))


NOW = minute("16T08:00") * 60.0  # a Monday


def proposed(
    start: str,
    *,
    capacity: int = 1,
    kind: PatientKind = "any",
    accepts: bool = True,
    performs: bool = True,
    times: TimeFormat = "24h",
) -> ProposedVisit:
    practice = Practice("p", "P", "UTC", minimum_notice_minutes=120, booking_horizon_days=7, time_format=times)
    location = Location(1, "Downtown", "UTC", closures=(Closure(date(2026, 11, 19), date(2026, 11, 19), "Training"),))
    off = TimeOff(datetime(2026, 11, 18, 9), datetime(2026, 11, 18, 11), "Congress")
    provider = Provider(
        1, "Dr. Chen", accepts_new_patients=accepts, capacity=capacity, time_off=(off,),
        procedure_ids=None if performs else frozenset({9}),
        hours=(OpeningHours(1, frozenset(range(7)), 9 * 60, 17 * 60),),
    )  # fmt: skip
    visit_type = VisitType(1, "Type", kind, procedures=(VISIT,))
    directory = Directory(practice, {1: location}, {1: provider}, {1: visit_type})
    open_times = OpenTimes(practice, provider, location)
    return ProposedVisit(directory, provider, location, visit_type, VISIT, minute(start), open_times)


def broken(start: str, busy: Busy = FREE, *, seen: bool = True, **given: Any) -> dict[str, str]:
    return {each.rule: str(each.text) for each in proposed(start, **given).broken_rules(busy, NOW, seen=seen)}


def test_each_rule_is_named_with_its_own_sentence() -> None:
    nine = Busy((minute("17T09:00"),), (minute("17T09:35"),), (1,))
    texts = {
        **broken("16T08:00"),
        **broken("16T09:45"),
        **broken("25T09:00"),
        **broken("19T09:00"),
        **broken("18T09:00"),
        **broken("17T18:00"),
        **broken("17T10:10"),
        **broken("17T08:45", nine),
        **broken("17T12:00", kind="existing", seen=False, accepts=False, performs=False),
    }
    assert texts == {
        "begun": "08:00 has already begun.",
        "notice": "This is less than the 2 hours' notice that this practice asks for.",
        "horizon": "This is more than 7 days ahead, the furthest that can be booked.",
        "closed": "Downtown is closed on this day (Training).",
        "away": "Dr. Chen is away at this time (Congress).",
        "hours": "This is outside the hours of Dr. Chen at Downtown.",
        "interval": "Visits begin every 15 minutes from the start of the hours, not at 10:10.",
        "full": "Dr. Chen has 1 of 1 places taken at 09:00.",
        "patient": "This visit type is for existing patients, and the practice has not seen this patient yet.",
        "new_patients": "This provider does not accept new patients.",
        "procedure": "Dr. Chen does not perform Visit.",
    }
    assert texts.keys() == RULES.keys()
    assert broken("17T10:00") == {}
    assert broken("17T10:10", times="12h")["interval"].endswith("not at 10:10 AM.")
    assert broken("16T08:00", times="12h")["begun"] == "8:00 AM has already begun."


def test_a_minute_at_which_nobody_is_in_tells_why() -> None:
    for start, rule in (("19T09:00", "closed"), ("18T09:00", "away"), ("17T17:00", "hours"), ("17T16:59", None)):
        visit = proposed(start)
        found = why_closed(visit.directory, visit.provider, visit.location, visit.start)
        assert (None if found is None else found.rule) == rule


def any_day(chosen: random.Random, capacity: int) -> Busy:
    """Appointments of a day, of which those in the same lane do not overlap."""
    rows: list[tuple[int, int, int]] = []
    for _ in range(chosen.randrange(12)):
        start = minute("17T09:00") + chosen.randrange(-60, 300, 5)
        end, lane = start + chosen.choice((10, 35, 60)), chosen.choice((*range(1, capacity + 1), OVERRIDE_LANE, 1002))
        if not any(lane == each[2] and start < each[1] and each[0] < end for each in rows):
            rows.append((start, end, lane))
    return Busy(*([row[at] for row in sorted(rows)] for at in range(3)))


def test_overrides_take_places_and_what_is_open_breaks_no_rule() -> None:
    """In any assignment of lanes, an open start never puts more people at a time than the capacity."""
    chosen = random.Random(11)
    taken = VISIT.duration_minutes + VISIT.buffer_after_minutes
    seen = set()
    for _ in range(25):
        capacity = chosen.choice((1, 2, 3))
        busy = any_day(chosen, capacity)
        rows = list(zip(busy.starts, busy.ends, busy.lanes, strict=True))
        ordinary = [row for row in rows if row[2] < OVERRIDE_LANE]
        lanes_alone = list(free_gaps(Busy(*([row[at] for row in ordinary] for at in range(3))), capacity, VISIT))
        visit = proposed("17T09:00", capacity=capacity)
        for start in range(minute("17T09:00"), minute("17T13:00"), 15):
            is_open = visit.times.is_open(VISIT, start, NOW, busy)
            most = max(sum(s <= at < e for s, e, _ in rows) for at in range(start, start + taken, 5))
            lane_free = any(first <= start <= last for first, last in lanes_alone)
            assert is_open is (lane_free and most < capacity), (rows, start)
            assert (replace(visit, start=start).broken_rules(busy, NOW, seen=True) == []) is is_open, (rows, start)
            seen.add((is_open, lane_free))
    assert seen == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize(
    ("minutes", "words"), [(30, "30 minutes'"), (60, "1 hour's"), (1440, "1 day's"), (90, "90 minutes'")]
)
def test_the_notice_is_said_in_the_largest_unit(minutes: int, words: str) -> None:
    visit = proposed("16T08:15")
    practice = Practice("p", "P", "UTC", minimum_notice_minutes=minutes)
    times = OpenTimes(practice, visit.provider, visit.location)
    directory = Directory(practice, {1: visit.location}, {1: visit.provider}, {1: visit.visit_type})
    too_soon = ProposedVisit(directory, visit.provider, visit.location, visit.visit_type, VISIT, visit.start, times)
    assert f"less than the {words} notice" in str(too_soon.broken_rules(FREE, NOW, seen=True)[0].text)
