"""Requests are counted by how they ended: across workers, through an outage, and not forever."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.access.limits import usage
from frontdesk.access.limits.usage import KEEP_COARSE, KEEP_FINE, UsageCounts, prune_usage_counts
from frontdesk.logs import RequestLabels
from frontdesk.store.database import Database, DatabaseUnavailable
from tests.support.running import running
from tests.support.world import NOW, World, patient_id, slots


def answered(client: str = "fd_one", status: int = 200, code: str | None = None, **other: Any) -> RequestLabels:
    given = {
        "door": "rest", "operation": "search_slots", "practice_slug": "harbor", "practice_id": 1,
        "client_id": client, "method": "GET", "status": status, "code": code, **other,
    }  # fmt: skip
    return RequestLabels(**given)


def observe(counts: UsageCounts, labels: RequestLabels) -> None:
    counts.observe(labels, 1.0, "r")


async def stored(database: Database, practice: int = 1, minutes: int = 60) -> dict[tuple[str, str, int, str], int]:
    async with database.transaction(practice) as connection:
        rows = await connection.fetch(
            """SELECT client_id, operation, status, code, sum(requests)::bigint AS n FROM request_count
               WHERE practice_id = $1 AND minutes = $2 GROUP BY 1, 2, 3, 4""",
            practice,
            minutes,
        )
    return {(row["client_id"], row["operation"], row["status"], row["code"]): row["n"] for row in rows}


@pytest.fixture
async def second(database_dsn: str) -> AsyncIterator[Database]:
    """The way to the database of another worker."""
    opened = Database(database_dsn, pool_size=2)
    await opened.open()
    yield opened
    await opened.close()


async def test_two_workers_that_write_at_once_lose_nothing(world: World, second: Database) -> None:
    workers = [UsageCounts(world.database, world.clock), UsageCounts(second, world.clock)]
    for step in range(20):
        for worker in workers:
            for number in range(40):
                observe(worker, answered(f"fd_{number % 7}", *((200, None), (404, "not_found"))[number % 2]))
        if step % 2:
            workers.reverse()
        await asyncio.gather(*(worker.flush() for worker in workers))
    counted = await stored(world.database)
    assert sum(counted.values()) == 20 * 2 * 40
    assert counted["fd_0", "search_slots", 200, ""] == 20 * 2 * 3
    assert counted["fd_0", "search_slots", 404, "not_found"] == 20 * 2 * 3
    assert await stored(world.database, minutes=5) == counted


async def test_what_calls_end_in_is_counted_for_their_client_and_practice(world: World) -> None:
    agent, other = await world.client(), await world.client("other")
    await slots(agent)
    await agent.get("/api/slots/nothing")
    slot, patient = (await slots(agent))[0], await patient_id(agent)
    await agent.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})
    await other.get("/api/practice")
    await world.anonymous().get("/api/practice")
    await world.service.usage.flush()
    client = agent.headers["X-Test-Client"]
    assert await stored(world.database) == {
        (client, "search_slots", 200, ""): 2,
        (client, "get_slot", 404, "not_found"): 1,
        (client, "match_patient", 200, ""): 1,
        (client, "book_appointment", 428, "confirmation_required"): 1,
    }
    others = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'other'")
    assert await stored(world.database, others) == {(other.headers["X-Test-Client"], "get_practice", 200, ""): 1}


async def test_a_call_that_the_gateway_refuses_is_counted_too(world: World) -> None:
    agent = await world.client(per_minute=1)
    assert [(await agent.get("/api/practice")).status_code for _ in range(3)] == [200, 429, 429]
    await world.service.usage.flush()
    counted = await stored(world.database)
    assert counted[agent.headers["X-Test-Client"], "", 429, "rate_limited"] == 2


async def test_nobodys_requests_and_people_at_the_console_are_not_counted(world: World) -> None:
    counts = UsageCounts(world.database, world.clock)
    observe(counts, answered(practice_id=None))
    observe(counts, answered(door="console"))
    await counts.flush()
    assert await stored(world.database) == {}


async def test_what_the_database_did_not_take_is_written_when_it_is_back(world: World, database_dsn: str) -> None:
    away = Database(database_dsn, pool_size=1)
    counts = UsageCounts(away, world.clock)
    observe(counts, answered())
    with pytest.raises(DatabaseUnavailable):
        await counts.flush()
    observe(counts, answered())
    await away.open()
    try:
        await counts.flush()
        await counts.flush()
    finally:
        await away.close()
    assert await stored(world.database) == {("fd_one", "search_slots", 200, ""): 2}


async def test_only_so_many_different_outcomes_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MAX_UNWRITTEN_KEYS", 3)
    counts = UsageCounts(world.database, world.clock)
    for number in range(9):
        observe(counts, answered(f"fd_{number}"))
        observe(counts, answered("fd_0"))
    await counts.flush()
    counted = await stored(world.database)
    assert len(counted) == 3
    assert counted["fd_0", "search_slots", 200, ""] == 10


async def test_old_counts_go_a_bounded_number_at_a_time(world: World) -> None:
    counts = UsageCounts(world.database, world.clock)
    for number in range(3):
        observe(counts, answered(f"fd_{number}"))
    await counts.flush()
    assert await prune_usage_counts(world.database, NOW + KEEP_FINE - timedelta(hours=1), 10) == 0
    later = NOW + KEEP_FINE + timedelta(minutes=6)
    assert await prune_usage_counts(world.database, later, 2) == 2
    assert await prune_usage_counts(world.database, later, 10) == 1
    assert await stored(world.database, minutes=5) == {}
    assert len(await stored(world.database)) == 3
    assert await prune_usage_counts(world.database, NOW + KEEP_COARSE + timedelta(hours=2), 10) == 3
    assert await stored(world.database) == {}


async def test_the_last_moments_are_written_when_the_service_stops(world: World) -> None:
    counts = UsageCounts(world.database, world.clock)
    async with running(counts.step):
        await asyncio.sleep(0)
        observe(counts, answered())
    assert await stored(world.database) == {("fd_one", "search_slots", 200, ""): 1}


async def test_counting_a_request_costs_next_to_nothing(world: World) -> None:
    counts, request = UsageCounts(world.database, world.clock), answered()
    rounds = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(10_000):
            observe(counts, request)
        rounds.append((time.perf_counter() - began) / 10_000)
    assert min(rounds) < 20e-6
