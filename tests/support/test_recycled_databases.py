"""What a test leaves behind in a recycled database does not reach the next test."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from frontdesk.practice_file import parse
from frontdesk.store.database import DatabaseUnavailable
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.store.practices import import_practice
from tests.support.recycled_databases import RecycledDatabase, RecycledDatabases
from tests.support.shared_database import as_superuser
from tests.support.world import NOW, PRACTICE


@pytest.fixture
async def databases(cluster: EmbeddedPostgres) -> AsyncIterator[RecycledDatabases]:
    opened = RecycledDatabases(cluster)
    yield opened
    await opened.close()


async def contents(recycled: RecycledDatabase) -> dict[str, list[str]]:
    """All rows of all tables, and where every sequence stands."""
    connection = await asyncpg.connect(as_superuser(recycled.dsn), server_settings={"search_path": "frontdesk"})
    relations = await connection.fetch(
        """SELECT relname, CASE relkind WHEN 'S' THEN '(last_value, is_called)' ELSE 't' END FROM pg_class
           WHERE relnamespace = 'frontdesk'::regnamespace AND relkind IN ('r', 'S')"""
    )
    found = {
        name: sorted(row[0] for row in await connection.fetch(f'SELECT {content}::text FROM "{name}" t'))
        for name, content in relations
    }
    await connection.close()
    return found


async def test_rows_and_sequences_are_set_back_and_connections_kept(
    databases: RecycledDatabases, template: str
) -> None:
    async with databases.lend(template) as lent, lent.opened() as first:
        before = await contents(lent)
        await import_practice(first, parse(PRACTICE.replace("SLUG", "harbor")), NOW)
        pid = await first.fetchval("SELECT pg_backend_pid()")
        assert await contents(lent) != before
    async with databases.lend(template) as again, again.opened() as second:
        assert again is lent
        assert await contents(again) == before
        assert await second.fetchval("SELECT pg_backend_pid()") == pid
        with pytest.raises(DatabaseUnavailable):  # a task that a test forgot
            await first.fetchval("SELECT 1")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE frontdesk.practice ADD COLUMN more text",
        "GRANT DELETE ON frontdesk.practice TO frontdesk_service",
        "ALTER TABLE frontdesk.practice NO FORCE ROW LEVEL SECURITY",
        "ALTER FUNCTION frontdesk.current_versions(bigint) STABLE COST 7",
        "ANALYZE frontdesk.migration",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 64', current_database()); END $$",
    ],
)
async def test_a_database_with_another_schema_or_settings_is_not_lent_again(
    databases: RecycledDatabases, template: str, change: str
) -> None:
    async with databases.lend(template) as lent:
        superuser = await asyncpg.connect(as_superuser(lent.dsn))
        await superuser.execute(change)
        await superuser.close()
    async with databases.lend(template) as other:
        assert other.name != lent.name


async def test_sessions_that_a_test_left_open_are_ended(databases: RecycledDatabases, template: str) -> None:
    async with databases.lend(template) as lent:
        left: Any = await asyncpg.connect(lent.dsn)
        await left.execute("BEGIN; LOCK TABLE frontdesk.practice IN ACCESS SHARE MODE")
    async with databases.lend(template) as again:
        assert again is lent
    async with asyncio.timeout(30):
        while not left.is_closed():
            await asyncio.sleep(0.01)
