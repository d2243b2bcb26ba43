"""Backups of the embedded database: one file, consistent while the service runs, checked before anything rests on it.

The file is a tar archive: `manifest.json` (what is in it, and the checksum of everything), `manifest.sha256`,
`database.dump` (PostgreSQL's own custom format), and `secret.key` where the operator asked for it. The manifest counts
and sums up the rows of every table in the very snapshot that the dump was made from, so a restored database can be held
to it. Refuses to repeat what pg_dump or pg_restore say: that may quote patients' data.
"""

import asyncio
import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg

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
    """One sentence about a backup that cannot be made or used."""


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
    """What a database held at one moment."""

    migration: int
    tables: dict[str, Table]


async def dump(dsn: str, folder: Path) -> Content:
    """Writes the dump into the folder; what the database held at the moment it shows."""
    async with _connected(dsn) as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
        to = folder / DUMP
        await _run("pg_dump", "--format=custom", f"--snapshot={snapshot}", f"--file={to}", f"--dbname={dsn}")
        migration = await connection.fetchval("SELECT max(number) FROM migration")
        return Content(migration, await _tables(connection))


def pack(folder: Path, file: Path, content: Content, version: str, created_at: str) -> Manifest:
    """The dump in the folder, and the secret key where it lies beside it, as one file that is there entirely or not."""
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
    """The members of a backup in this folder, once each is what the manifest says."""
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
        raise BackupError(f"{file} is no backup, or it is damaged.") from None
    if any(_digest(folder / name) != digest for name, digest in manifest.members.items()):
        raise BackupError(f"{file} is damaged.")
    return manifest


async def load(dsn: str, dump: Path, manifest: Manifest) -> None:
    """Fills a new, empty database from the dump, and holds every table to the manifest."""
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
    """A connection of the owner's that may take its time."""
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
        raise BackupError(f"{file} is no backup of frontdesk.")
    return manifest


def _member(archive: tarfile.TarFile, name: str) -> Any:
    found = archive.extractfile(name)
    if found is None:
        raise KeyError(name)
    return found


@contextmanager
def _private(path: Path) -> Iterator[Any]:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whose account made the backup is nobody's business."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
