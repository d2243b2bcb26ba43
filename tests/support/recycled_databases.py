"""Databases that tests use one after another: undoing what a test wrote is quicker than copying the template again."""

import io
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import asyncpg

from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.support.shared_database import address, create_database, drop_database

POOL_SIZE = 8
MAX_USES = 100  # dead rows stay: nothing vacuums the test cluster
FIRST_OF_OURS = 16384  # object ids below are PostgreSQL's own

# First those whose triggers always run: they change tables that come later.
_TABLES = """
SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'r' AND nspname !~ '^pg_' AND nspname <> 'information_schema'
ORDER BY NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgenabled = 'A'), 1, 2
"""
_SEQUENCES = "SELECT seqrelid::regclass::text FROM pg_sequence ORDER BY 1"
# Every change of the schema, of a privilege, of a setting or of statistics changes one of these.
_CATALOG = " UNION ALL ".join(
    f"SELECT '{table}', count(*), max({table.split()[0]}.xmin::text::bigint), {more} FROM {table} WHERE {condition}"
    for table, condition, more in (
        ("pg_class", f"oid >= {FIRST_OF_OURS}", "sum(reltuples)"),
        ("pg_attribute", f"attrelid >= {FIRST_OF_OURS}", "0"),
        ("pg_index", f"indexrelid >= {FIRST_OF_OURS}", "0"),
        ("pg_statistic", f"starelid >= {FIRST_OF_OURS}", "0"),
        *((table, f"oid >= {FIRST_OF_OURS}", "0") for table in ("pg_proc", "pg_type", "pg_constraint")),
        *((table, "true", "0") for table in ("pg_trigger", "pg_policy", "pg_attrdef", "pg_namespace", "pg_extension")),
        ("pg_default_acl", "true", "0"),
        ("pg_database", "datname = current_database()", "0"),
        ("pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase", "datname = current_database()", "0"),
    )
)
_END_OTHER_SESSIONS = """
SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND pid <> ALL($1)
"""
_IDLE_SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE pid = ANY($1) AND state = 'idle' AND NOT EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = pg_stat_activity.pid)
"""


class _PooledDatabase(Database):
    """A database that can pass its open connections on: a new session costs more than most tests."""

    def __init__(self, dsn: str, sessions: list[Any]) -> None:
        super().__init__(dsn, pool_size=POOL_SIZE)
        self._sessions = sessions

    async def _connect(self, _dsn: None, **options: Any) -> Any:
        connection = await super()._connect(_dsn, **options)
        self._sessions.append(connection)
        return connection

    @property
    def is_idle(self) -> bool:
        return self._pool is not None and not (self._closing or self._in_use or self.waiting)

    def passed_on(self) -> Self:
        """Another one with its connections; a task that still uses this one finds it closed."""
        heir = type(self)(self.dsn, self._sessions)
        heir._pool, heir._ready = self._pool, self._ready
        self._pool, self._ready, self._closing = None, [], True
        return heir


class RecycledDatabase:
    """A copy of a template, whose rows and sequences can be set back."""

    def __init__(self, dsn: str, name: str, superuser: Any) -> None:
        self.dsn = dsn
        self.name = name
        self._superuser = superuser
        self._uses = 0
        self._sessions: list[Any] = []
        self._idle: _PooledDatabase | None = None

    @classmethod
    async def create(cls, cluster: EmbeddedPostgres, template: str) -> Self:
        name = await create_database(cluster, template)
        superuser = await asyncpg.connect(
            address(cluster, "postgres", name),
            server_settings={
                "search_path": "frontdesk, public",
                "session_replication_role": "replica",  # no foreign keys, and none but the triggers that always run
            },
        )
        recycled = cls(address(cluster, SERVICE_ROLE, name), name, superuser)
        await recycled._remember()
        return recycled

    async def _remember(self) -> None:
        self._catalog = await self._superuser.fetch(_CATALOG)
        self._rows: dict[tuple[str, str], bytes] = {}
        changed = []
        for schema, table in await self._superuser.fetch(_TABLES):
            count = await self._superuser.fetchval(f'SELECT count(*) FROM "{schema}"."{table}"')
            if count > 0:
                rows = io.BytesIO()
                await self._superuser.copy_from_table(table, schema_name=schema, output=rows, format="binary")
                self._rows[schema, table] = rows.getvalue()
            changed.append(
                f"SELECT '{schema}', '{table}' WHERE (SELECT count(*) <> {count} OR"
                f' coalesce(bool_or(xmin::text::bigint > $1), false) FROM "{schema}"."{table}")'
            )
        self._changed = " UNION ALL ".join(changed)
        sequences = []
        for (sequence,) in await self._superuser.fetch(_SEQUENCES):
            last, is_called = await self._superuser.fetchrow(f"SELECT last_value, is_called FROM {sequence}")
            sequences.append(f"setval('{sequence}', {last}, {is_called})")
        self._set_back_sequences = f"SELECT {', '.join(sequences)}"
        self._last_transaction = await self._superuser.fetchval("SELECT pg_current_xact_id()::text::bigint")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """The database with the open connections of the test before."""
        if self._idle is None:
            database = _PooledDatabase(self.dsn, self._sessions)
            await database.open()
        else:
            database, self._idle = self._idle.passed_on(), None
        try:
            yield database
        finally:
            if database.is_idle:
                self._idle = database.passed_on()
            else:
                await database.close()

    async def set_back(self) -> bool:
        """Undoes what a test did; False if the database is of no further use."""
        self._uses += 1
        self._sessions[:] = [session for session in self._sessions if not session.is_closed()]
        pids = [session.get_server_pid() for session in self._sessions]
        await self._superuser.fetch(_END_OTHER_SESSIONS, pids)
        if await self._superuser.fetchval(_IDLE_SESSIONS, pids) != len(pids):
            await self._close_sessions()
            await self._superuser.fetch(_END_OTHER_SESSIONS, [])
        if self._uses == MAX_USES or await self._superuser.fetch(_CATALOG) != self._catalog:
            return False
        changed = await self._superuser.fetch(self._changed, self._last_transaction)
        async with self._superuser.transaction():
            for schema, table in changed:
                await self._superuser.execute(f'DELETE FROM "{schema}"."{table}"')
                if rows := self._rows.get((schema, table)):
                    await self._superuser.copy_to_table(
                        table, schema_name=schema, source=io.BytesIO(rows), format="binary"
                    )
            await self._superuser.execute(self._set_back_sequences)
            self._last_transaction = await self._superuser.fetchval("SELECT pg_current_xact_id()::text::bigint")
        return True

    async def close(self) -> None:
        await self._close_sessions()
        await self._superuser.close()

    async def _close_sessions(self) -> None:
        if self._idle is not None:
            await self._idle.close()
            self._idle = None


class RecycledDatabases:
    """The databases of a cluster that no test uses now."""

    def __init__(self, cluster: EmbeddedPostgres) -> None:
        self._cluster = cluster
        self._free: defaultdict[str, list[RecycledDatabase]] = defaultdict(list)

    @asynccontextmanager
    async def lend(self, template: str) -> AsyncIterator[RecycledDatabase]:
        free = self._free[template]
        recycled = free.pop() if free else await RecycledDatabase.create(self._cluster, template)
        yield recycled
        if await recycled.set_back():
            free.append(recycled)
        else:
            await recycled.close()
            await drop_database(self._cluster, recycled.name)

    async def close(self) -> None:
        for free in self._free.values():
            for recycled in free:
                await recycled.close()
