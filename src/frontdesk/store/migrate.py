"""Plain numbered SQL files, applied once each, in order, under an advisory lock that other processes wait for."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg

from frontdesk.store.database import SCHEMA, Database, DatabaseUnavailable, session_settings

_FOLDER = Path(__file__).parent / "migrations"
_LOCK = 0x66726F6E74  # any fixed number: "front"


class MigrationError(Exception):
    """One sentence that tells the operator what stands in the way."""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationState:
    number: int
    name: str
    applied_at: datetime | None


@cache
def known_migrations() -> tuple[Migration, ...]:
    found = []
    for path in sorted(_FOLDER.glob("*.sql")):
        number, _, name = path.stem.partition("_")
        found.append(Migration(int(number), name, path.read_text()))
    return tuple(found)


async def migrate(dsn: str) -> list[Migration]:
    """Brings the database up to this version; returns what was applied. Two processes may call it at once."""
    connection = await _connect(dsn)
    try:
        if connection.get_server_version() < (15,):
            raise MigrationError("frontdesk needs PostgreSQL 15 or newer.")
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        applied = await _applied(connection)
        pending = []
        for migration in known_migrations():
            if migration.number not in applied:
                pending.append(migration)
            elif applied[migration.number] != migration.checksum:
                raise MigrationError(
                    f"Migration {migration.number:03} ({migration.name}) differs from the one this database was made "
                    "with; run the version of frontdesk that belongs to it."
                )
        newest = max((m.number for m in known_migrations()), default=0)
        if any(number > newest for number in applied):
            raise MigrationError("This database was made by a newer version of frontdesk; upgrade frontdesk.")
        for migration in pending:
            async with connection.transaction():
                await connection.execute(migration.sql)
                await connection.execute(
                    "INSERT INTO migration (number, name, checksum, applied_at) VALUES ($1, $2, $3, now())",
                    migration.number,
                    migration.name,
                    migration.checksum,
                )
        return pending
    finally:
        await connection.close()


async def status(dsn: str) -> list[MigrationState]:
    connection = await _connect(dsn)
    try:
        rows = []
        if await connection.fetchval("SELECT to_regclass('migration') IS NOT NULL"):
            rows = await connection.fetch("SELECT number, applied_at FROM migration")
        applied = {row["number"]: row["applied_at"] for row in rows}
        return [MigrationState(m.number, m.name, applied.get(m.number)) for m in known_migrations()]
    finally:
        await connection.close()


async def unreadiness(database: Database) -> str | None:
    """Why the service cannot work on this database now, in a few words; None when it can."""
    try:
        applied = await database.fetchval("SELECT max(number) FROM migration")
    except DatabaseUnavailable:
        return "database unavailable"
    return None if applied == known_migrations()[-1].number else "migrations pending"


async def _connect(dsn: str) -> Any:
    settings = session_settings(role=None) | {"statement_timeout": "0", "lock_timeout": "0"}
    return await asyncpg.connect(dsn, server_settings=settings, timeout=10)


async def _applied(connection: Any) -> dict[int, str]:
    """What was applied before, by number. Creates the schema and its log on a new database."""
    if not await connection.fetchval("SELECT to_regclass('migration') IS NOT NULL"):
        async with connection.transaction():
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            await connection.execute(
                "CREATE TABLE migration (number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, "
                "applied_at timestamptz NOT NULL)"
            )
    rows = await connection.fetch("SELECT number, checksum FROM migration")
    return {row["number"]: row["checksum"] for row in rows}
