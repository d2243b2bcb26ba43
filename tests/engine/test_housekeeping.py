"""Housekeeping removes expired intents in bounded batches, analyzes grown tables, and skips idle practices."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from frontdesk import housekeeping
from frontdesk.access.limits.usage import prune_usage_counts
from frontdesk.audit.trail import AuditTrail
from frontdesk.housekeeping import housekeeping_steps, prune_deliveries, prune_events, prune_intents
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.store.practice_work import practices_with
from frontdesk.store.statistics import analyze_grown_tables
from tests.desk.acting import staff_member
from tests.support.shared_database import as_superuser
from tests.support.world import PRACTICE, World, patient_id, slots

_GROWN = """
INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone, phone_digits, seen,
                     created_at, updated_at)
SELECT 1, 'pat_grown' || n, 10000 + n, 'F', 'L', 'f l', '1990-01-01', '', '', false, now(), now()
FROM generate_series(1, $1::integer) AS n
"""


async def _challenges(world: World, count: int) -> list[dict[str, str]]:
    agent = await world.client()
    ada, found = await patient_id(agent), await slots(agent)
    bodies = []
    for number in range(count):
        body = {"patientId": ada, "slotId": found[number]["id"]}
        body["confirmationToken"] = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
        bodies.append(body)
    await agent.post("/api/appointments", json=bodies[0])
    return bodies


async def _left(world: World) -> int:
    async with world.database.transaction(1) as connection:
        return await connection.fetchval("SELECT count(*) FROM intent WHERE practice_id = 1")  # type: ignore[no-any-return]


async def test_the_service_may_do_all_of_it(world: World) -> None:
    for step in housekeeping_steps(world.database, world.clock):
        await step.run()


@pytest.mark.parametrize(("node", "expires", "left"), [(72, 1, 2), (-72, -1, 2), (72, -1, 0), (-1, -2, 0)])
async def test_a_node_removes_what_has_expired_by_its_clock_and_that_of_the_database(
    world: World, node: int, expires: int, left: int
) -> None:
    """Times are hours from now. Where a node's clock is ahead, the tokens of the others stay valid."""
    now = datetime.now(UTC)
    await _challenges(world, 2)
    async with world.database.transaction(1) as connection:
        sql = "UPDATE intent SET keep_until = $1 WHERE practice_id = 1"
        await connection.execute(sql, now + timedelta(hours=expires))
    world.clock.now = now + timedelta(hours=node)
    for step in housekeeping_steps(world.database, world.clock):
        await step.run()
    assert await _left(world) == left


async def test_live_challenges_and_results_stay(world: World) -> None:
    await _challenges(world, 4)
    assert await prune_intents(world.database, world.clock.now) == 0
    assert await _left(world) == 4


async def test_expired_challenges_go_and_results_stay_for_a_day(world: World) -> None:
    await _challenges(world, 4)
    world.clock.advance(minutes=11)
    assert await prune_intents(world.database, world.clock.now) == 3
    world.clock.advance(hours=24)
    assert await prune_intents(world.database, world.clock.now) == 1
    assert await _left(world) == 0


async def test_a_run_removes_at_most_so_many(world: World) -> None:
    await _challenges(world, 6)
    world.clock.advance(minutes=11)
    assert await prune_intents(world.database, world.clock.now, limit=2) == 2
    assert await _left(world) == 4


async def test_as_long_as_there_is_more_a_step_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "MAX_BATCH_SIZE", 2)
    monkeypatch.setattr(housekeeping, "PAUSE_SECONDS", 0.0)
    await _challenges(world, 6)
    world.clock.advance(minutes=11)
    [pruning] = [each for each in housekeeping_steps(world.database, world.clock) if each.name == "intent pruning"]
    async with world.database.transaction(1) as connection:
        await connection.execute("UPDATE intent SET keep_until = '2020-01-01' WHERE practice_id = 1")
    await pruning.run()
    assert await _left(world) == 0


@pytest.mark.parametrize(
    ("name", "table", "row"),
    [
        ("failed attempt pruning", "token_failure", "digest, old, 1"),
        ("assertion pruning", "used_assertion", "digest, old"),
        ("challenge pruning", "used_challenge", "digest, old"),
        ("application pruning", "application", "n::text, '', '{}'::text[], old"),
        ("grant pruning", "authorization_code", "digest, client, digest, '', '', old"),
        ("grant pruning", "refresh_token", "digest, client, digest, old"),
        ("session pruning", "staff_session", "digest, staff, 'link', '', old, old, old"),
        ("session pruning", "staff_link", "digest, staff, old, old"),
    ],
)
async def test_steps_over_all_practices_go_on_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, table: str, row: str
) -> None:
    monkeypatch.setattr(housekeeping, "MAX_BATCH_SIZE", 2)
    monkeypatch.setattr(housekeeping, "MAX_ATTEMPTS_BATCH_SIZE", 2)
    monkeypatch.setattr(housekeeping, "PAUSE_SECONDS", 0.0)
    await world.client()
    await staff_member(world)
    count = f"SELECT count(*) FROM {table}"
    current = await world.database.fetchval(count)
    await world.database.write(
        f"""INSERT INTO {table} SELECT {row} FROM (
                SELECT n, sha256(n::text::bytea) AS digest, timestamptz '2020-01-01' AS old,
                       (SELECT min(client_id) FROM client) AS client, (SELECT min(staff_id) FROM staff) AS staff
                FROM generate_series(1, 7) AS n)"""
    )
    [pruning] = [each for each in housekeeping_steps(world.database, world.clock) if each.name == name]
    await pruning.run()
    assert await world.database.fetchval(count) == current


async def test_several_nodes_keep_house_together(world: World) -> None:
    await _challenges(world, 8)
    world.clock.advance(minutes=11)
    removed = await asyncio.gather(*(prune_intents(world.database, world.clock.now) for _ in range(4)))
    assert sum(removed) == 7


async def _idle_practices(world: World, count: int) -> None:
    """More practices, in which nothing has ever happened."""
    async with world.database.transaction() as connection:
        await connection.execute(
            """INSERT INTO practice (slug, name, time_zone, minimum_notice_minutes, booking_horizon_days,
                   slot_interval_minutes, scheduling_system, sandbox, created_at)
               SELECT 'idle-' || n, 'Idle', 'UTC', 0, 90, 15, '{"kind": "native"}', false, now()
               FROM generate_series(1, $1::integer) n""",
            count,
        )


async def test_housekeeping_costs_the_same_few_statements_however_many_practices_are_idle(world: World) -> None:
    await _idle_practices(world, 500)
    before = world.database.statements
    now = world.clock.now
    await prune_intents(world.database, now)
    await prune_events(world.database, now)
    await prune_usage_counts(world.database, now, 1000)
    await AuditTrail(world.database).find_unsealed()
    deliverer: Deliverer = world.service.webhooks
    assert await deliverer.start_due() == []
    await prune_deliveries(world.database, now)
    assert world.database.statements - before <= 8


async def test_records_that_a_dead_worker_left_unsealed_are_found_among_many_practices(world: World) -> None:
    await _idle_practices(world, 50)
    agent = await world.client()
    assert (await agent.get(f"/api/patients/{await patient_id(agent)}")).status_code == 200
    assert await practices_with(world.database, "unsealed records", world.clock.now) == [1]
    another = AuditTrail(world.database)
    await another.find_unsealed()
    before = world.database.statements
    await another.seal_pending()
    assert world.database.statements - before == 1, "only the practice that has records"
    assert await practices_with(world.database, "unsealed records", world.clock.now) == []


async def test_looking_for_chores_leaves_no_practice_named(world: World) -> None:
    """The next statement of the session must name its own, or be refused."""
    async with world.database.transaction() as connection:
        await connection.fetch("SELECT practices_with('unsealed records', now())")
    async with world.database.transaction() as connection:
        with pytest.raises((asyncpg.UndefinedObjectError, asyncpg.InvalidTextRepresentationError)):
            await connection.fetch("SELECT count(*) FROM patient")


@pytest.mark.one_server
async def test_tables_that_have_grown_are_analyzed(world: World, owner: asyncpg.Connection) -> None:
    await owner.execute("ALTER TABLE patient SET (autovacuum_enabled = off)")  # a table that it works on is left out
    patients = "".join(
        f'  - {{number: {number}, firstName: F, lastName: L, dob: 1990-01-01, phone: "+1 555 010 {number}"}}\n'
        for number in range(1000, 1700)
    )
    await world.import_file(PRACTICE.replace("SLUG", "harbor") + patients)
    assert await _analyzed_rows(world) >= 700

    async with world.database.transaction(1) as connection:
        await connection.execute(_GROWN, 8000)
    await analyze_grown_tables(world.database)
    assert await _analyzed_rows(world) >= 8700


@pytest.mark.one_server
async def test_tables_that_have_changed_a_lot_are_analyzed_now_and_then(world: World, database_dsn: str) -> None:
    """Else a practice that is new in a large table would be taken for empty until a tenth of the table has changed."""
    superuser = await asyncpg.connect(as_superuser(database_dsn), server_settings={"search_path": "frontdesk"})
    analyzed = "SELECT pg_stat_get_last_analyze_time('patient'::regclass)"
    change = "UPDATE patient SET last_name = last_name WHERE practice_id = 1; SELECT pg_stat_force_next_flush()"
    try:
        await superuser.execute("ALTER TABLE patient SET (autovacuum_enabled = off)")
        async with world.database.transaction(1) as connection:
            await connection.execute(_GROWN, 10_000)
        await superuser.execute("ANALYZE patient")
        before = await superuser.fetchval(analyzed)
        await superuser.execute(change)
        await analyze_grown_tables(world.database)
        assert await superuser.fetchval(analyzed) == before, "a moment ago"

        await superuser.execute("SELECT pg_stat_reset_single_table_counters('patient'::regclass)")
        await analyze_grown_tables(world.database)
        assert await superuser.fetchval(analyzed) is None, "nothing has changed"
        await superuser.execute(change)
        await analyze_grown_tables(world.database)
        assert await superuser.fetchval(analyzed) is not None
    finally:
        await superuser.close()


async def _analyzed_rows(world: World) -> float:
    """Of the patients, as the planner knows them."""
    sql = "SELECT reltuples FROM pg_class WHERE oid = 'patient'::regclass"
    return float(await world.database.fetchval(sql))
