"""Makes and restores backups of the embedded database while the service runs.

A backup is a tar archive: `manifest.json` (contents and checksums), `manifest.sha256`, `database.dump` (format of
pg_dump -Fc), and `secret.key` if asked for. The manifest has the row count and a checksum of every table in the dump's
snapshot, and a restored database is compared with it. Messages of pg_dump and pg_restore are never repeated: they may
quote patients' data.
"""

import asyncio
import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import asyncpg

from frontdesk.privileges import child_options
from frontdesk.store.database import SCHEMA, SERVICE_ROLE, session_settings
from frontdesk.store.embedded.account import wheel_binaries
from frontdesk.store.embedded.server import ENVIRONMENT

FORMAT = 1
DUMP, SECRET_KEY = "database.dump", "secret.key"
_MANIFEST, _MANIFEST_SUM = "manifest.json", "manifest.sha256"
_LONGEST_MANIFEST = 1024 * 1024
_ROLE = f"CREATE ROLE {SERVICE_ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"
_NAMES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname
"""
# A sum does not depend on the order of rows, which a restored table need not keep.
_ROWS = """
SELECT count(*) AS rows, coalesce(sum(('x' || left(md5(t::text), 16))::bit(64)::bigint), 0)::text AS sum FROM {} t
"""


class BackupError(Exception):
    """Why a backup cannot be made or used, in one sentence."""


@dataclass(frozen=True, slots=True)
class Table:
    rows: int
    sum: str


@dataclass(frozen=True, slots=True)
class Manifest:
    format: int
    version: str
    """Of frontdesk."""
    created_at: str
    migration: int
    tables: dict[str, Table]
    members: dict[str, str]
    """SHA-256 of the other members of the archive, by name."""

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


@dataclass(frozen=True, slots=True)
class Content:
    """The tables of a database in one snapshot."""

    migration: int
    tables: dict[str, Table]


async def dump(dsn: str, folder: Path) -> Content:
    """Writes the dump into the folder and returns the content of its snapshot."""
    async with _connected(dsn) as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
        to = folder / DUMP
        await _run("pg_dump", "--format=custom", f"--snapshot={snapshot}", f"--file={to}", f"--dbname={dsn}")
        migration = await connection.fetchval("SELECT max(number) FROM migration")
        return Content(migration, await _tables(connection))


def pack(folder: Path, file: Path, content: Content, version: str, created_at: str) -> Manifest:
    """Packs the dump, and the secret key if it is in the folder, into one file that appears complete or not at all."""
    members = {path.name: _digest(path) for path in sorted(folder.iterdir())}
    manifest = Manifest(FORMAT, version, created_at, content.migration, content.tables, members)
    (folder / _MANIFEST).write_text(json.dumps(asdict(manifest), indent=1))
    (folder / _MANIFEST_SUM).write_text(_digest(folder / _MANIFEST))
    made = folder / "archive"
    with _private(made) as to, tarfile.open(fileobj=to, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in (_MANIFEST, _MANIFEST_SUM, *members):
            archive.add(folder / member, member, filter=_anonymous)
    with made.open("rb") as written:
        os.fsync(written.fileno())
    made.rename(file)
    return manifest


def unpack(file: Path, folder: Path) -> Manifest:
    """Unpacks a backup into the folder and verifies the checksums of the manifest."""
    try:
        with tarfile.open(file, "r:") as archive:
            text = _member(archive, _MANIFEST).read(_LONGEST_MANIFEST)
            if _member(archive, _MANIFEST_SUM).read(64).decode() != hashlib.sha256(text).hexdigest():
                raise BackupError(f"{file} is damaged.")
            manifest = _read_manifest(text, file)
            for name in manifest.members:
                with _private(folder / name) as to:
                    shutil.copyfileobj(_member(archive, name), to)
    except (tarfile.TarError, EOFError, KeyError, UnicodeDecodeError):
        raise BackupError(f"{file} is not a backup, or it is damaged.") from None
    if any(_digest(folder / name) != digest for name, digest in manifest.members.items()):
        raise BackupError(f"{file} is damaged.")
    return manifest


async def load(dsn: str, dump: Path, manifest: Manifest) -> None:
    """Restores the dump into an empty database and compares every table with the manifest."""
    async with _connected(dsn) as connection:
        await connection.execute(_ROLE)
        await _run("pg_restore", "--exit-on-error", "--single-transaction", f"--dbname={dsn}", str(dump))
        found = await _tables(connection)
    if found != manifest.tables:
        different = sorted(name for name in found | manifest.tables if found.get(name) != manifest.tables.get(name))
        raise BackupError(f"The restored database differs from the backup in: {', '.join(different)}.")


async def _tables(connection: Any) -> dict[str, Table]:
    names = [row["relname"] for row in await connection.fetch(_NAMES, SCHEMA)]
    found = {}
    for name in names:
        row = await connection.fetchrow(_ROWS.format(f'{SCHEMA}."{name}"'))
        found[name] = Table(row["rows"], row["sum"])
    return found


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[Any]:
    """A connection as the owner, without a statement timeout."""
    patient = {"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0"}
    connection = await asyncpg.connect(dsn, server_settings=session_settings(role=None) | patient)
    try:
        yield connection
    finally:
        await connection.close()


async def _run(program: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        wheel_binaries() / program,
        "--no-password",
        *arguments,
        env=ENVIRONMENT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        **child_options(),
    )
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if status != 0:
        raise BackupError(f"{program} did not succeed (status {status}); is there enough free disk space?")


def _read_manifest(text: bytes, file: Path) -> Manifest:
    document = json.loads(text)
    if document["format"] != FORMAT:
        raise BackupError(f"{file} was made by a newer version of frontdesk: upgrade this one first.")
    document["tables"] = {name: Table(**table) for name, table in document["tables"].items()}
    manifest = Manifest(**document)
    if not {DUMP} <= set(manifest.members) <= {DUMP, SECRET_KEY}:
        raise BackupError(f"{file} is not a backup of frontdesk.")
    return manifest


def _member(archive: tarfile.TarFile, name: str) -> Any:
    found = archive.extractfile(name)
    if found is None:
        raise KeyError(name)
    return found


def _private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Removes the names of the account that made the backup."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
