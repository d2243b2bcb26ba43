"""Lanes, capacity and overrides are decided in Python for searches and in SQL for bookings: both decide alike."""

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import asyncpg
import pytest

from frontdesk.domain.availability import MAX_APPOINTMENT_MINUTES, OVERRIDE_LANE, Busy, first_full, free_gaps
from frontdesk.domain.directory import Procedure
from frontdesk.domain.local_time import instant_at, minute_of
from frontdesk.systems.native.calendar_cache import CalendarCache, CalendarRange, CalendarRow
from tests.domain.open_times import free_lane
from tests.support.shared_database import as_superuser
from tests.support.world import NOW, World

CALENDARS, VISITS = 80, 40
PROVIDERS = range(7000, 7000 + CALENDARS)
BASE = minute_of(NOW)
WHOLE = CalendarRange(BASE, BASE + 300)
DECIDED = """
SELECT open_lane(1, $1, $2, v.starts_at, v.busy_until, v.except_id, $7) AS lane,
       is_full_by_override(1, $1, $2, v.starts_at, v.busy_until, v.except_id, $7) AS is_full,
       state.starts, state.ends, state.lanes
FROM unnest($3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[]) WITH ORDINALITY
         AS v (starts_at, ends_at, busy_until, except_id, n),
     booking_state(1, 'pat_1', $1, v.starts_at, v.ends_at, v.except_id, $7) AS state
ORDER BY v.n
"""
APPOINTMENT = """
INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id, procedure_id,
    lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
SELECT 1, $1, 'pat_1', $2, 1, 21, 101, $3, $4::timestamptz, $5::timestamptz, $5,
       CASE WHEN $6 THEN 'booked' ELSE 'cancelled' END, 'client', $4, $4
"""
HOLD = """
INSERT INTO slot_hold (practice_id, hold_id, client_id, provider_id, location_id, visit_type_id, procedure_id, lane,
    starts_at, ends_at, busy_until, held_at, held_until, live)
SELECT 1, $1, 'client', $2, 1, 21, 101, $3, $4::timestamptz, $5::timestamptz, $5, until - interval '5 minutes', until,
       true
FROM (SELECT $7::timestamptz + CASE WHEN $6 THEN interval '1 minute' ELSE interval '0' END AS until) held
"""


class Taken(NamedTuple):
    id: str
    provider: int
    lane: int
    start: datetime
    end: datetime
    counts: bool  # False: a cancelled appointment, or a hold that expires now


class Visit(NamedTuple):
    start: int
    duration: int
    buffer: int
    except_id: str | None

    @property
    def procedure(self) -> Procedure:
        return Procedure(101, "Visit", self.duration, buffer_after_minutes=self.buffer)


def some_taken(chosen: random.Random, kind: str, provider: int, lanes: list[int]) -> list[Taken]:
    """Those of one lane do not overlap, as the constraints of the tables want it."""
    rows: list[Taken] = []
    for number in range(chosen.randrange(14)):
        start, minutes = BASE + chosen.randrange(0, 180, 5), chosen.choice((5, 10, 25, 60, MAX_APPOINTMENT_MINUTES))
        if minutes == MAX_APPOINTMENT_MINUTES:
            start += chosen.choice((5, 30)) - minutes
        span = instant_at(start), instant_at(start + minutes)
        row = Taken(f"{kind}_{provider}_{number}", provider, chosen.choice(lanes), *span, chosen.random() < 0.8)
        if not any(row.lane == other.lane and row.start < other.end and other.start < row.end for other in rows):
            rows.append(row)
    return rows


def some_visit(chosen: random.Random, taken: list[Taken]) -> Visit:
    start, duration = BASE + chosen.randrange(0, 180, 5), chosen.choice((5, 10, 30, 60))
    except_id = chosen.choice(taken).id if taken and chosen.random() < 0.4 else None
    return Visit(start, duration, chosen.choice((0, 0, 15)), except_id)


def moments(visits: list[Visit]) -> tuple[list[Any], ...]:
    """The starts, the ends without and with the buffer, and what does not count."""
    ends = [each.start + each.duration for each in visits]
    until = [end + each.buffer for end, each in zip(ends, visits, strict=True)]
    starts = [each.start for each in visits]
    return *([*map(instant_at, minutes)] for minutes in (starts, ends, until)), [each.except_id for each in visits]


def is_open(busy: Busy, capacity: int, visit: Visit) -> bool:
    return any(first <= visit.start <= last for first, last in free_gaps(busy, capacity, visit.procedure))


async def store(dsn: str, appointments: list[Taken], holds: list[Taken]) -> None:
    superuser = await asyncpg.connect(as_superuser(dsn), server_settings={"search_path": "frontdesk, public"})
    await superuser.execute("SET session_replication_role = replica")  # the providers and the patient do not exist
    await superuser.executemany(APPOINTMENT, appointments)
    await superuser.executemany(HOLD, [(*each, NOW) for each in holds])
    await superuser.close()


@pytest.mark.one_server
async def test_python_and_sql_find_the_same_times_open(world: World, database_dsn: str) -> None:
    chosen, seen = random.Random(7), Counter[tuple[bool, bool]]()
    calendars: dict[int, tuple[int, list[Visit]]] = {}
    appointments, holds = list[Taken](), list[Taken]()
    for provider in PROVIDERS:
        capacity = chosen.choice((1, 1, 2, 3))
        lanes = [*range(1, capacity + 2)]  # one more: the capacity was larger once
        booked = some_taken(chosen, "apt", provider, [*lanes, OVERRIDE_LANE, OVERRIDE_LANE + 1])
        held = some_taken(chosen, "hold", provider, lanes)
        calendars[provider] = capacity, [some_visit(chosen, [*booked, *held]) for _ in range(VISITS)]
        appointments += booked
        holds += held
    await store(database_dsn, appointments, holds)
    nothing, count = [None] * CALENDARS, CALENDARS
    async with world.database.transaction(1) as connection:
        read = await connection.fetch(
            "SELECT * FROM changed_busy_times(1, $1, $2, $2, $3, $4, $5)",
            [*PROVIDERS], nothing, [WHOLE.begin] * count, [WHOLE.end] * count, NOW,
        )  # fmt: skip
        for _, provider, *columns in read:
            searched = CalendarCache().update(1, provider, WHOLE, CalendarRow(*columns), None).busy
            capacity, visits = calendars[provider]
            rows = await connection.fetch(DECIDED, provider, capacity, *moments(visits), NOW)
            for visit, row in zip(visits, rows, strict=True):
                busy = Busy(row["starts"], row["ends"], row["lanes"])
                end = visit.start + visit.duration + visit.buffer
                case = capacity, visit, busy
                assert (row["lane"] is not None) is is_open(busy, capacity, visit), case
                assert row["lane"] in (None, free_lane(busy, visit.start, end, capacity)), case
                assert row["is_full"] is (first_full(busy, capacity, visit.start, end) is not None), case
                if visit.except_id is None:
                    assert (row["lane"] is not None) is is_open(searched, capacity, visit), case
                seen[row["lane"] is not None, row["is_full"]] += 1
    assert len(seen) == 3, seen
    assert min(seen.values()) > 20, seen


@pytest.mark.one_server
async def test_an_expired_hold_and_the_appointment_in_its_lane_take_one_place(world: World, database_dsn: str) -> None:
    """A caller whose clock is behind finds both."""
    start, end = instant_at(BASE), instant_at(BASE + 30)
    booked, override = (Taken(f"apt_{lane}", 7000, lane, start, end, True) for lane in (1, OVERRIDE_LANE))
    await store(database_dsn, [booked, override], [booked._replace(id="hold_1")])
    async with world.database.transaction(1) as connection:
        visit = Visit(BASE, 30, 0, None)
        [row] = await connection.fetch(DECIDED, 7000, 3, *moments([visit]), NOW)
        assert (row["lane"], row["is_full"]) == (2, False)
        assert is_open(Busy(row["starts"], row["ends"], row["lanes"]), 3, visit)
        [row] = await connection.fetch(DECIDED, 7000, 2, *moments([visit]), NOW)
        assert (row["lane"], row["is_full"]) == (None, True)


async def test_python_and_sql_have_the_same_limits(world: World) -> None:
    async with world.database.transaction(1) as connection:
        assert await connection.fetchval("SELECT max_appointment_length()") == timedelta(
            minutes=MAX_APPOINTMENT_MINUTES
        )
        assert await connection.fetchval("SELECT first_override_lane()") == OVERRIDE_LANE
