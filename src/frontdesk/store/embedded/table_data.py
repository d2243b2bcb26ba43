"""Copies the rows of every table out of a database, and into one whose tables our own migrations made.

No name and no statement comes from a backup: what a backup names is compared with the tables that are there.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, TypeAlias

import asyncpg

from frontdesk.store.connection import Connection
from frontdesk.store.database import SCHEMA, session_settings
from frontdesk.store.migrate import Release, migrate, read_state, this_release

# They describe the schema of their own database.
_NOT_COPIED = ("migration", "function_file")
_TABLES = """
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($2::text[])
AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname ORDER BY c.relname
"""
_EVENT_IDS = "outbox_event_id_seq"
_SEQUENCES = "SELECT sequencename::text AS name, last_value FROM pg_sequences WHERE schemaname = $1"
_REFERENCES = """
SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent FROM pg_constraint
WHERE contype = 'f' AND connamespace = $1::regnamespace AND conrelid <> confrelid
"""

TableFile: TypeAlias = Callable[[str], AbstractContextManager[Any]]  # a GzipFile is no BinaryIO in stubs
"""Opens the binary file of a table's rows, by the table's name."""


class BackupError(Exception):
    """Why a backup cannot be made or used, in one sentence."""


@dataclass(frozen=True, slots=True)
class TableData:
    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Content:
    """What a database holds in addition to its rows, in one snapshot."""

    migrations: list[tuple[str, int, str]]
    """The feature ("" is the core), number and checksum of each."""
    sequences: dict[str, int | None]
    """Last values; None if a sequence was never used."""
    tables: dict[str, TableData]


async def copy_out(dsn: str, table_file: TableFile) -> Content:
    """Writes the rows of each table, in COPY's text format, to the file that `table_file` opens for its name."""
    async with _connected(dsn) as connection:
        expected = await _tables(connection)
        names = ", ".join(f'{SCHEMA}."{name}"' for name in expected)
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
            if await _tables(connection) != expected:
                raise BackupError("The tables were being migrated: make the backup again.")
            state = await read_state(connection)
            tables = {}
            for name, columns in expected.items():
                with table_file(name) as to:
                    status = await connection.copy_from_table(name, schema_name=SCHEMA, columns=columns, output=to)
                tables[name] = TableData(columns, _count(status))
            # After the rows: a sequence is never behind them.
            sequences = {row["name"]: row["last_value"] for row in await connection.fetch(_SEQUENCES, SCHEMA)}
    applied = [(*key, row["checksum"]) for key, row in state.applied_migrations.items()]
    return Content(applied, sequences, tables)


async def copy_in(dsn: str, content: Content, table_file: TableFile) -> None:
    """Creates the tables of the content's migrations in an empty database, and fills them."""
    await migrate(dsn, release_of(content))
    async with _connected(dsn) as connection, connection.transaction():
        tables = await _tables(connection)
        sequences = {row["name"] for row in await connection.fetch(_SEQUENCES, SCHEMA)}
        given = {name: set(table.columns) for name, table in content.tables.items()}
        if given != {name: set(columns) for name, columns in tables.items()} or set(content.sequences) != sequences:
            raise BackupError("The backup holds other tables than its migrations make.")
        names = ", ".join(f'{SCHEMA}."{name}"' for name in tables)
        await connection.execute(f"TRUNCATE {names}")  # a migration may have inserted rows
        for name in await _parents_first(connection, tables):
            await _fill(connection, name, content.tables[name], table_file)
        # Receivers of webhooks ignore an event whose id they have seen, and some were sent after the backup was made.
        # Milliseconds since 1970 are beyond all of them: nobody has a thousand events a second.
        beyond = max(content.sequences[_EVENT_IDS] or 0, time.time_ns() // 1_000_000)
        for name, last_value in {**content.sequences, _EVENT_IDS: beyond}.items():
            if last_value is not None:
                await connection.execute("SELECT setval($1::regclass, $2)", f'{SCHEMA}."{name}"', last_value)


def release_of(content: Content) -> Release:
    """The migrations that the content was made with, and no functions; those must not run while tables are filled."""
    ours = {migration.key: migration for migration in this_release().migrations}
    given = {(feature, number): checksum for feature, number, checksum in content.migrations}
    if not given or not given.keys() <= ours.keys():
        raise BackupError("The backup was made by another version of frontdesk: restore it with a newer one.")
    if not all(ours[key].checksum == checksum for key, checksum in given.items()):
        raise BackupError("The backup was made by another version of frontdesk: restore it with that one.")
    return Release(this_release().version, tuple(m for m in this_release().migrations if m.key in given), ())


async def _fill(connection: Connection, name: str, table: TableData, table_file: TableFile) -> None:
    try:
        with table_file(name) as source:
            status = await connection.copy_to_table(name, schema_name=SCHEMA, columns=table.columns, source=source)
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
        raise BackupError(f"The rows of {name} in the backup are not valid (SQLSTATE {error.sqlstate}).") from None
    if _count(status) != table.rows:
        raise BackupError(f"The backup does not hold all rows of {name}.")


async def _tables(connection: Connection) -> dict[str, tuple[str, ...]]:
    rows = await connection.fetch(_TABLES, SCHEMA, _NOT_COPIED)
    return {row["name"]: tuple(row["columns"]) for row in rows}


async def _parents_first(connection: Connection, tables: dict[str, tuple[str, ...]]) -> list[str]:
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(tables, ()))
    for row in await connection.fetch(_REFERENCES, SCHEMA):
        order.add(row["child"], row["parent"])
    return list(order.static_order())


def _count(status: str) -> int:
    return int(status.removeprefix("COPY "))


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[Connection]:
    """A connection as the owner, without a statement timeout."""
    patient = {"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0"}
    connection = await asyncpg.connect(dsn, server_settings=session_settings(role=None) | patient)
    try:
        yield connection
    finally:
        await connection.close()
