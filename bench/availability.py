"""Prints what the pure part of a warm slot search costs: open times, their text and their ids.

The calendar is a busy one: fourteen days of weekday hours with about a hundred appointments, and a page of fifty slots.
"""

import random
import secrets
import timeit
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from frontdesk.domain.availability import Busy, OpenTimes
from frontdesk.domain.directory import Location, OpeningHours, Practice, Procedure, Provider
from frontdesk.domain.local_time import iso_local
from frontdesk.domain.slot_ids import SlotIds

ZONE = "America/New_York"
FIRST = date(2026, 11, 16)
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
NO_BUSY = Busy((), (), ())
EVERY_WEEKDAY = frozenset(range(5))
EXAM = Procedure(id=100, name="Exam", duration_minutes=30)
SHORT = Procedure(id=101, name="Follow-up", duration_minutes=15)


def open_times(capacity: int = 1, provider_id: int = 10) -> OpenTimes:
    hours = (OpeningHours(1, EVERY_WEEKDAY, 480, 720), OpeningHours(1, EVERY_WEEKDAY, 780, 1080))
    provider = Provider(id=provider_id, name="Dr. Robert Chen", capacity=capacity, hours=hours)
    return OpenTimes(Practice(slug="bench", name="Bench", time_zone=ZONE), provider, Location(1, "Downtown", ZONE))


def appointments(times: OpenTimes, days: int, count: int, capacity: int = 1) -> Busy:
    """About `count` appointments per lane that do not overlap, spread at random over the open times."""
    chosen = random.Random(1)
    grid = times.starts(EXAM, FIRST, FIRST + timedelta(days=days), NOW, NO_BUSY)
    held = []
    for lane in range(1, capacity + 1):
        end = 0
        for start in sorted(chosen.sample(grid, min(len(grid), count * 3 // 2))):
            if start >= end:
                end = start + EXAM.duration_minutes
                held.append((start, end, lane))
    held.sort()
    return Busy(*(list(column) for column in zip(*held, strict=True)))


def report(name: str, work: Callable[[], object], rounds: int = 50) -> None:
    """The least of many short runs: what the work costs when nothing else takes the processor."""
    least = min(timeit.repeat(work, number=rounds, repeat=40)) / rounds
    print(f"{name:<66} {least * 1e6:9.1f} µs")


def main() -> None:
    last = FIRST + timedelta(days=14)
    for capacity in (1, 3):
        times = open_times(capacity)
        busy = appointments(times, 14, 120, capacity)
        assert len(times.starts(SHORT, FIRST, last, NOW, busy, limit=50)) == 50
        name = f"open times, 14 days, 50 items, {len(busy.starts)} appointments, capacity {capacity}"
        report(name, lambda times=times, busy=busy: times.starts(SHORT, FIRST, last, NOW, busy, limit=50))
    times = open_times()
    page = times.starts(SHORT, FIRST, last, NOW, appointments(times, 14, 120), limit=50)
    report("is_open for one start", lambda: times.is_open(SHORT, page[0], NOW, NO_BUSY))
    report("iso_local of 50", lambda: iso_local(page, ZONE))
    ids = SlotIds(secrets.token_bytes(32))
    report("encode_many of 50", lambda: ids.encode_many(10, 1, 20, 100, 15, page))
    text = ids.encode_many(10, 1, 20, 100, 15, page)[0]
    report("decode of 1", lambda: ids.decode(text))

    far = FIRST + timedelta(days=90)
    report("first day of a provider never asked about", lambda: open_times().starts(SHORT, FIRST, FIRST, NOW, NO_BUSY))
    everyone = [open_times(provider_id=number) for number in range(250)]
    full = times.starts(SHORT, FIRST, far, NOW, NO_BUSY)
    booked_out = Busy(full, [start + 15 for start in full], [1] * len(full))
    some = appointments(times, 90, 600)
    for name, busy in (("some", some), ("no", booked_out)):
        report(
            f"first 5 of 90 days for 250 providers with {name} room",
            lambda busy=busy: [each.starts(SHORT, FIRST, far, NOW, busy, limit=5) for each in everyone],
            rounds=1,
        )


if __name__ == "__main__":
    main()
