"""Brings a database to this release's schema: each migration once, each function file whenever its text changes.

The core and each feature number migrations of their own. They run in two phases: before an upgrade those that the
previous release works with, and after it the others.
"""

import asyncio
import hashlib
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import asyncpg

from frontdesk import __version__
from frontdesk.feature import features
from frontdesk.store import distribution
from frontdesk.store.connection import Connection, Reader
from frontdesk.store.database import SCHEMA, SERVICE_ROLE, Database, DatabaseUnavailable, session_settings, within
from frontdesk.store.distribution import Distribution, lost_workers, read_distribution
from frontdesk.store.hosts import Hosts
from frontdesk.store.statistics import ANALYZE_GROWN_TABLES

_FOLDER = Path(__file__).parent
_APPLIED = "SELECT feature, number, checksum, applied_at, phase FROM migration"
_MISSING_RIGHTS = """
SELECT current_user AS login,
       coalesce(pg_has_role(to_regrole($1), 'MEMBER'), false) AS is_service,
       to_regrole($1) IS NOT NULL OR may_create.role AS role,
       EXISTS (SELECT FROM pg_extension WHERE extname = 'btree_gist') OR may_create.here AS extension,
       coalesce(has_schema_privilege(to_regnamespace($2), 'CREATE'), may_create.here) AS schema
FROM (SELECT rolsuper OR rolcreaterole AS role, has_database_privilege(current_database(), 'CREATE') AS here
      FROM pg_roles WHERE rolname = current_user) may_create
"""
_READINESS_SECONDS = 3.0
_AFTER = re.compile(r"^-- phase: after (\d+\.\d+\.\d+)$", re.MULTILINE)
_ATTEMPTS = 15
_LOCK_SECONDS = 2.0  # that a migration waits for a lock, and with it every call that comes after it
_PAUSE_SECONDS = 4.0  # in which those calls are answered
_LOCK = 0x66726F6E74  # any fixed number: "front"


Phase = Literal["before", "after"]
MigrationKey = tuple[str, int]  # the feature, or "" for the core, and the number


class MigrationError(Exception):
    """One sentence that tells the operator what stands in the way."""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str
    feature: str = ""  # of the core

    @property
    def key(self) -> MigrationKey:
        return self.feature, self.number

    @property
    def label(self) -> str:
        """Its file, as an operator reads it."""
        return f"{self.feature}/{self.number:03}_{self.name}".lstrip("/")

    @property
    def checksum(self) -> str:
        return _checksum(self.sql)

    @property
    def after(self) -> str | None:
        """The release whose upgrade must be complete first, because older ones do not work with this migration."""
        found = _AFTER.search(self.sql)
        return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class FunctionFile:
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return _checksum(self.sql)


@dataclass(frozen=True, slots=True)
class Release:
    """A version of frontdesk, and the schema that it works with."""

    version: str
    migrations: tuple[Migration, ...]
    functions: tuple[FunctionFile, ...]
    of_distributed: tuple[FunctionFile, ...] = ()  # in place of those with the same names

    def functions_for(self, distribution: Distribution | None) -> list[FunctionFile]:
        instead = {f.name: f for f in self.of_distributed} if distribution else {}
        return [instead.get(f.name, f) for f in self.functions]


@dataclass(frozen=True, slots=True)
class SchemaState:
    """What a database has of a release's schema."""

    release: Release
    applied_migrations: dict[MigrationKey, asyncpg.Record]
    applied_functions: dict[str, asyncpg.Record]
    distribution: Distribution | None = None

    @property
    def functions(self) -> list[FunctionFile]:
        return self.release.functions_for(self.distribution)

    @property
    def pending_migrations(self) -> list[Migration]:
        """The migrations that this release needs and that have not run yet."""
        deferred = self.deferred_migrations
        return [m for m in self.release.migrations if m.key not in self.applied_migrations and m not in deferred]

    @property
    def deferred_migrations(self) -> list[Migration]:
        """The migrations that run after the upgrade to this release. A new database gets them at once."""
        return [
            m
            for m in self.release.migrations
            if m.key not in self.applied_migrations
            and self.applied_migrations
            and m.after is not None
            and _order(m.after) >= _order(self.release.version)
        ]

    @property
    def pending_functions(self) -> list[FunctionFile]:
        """Functions of a newer release work with this one and are left alone; that release's nodes need them."""
        newer = any(_order(row["version"]) > _order(self.release.version) for row in self.applied_functions.values())
        if newer or self._unknown_migrations:
            return []
        applied = {name: row["checksum"] for name, row in self.applied_functions.items()}
        return [f for f in self.functions if applied.get(f.name) != f.checksum]

    @property
    def pending(self) -> int:
        return len(self.pending_migrations) + len(self.pending_functions)

    @property
    def missing(self) -> int:
        """How many pending migrations and function files this release does not work without.

        A file that another build of this version has applied will do: otherwise two builds would make each other
        unready.
        """
        applied = {name: row["version"] for name, row in self.applied_functions.items()}
        outdated = [f for f in self.pending_functions if applied.get(f.name) != self.release.version]
        return len(self.pending_migrations) + len(outdated)

    @property
    def _unknown_migrations(self) -> list[asyncpg.Record]:
        last = {m.feature: m.number for m in self.release.migrations}
        return [row for (feature, number), row in self.applied_migrations.items() if number > last.get(feature, 0)]

    @property
    def is_too_new(self) -> bool:
        """Whether the upgrade to a newer release is complete. Until then the previous release works, too."""
        return any(row["phase"] == "after" for row in self._unknown_migrations)

    @property
    def mismatch(self) -> str | None:
        """Why this release cannot use the database; None when it can."""
        if self.is_too_new:
            return "This database was made by a newer version of frontdesk; upgrade frontdesk."
        for migration in self.release.migrations:
            row = self.applied_migrations.get(migration.key)
            if row is not None and row["checksum"] != migration.checksum:
                return (
                    f"Migration {migration.label} differs from the one this database was made "
                    "with; run the version of frontdesk that belongs to it."
                )
        if self.distribution is not None and self.distribution.unfinished:
            return "Distributing this database was interrupted: run frontdesk db distribute."
        return None

    def due_migrations(self, phase: Phase | None) -> list[Migration]:
        """What `migrate` applies, in order."""
        before, after = self.pending_migrations, self.deferred_migrations
        due = {"before": before, "after": after, None: [*before, *after]}[phase]
        return [migration for migration in self.release.migrations if migration in due]

    def migration_applied_at(self, migration: Migration) -> datetime | None:
        row = self.applied_migrations.get(migration.key)
        return None if row is None else row["applied_at"]

    def function_applied_at(self, function: FunctionFile) -> datetime | None:
        """When the file was last applied; None if its text has to be applied."""
        row = self.applied_functions.get(function.name)
        return None if row is None or function in self.pending_functions else row["applied_at"]


@cache
def this_release() -> Release:
    migrations: list[Migration] = []
    functions: list[FunctionFile] = []
    of_distributed: list[FunctionFile] = []
    for feature, folder in (("", _FOLDER), *((feature.name, feature.folder) for feature in features())):
        for path in sorted((folder / "migrations").glob("*.sql")):
            number, _, name = path.stem.partition("_")
            migrations.append(Migration(int(number), name, path.read_text(), feature))
        functions += _function_files(feature, folder / "functions")
        of_distributed += _function_files(feature, folder / "functions/distributed")
    return Release(__version__, tuple(migrations), tuple(functions), tuple(of_distributed))


def _function_files(feature: str, folder: Path) -> list[FunctionFile]:
    return [
        FunctionFile(f"{feature}/{path.stem}".lstrip("/"), path.read_text()) for path in sorted(folder.glob("*.sql"))
    ]


async def migrate(dsn: str, release: Release | None = None, phase: Phase | None = None) -> SchemaState:
    """Applies what is pending and returns the state before. Two processes may call it at once.

    Without a phase it applies both, which only a database without nodes of an older release can take.
    """
    release = release or this_release()
    connection = await _connect(dsn)
    try:
        if connection.get_server_version() < (15,):
            raise MigrationError("frontdesk needs PostgreSQL 15 or newer.")
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        state = await read_state(connection, release)
        if state.mismatch is not None:
            raise MigrationError(state.mismatch)
        if not state.applied_migrations:
            await _check_rights(connection)
            await _create_schema(connection)
        if phase == "after" and state.pending:
            raise MigrationError("The upgrade has not begun: run frontdesk db migrate --phase before first.")
        await _apply(connection, state, phase)
        return state
    finally:
        await connection.close()


async def distribute(dsn: str, progress: Callable[[int, int], None]) -> SchemaState:
    """Distributes the database over the workers of its Citus cluster, or continues that. Returns the state after it."""
    connection = await _connect(dsn)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        state = await read_state(connection)
        if state.pending_migrations or state.deferred_migrations:
            raise MigrationError("Run frontdesk db migrate first.")
        if (obstacle := await distribution.obstacle(connection)) is not None:
            raise MigrationError(obstacle)
        await distribution.prepare(connection)
        await distribution.execute(connection, progress)
        await _apply(connection, await read_state(connection), None)
        return await read_state(connection)
    finally:
        await connection.close()


async def _apply(connection: Connection, state: SchemaState, phase: Phase | None) -> None:
    is_distributed = state.distribution is not None
    if is_distributed:
        await distribution.set_for_changes(connection)
    for migration in state.due_migrations(phase):
        await _in_transaction(connection, partial(_apply_migration, migration, is_distributed))
    functions = state.pending_functions
    await _in_transaction(connection, partial(_apply_functions, functions, state.release.version, is_distributed))
    if is_distributed:
        await distribution.set_plan_mode(connection)
    if state.functions:  # migrations work without them
        await connection.execute(ANALYZE_GROWN_TABLES)


async def _in_transaction(connection: Connection, apply: Callable[[Connection], Awaitable[None]]) -> None:
    """Tries again after a deadlock, because nodes that serve meanwhile lock the same tables in another order, and while
    others hold a lock for long: calls would wait behind a migration that waits."""
    for _ in range(_ATTEMPTS):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {int(_LOCK_SECONDS * 1000)}")
                await apply(connection)
            return
        except asyncpg.DeadlockDetectedError:
            await asyncio.sleep(random.uniform(0, 0.5))  # noqa: S311 - to miss the same statements
        except asyncpg.LockNotAvailableError:
            await asyncio.sleep(_PAUSE_SECONDS)
    raise MigrationError("Other sessions, such as a pg_dump, hold locks on the tables: try again when they have ended.")


async def _apply_migration(migration: Migration, is_distributed: bool, connection: Connection) -> None:
    if is_distributed:
        await distribution.execute_text(connection, migration.sql)
        await distribution.distribute_new_tables(connection)
    else:
        await connection.execute(migration.sql)
    await connection.execute(
        "INSERT INTO migration (feature, number, name, checksum, applied_at, phase) VALUES ($1, $2, $3, $4, now(), $5)",
        migration.feature,
        migration.number,
        migration.name,
        migration.checksum,
        "before" if migration.after is None else "after",
    )


async def _apply_functions(
    functions: list[FunctionFile], version: str, is_distributed: bool, connection: Connection
) -> None:
    for function in functions:
        if is_distributed:
            await distribution.execute_text(connection, function.sql)
        else:
            await connection.execute(function.sql)
        await connection.execute(
            "INSERT INTO function_file (name, checksum, version, applied_at) VALUES ($1, $2, $3, now()) "
            "ON CONFLICT (name) DO UPDATE SET checksum = $2, version = $3, applied_at = now()",
            function.name,
            function.checksum,
            version,
        )
    if functions and is_distributed:
        await distribution.distribute_functions(connection)


async def status(dsn: str) -> SchemaState:
    connection = await _connect(dsn)
    try:
        return await read_state(connection)
    finally:
        await connection.close()


async def read_state(connection: Reader, release: Release | None = None) -> SchemaState:
    migrations, functions = [], []
    if await connection.fetchval("SELECT to_regclass('migration') IS NOT NULL"):
        migrations = await connection.fetch(_APPLIED)
    if await connection.fetchval("SELECT to_regclass('function_file') IS NOT NULL"):
        functions = await connection.fetch("SELECT name, checksum, version, applied_at FROM function_file")
    return SchemaState(
        release or this_release(),
        {(row["feature"], row["number"]): row for row in migrations},
        {row["name"]: row for row in functions},
        await read_distribution(connection),
    )


class Readiness(NamedTuple):
    unready: str | None = None  # why the service cannot work on the database now, in a few words
    lost_workers: Sequence[str] = ()  # of a cluster


async def readiness(database: Database) -> Readiness:
    try:
        state = await within(_READINESS_SECONDS, read_state(database))
    except DatabaseUnavailable:
        return Readiness("database unavailable")
    if state.is_too_new:
        return Readiness("schema too new")
    if state.distribution is not None and state.distribution.unfinished:
        return Readiness("distribution interrupted")
    if state.missing:
        return Readiness("migrations pending")
    return Readiness(lost_workers=await lost_workers(database, state.distribution))


async def _connect(dsn: str) -> "asyncpg.Connection[asyncpg.Record]":
    settings = session_settings(role=None) | {"statement_timeout": "0", "lock_timeout": "0"}
    return await Hosts(dsn).connect(server_settings=settings, timeout=10)


async def _check_rights(connection: Connection) -> None:
    """Says what an administrator has to run before a login with few rights can create the tables."""
    row = await connection.fetchrow(_MISSING_RIGHTS, SERVICE_ROLE, SCHEMA)
    assert row is not None
    commands = {
        "role": f"CREATE ROLE {SERVICE_ROLE} NOLOGIN;",
        "extension": "CREATE EXTENSION btree_gist;",
        "schema": f"CREATE SCHEMA {SCHEMA} AUTHORIZATION {row['login']};",
    }
    missing = [command for name, command in commands.items() if not row[name]]
    if missing and row["is_service"]:
        raise MigrationError(
            "The login of the service may not create the tables: set FRONTDESK_MIGRATION_DATABASE_URL to one that may."
        )
    if missing:
        raise MigrationError(f"This login may not prepare the database. Let an administrator run: {' '.join(missing)}")


async def _create_schema(connection: Connection) -> None:
    async with connection.transaction():
        if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", SCHEMA):
            await connection.execute(f"CREATE SCHEMA {SCHEMA}")  # IF NOT EXISTS would need the right to create it
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS migration (feature text NOT NULL, number integer NOT NULL, name text NOT NULL, "
            "checksum text NOT NULL, applied_at timestamptz NOT NULL, phase text NOT NULL, "
            "PRIMARY KEY (feature, number))"
        )


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
