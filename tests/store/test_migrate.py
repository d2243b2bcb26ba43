"""Migrations are applied once, function files whenever their text changes, and an older release keeps working."""

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from frontdesk.store import migrate as migrate_module
from frontdesk.store.database import Database, session_settings
from frontdesk.store.distribution import Distribution
from frontdesk.store.migrate import (
    FunctionFile,
    Migration,
    MigrationError,
    Release,
    distribute,
    migrate,
    readiness,
    status,
    this_release,
)


def greeting(text: str) -> FunctionFile:
    return FunctionFile(
        "greeting", f"CREATE OR REPLACE FUNCTION greeting() RETURNS text LANGUAGE sql AS $$ SELECT '{text}' $$;"
    )


def release(*functions: FunctionFile, version: str = "0.1.0") -> Release:
    """This release with further functions."""
    return replace(this_release(), version=version, functions=(*this_release().functions, *functions))


def release_with(migration: Migration) -> Release:
    """A newer release with one more migration, or with another text of one."""
    migrations = {m.key: m for m in this_release().migrations} | {migration.key: migration}
    return replace(this_release(), version="99.0.0", migrations=tuple(migrations.values()))


async def fetch(dsn: str, sql: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn, server_settings=session_settings(role=None))
    try:
        rows: list[asyncpg.Record] = await connection.fetch(sql)
        return rows
    finally:
        await connection.close()


async def greet(dsn: str) -> Any:
    return (await fetch(dsn, "SELECT greeting()"))[0][0]


@pytest.fixture
async def empty_dsn(owner_dsn: str) -> str:
    await fetch(owner_dsn, "DROP SCHEMA frontdesk CASCADE")
    return owner_dsn


async def test_an_up_to_date_database_is_left_alone(owner_dsn: str) -> None:
    rows = "SELECT name, xmin::text FROM function_file UNION SELECT name, xmin::text FROM migration ORDER BY 1, 2"
    before = await fetch(owner_dsn, rows)
    assert (await migrate(owner_dsn)).pending == 0
    assert await fetch(owner_dsn, rows) == before


async def test_two_processes_may_migrate_at_once(empty_dsn: str) -> None:
    first, second = await asyncio.gather(migrate(empty_dsn), migrate(empty_dsn))
    assert sorted([first.pending, second.pending]) == [0, len(first.release.migrations + first.release.functions)]


async def test_a_changed_function_file_is_applied_again_and_no_other(owner_dsn: str) -> None:
    await migrate(owner_dsn, release(greeting("hello")))
    assert [f.name for f in (await migrate(owner_dsn, release(greeting("goodbye")))).pending_functions] == ["greeting"]
    assert await greet(owner_dsn) == "goodbye"


async def test_changed_functions_are_applied_together_or_not_at_all(owner_dsn: str) -> None:
    await migrate(owner_dsn, release(greeting("hello")))
    broken = FunctionFile("later", "CREATE OR REPLACE FUNCTION later() RETURNS nonsense LANGUAGE sql AS $$ $$;")
    with pytest.raises(asyncpg.UndefinedObjectError):
        await migrate(owner_dsn, release(greeting("goodbye"), broken))
    assert await greet(owner_dsn) == "hello"
    assert (await migrate(owner_dsn, release(greeting("goodbye")))).pending == 1


async def test_a_migration_or_function_file_that_meets_a_deadlock_is_applied_again(
    owner_dsn: str, owner: asyncpg.Connection
) -> None:
    release = this_release()
    await owner.execute("CREATE SEQUENCE frontdesk.attempt")
    deadlock = (
        "DO $$ BEGIN IF nextval('frontdesk.attempt') % 2 = 1 THEN RAISE 'no' USING ERRCODE = '40P01'; END IF; END $$"
    )
    migration = Migration(9999, "locking", deadlock)
    function = FunctionFile("locking", deadlock)
    await migrate(
        owner_dsn,
        replace(release, migrations=(*release.migrations, migration), functions=(*release.functions, function)),
    )
    assert await owner.fetchval("SELECT count(*) FROM frontdesk.migration WHERE name = 'locking'") == 1
    assert await owner.fetchval("SELECT count(*) FROM frontdesk.function_file WHERE name = 'locking'") == 1
    assert await owner.fetchval("SELECT last_value FROM frontdesk.attempt") == 4


def altering() -> Release:
    """This release, with a migration that needs an exclusive lock."""
    release, alter = this_release(), Migration(9999, "altering", "ALTER TABLE practice ADD COLUMN more text")
    return replace(release, migrations=(*release.migrations, alter))


async def test_calls_do_not_wait_behind_a_migration_that_waits_for_a_lock(
    owner_dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "_LOCK_SECONDS", 0.2)
    monkeypatch.setattr(migrate_module, "_PAUSE_SECONDS", 0.2)
    dump = await asyncpg.connect(owner_dsn)
    async with dump.transaction():
        await dump.execute("LOCK TABLE frontdesk.practice IN ACCESS SHARE MODE")  # as a pg_dump does
        migrating = asyncio.create_task(migrate(owner_dsn, altering()))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
        async with asyncio.timeout(30):
            while not await owner.fetchval(waiting):
                await asyncio.sleep(0.01)
            await owner.fetchval("SELECT count(*) FROM frontdesk.practice")
        assert not migrating.done()
    await dump.close()
    await migrating
    assert await owner.fetchval("SELECT count(*) FROM frontdesk.migration WHERE name = 'altering'") == 1


async def test_a_migration_that_gets_no_lock_says_who_may_have_it(
    owner_dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_LOCK_SECONDS", 0.05), ("_PAUSE_SECONDS", 0.01), ("_ATTEMPTS", 2)):
        monkeypatch.setattr(migrate_module, name, value)
    async with owner.transaction():
        await owner.execute("LOCK TABLE frontdesk.practice IN ACCESS SHARE MODE")
        with pytest.raises(MigrationError, match="such as a pg_dump"):
            await migrate(owner_dsn, altering())


async def test_functions_of_a_newer_release_are_left_alone(owner_dsn: str) -> None:
    await migrate(owner_dsn, release(greeting("new"), version="0.10.0"))
    assert (await migrate(owner_dsn, release(greeting("old"), version="0.9.0"))).pending == 0
    assert await greet(owner_dsn) == "new"


async def test_migrations_neither_make_nor_need_functions(empty_dsn: str) -> None:
    await migrate(empty_dsn, replace(this_release(), functions=()))
    ours = "SELECT p.proname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang AND l.lanname IN ('sql', 'plpgsql')"
    assert await fetch(empty_dsn, f"{ours} WHERE p.pronamespace = 'frontdesk'::regnamespace") == []


async def test_every_function_file_can_be_applied_again(owner_dsn: str) -> None:
    shape = """
        SELECT oid::regprocedure::text AS name, prosrc, proconfig::text FROM pg_proc
        WHERE pronamespace = 'frontdesk'::regnamespace
        UNION ALL
        SELECT tgname, tgenabled::text, NULL FROM pg_trigger
        WHERE tgrelid = 'appointment'::regclass AND NOT tgisinternal
        ORDER BY 1
    """
    before = await fetch(owner_dsn, shape)
    await fetch(owner_dsn, "DELETE FROM function_file")
    assert len((await migrate(owner_dsn)).pending_functions) == len(this_release().functions)
    assert await fetch(owner_dsn, shape) == before
    assert [row["prosrc"] for row in before if row["name"].startswith("calendar_") and row["prosrc"] in "OADR"] == [
        "A"
    ] * 3


async def test_a_service_without_its_functions_is_not_ready(owner_dsn: str, database: Database) -> None:
    assert (await readiness(database)).unready is None
    await fetch(owner_dsn, "UPDATE function_file SET checksum = 'another', version = '0.0.9' WHERE name = 'audit'")
    assert (await readiness(database)).unready == "migrations pending"
    await migrate(owner_dsn)
    assert (await readiness(database)).unready is None
    await fetch(owner_dsn, "DELETE FROM function_file WHERE name = 'audit'")
    assert (await readiness(database)).unready == "migrations pending"


async def test_a_service_stays_ready_when_another_build_of_its_version_applies_its_functions(
    owner_dsn: str, database: Database
) -> None:
    *others, last = this_release().functions
    other_build = replace(this_release(), functions=(*others, replace(last, sql=f"{last.sql}-- another build\n")))
    assert (await migrate(owner_dsn, other_build)).pending == 1
    assert (await readiness(database)).unready is None
    assert (await migrate(owner_dsn)).pending == 1, "the last one to start applies its own"


async def test_an_older_release_works_with_a_newer_schema_until_the_upgrade_is_complete(
    owner_dsn: str, database: Database
) -> None:
    expand = Migration(9998, "expand", "CREATE TABLE future (id integer)")
    contract = Migration(9999, "contract", "-- phase: after 99.0.0\nALTER TABLE practice DROP COLUMN IF EXISTS past")
    newer = replace(
        release(greeting("new"), version="99.0.0"), migrations=(*this_release().migrations, expand, contract)
    )
    with pytest.raises(MigrationError, match="phase before first"):
        await migrate(owner_dsn, newer, "after")
    state = await migrate(owner_dsn, newer, "before")
    assert (state.due_migrations("before"), state.deferred_migrations) == ([expand], [contract])
    assert (await readiness(database)).unready is None
    assert (await migrate(owner_dsn, phase="before")).pending == 0, "it can start, too"
    assert await greet(owner_dsn) == "new"
    assert (await migrate(owner_dsn, newer, "after")).due_migrations("after") == [contract]
    assert (await migrate(owner_dsn, newer)).due_migrations(None) == []
    assert (await readiness(database)).unready == "schema too new"
    with pytest.raises(MigrationError, match="newer version"):
        await migrate(owner_dsn)


async def test_what_an_earlier_release_left_for_after_its_upgrade_runs_before_the_next_one(owner_dsn: str) -> None:
    left = Migration(9998, "left", "-- phase: after 98.0.0\nSELECT 1")
    state = await migrate(owner_dsn, release_with(left), "before")
    assert (state.due_migrations("before"), state.deferred_migrations) == ([left], [])


async def test_a_new_database_gets_both_phases_at_once(empty_dsn: str) -> None:
    contract = Migration(9999, "contract", "-- phase: after 99.0.0\nALTER TABLE practice DROP COLUMN IF EXISTS past")
    assert contract in (await migrate(empty_dsn, release_with(contract), "before")).due_migrations("before")


def test_phases_are_written_so_that_they_are_recognised() -> None:
    for migration in this_release().migrations:
        assert ("-- phase:" in migration.sql) == (migration.after is not None), migration.name


async def test_a_migration_with_another_text_is_refused(owner_dsn: str) -> None:
    applied = next(m for m in this_release().migrations if m.number == 2)
    with pytest.raises(MigrationError, match="002"):
        await migrate(owner_dsn, release_with(replace(applied, sql="SELECT 1")))


async def test_a_migration_that_is_no_longer_needed_may_be_gone(owner_dsn: str) -> None:
    without = replace(this_release(), migrations=this_release().migrations[1:])
    assert (await migrate(owner_dsn, without)).pending == 0


async def test_a_start_analyzes_tables_that_grew_without_statistics(owner_dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute("CREATE TABLE grown WITH (autovacuum_enabled = off) AS SELECT generate_series(1, 10000) AS n")
    await migrate(owner_dsn)
    assert await owner.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'grown'") == 10000


async def test_a_database_without_citus_is_not_distributed(owner_dsn: str) -> None:
    with pytest.raises(MigrationError, match="CREATE EXTENSION citus"):
        await distribute(owner_dsn, lambda _step, _steps: None)
    assert (await status(owner_dsn)).distribution is None


async def test_an_interrupted_distribution_is_refused(owner_dsn: str, database: Database) -> None:
    steps = "SELECT * FROM (VALUES (1, '', true), (2, '', false)) AS t (step, statement, done)"
    await fetch(owner_dsn, f"CREATE TABLE distribution AS {steps}")
    columns = "nodename text, nodeport text, groupid integer, noderole text, isactive boolean"
    await fetch(owner_dsn, f"CREATE TABLE pg_dist_node ({columns})")
    await fetch(owner_dsn, "GRANT SELECT ON distribution, pg_dist_node TO frontdesk_service")
    assert (await readiness(database)).unready == "distribution interrupted"
    with pytest.raises(MigrationError, match="run frontdesk db distribute"):
        await migrate(owner_dsn)
    assert (await status(owner_dsn)).distribution == Distribution((), steps=2, unfinished=1)
