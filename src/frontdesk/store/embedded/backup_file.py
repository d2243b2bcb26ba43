"""The file format of backups: a tar archive with an authenticated manifest, encrypted with age.

The archive has the rows of each table as `NAME.gz` and, if asked for, `secret.key`; then `manifest.json`, which has the
digests of the other members, and `manifest.mac`, its HMAC. Unencrypted content exists only in files without a name,
which are gone with their process.
"""

import gzip
import hashlib
import hmac
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyrage
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from frontdesk.store.embedded import age_file
from frontdesk.store.embedded.table_data import BackupError, Content, TableData, copy_out

FORMAT = 1
_SECRET_KEY = "secret.key"  # noqa: S105 (a file name)
_MANIFEST, _MANIFEST_MAC = "manifest.json", "manifest.mac"
_MAX_MANIFEST_BYTES = 1024 * 1024
_MAX_SECRET_KEY_BYTES = 64 * 1024
_BLOCK = 1024 * 1024


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Member(_Record):
    """A member of the archive."""

    sha256: str
    size: NonNegativeInt
    """Of the member's content, before compression."""


class TableRecord(_Record):
    columns: list[str]
    rows: NonNegativeInt
    data: Member


class Manifest(_Record):
    format: int
    version: str
    """Of frontdesk."""
    created_at: str
    migrations: list[tuple[str, int, str]]
    """As in `Content`."""
    sequences: dict[str, Annotated[int, Field(ge=1, lt=2**63)] | None]
    tables: dict[str, TableRecord]
    secret_key: Member | None

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    @property
    def size(self) -> int:
        return sum(table.data.size for table in self.tables.values())

    @property
    def content(self) -> Content:
        tables = {name: TableData(tuple(table.columns), table.rows) for name, table in self.tables.items()}
        return Content(self.migrations, self.sequences, tables)


@dataclass(frozen=True, slots=True)
class BackupKeys:
    """What is derived from one secret key."""

    identity: pyrage.x25519.Identity
    mac: bytes


async def write_backup(
    file: Path,
    dsn: str,
    *,
    keys: BackupKeys,
    recipients: Sequence[pyrage.x25519.Recipient],
    secret_key: bytes | None,
    work: Path,
    version: str,
    created_at: str,
) -> Manifest:
    """Writes a backup that appears complete or not at all; unencrypted content is on the disk of `work` alone."""
    with tempfile.TemporaryFile(dir=work) as plain:
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
            manifest = await _archive_tables(archive, dsn, work, secret_key, version, created_at)
            text = manifest.model_dump_json(indent=1).encode()
            _add(archive, _MANIFEST, text)
            _add(archive, _MANIFEST_MAC, _mac(keys.mac, text))
        age_file.encrypt(plain, file, recipients or [keys.identity.to_public()])
    return manifest


class Backup:
    """A decrypted backup. `is_authentic`: its manifest was authenticated with one of the given keys."""

    def __init__(self, archive: tarfile.TarFile, keys: Sequence[BackupKeys]) -> None:
        self._archive = archive
        self._members: dict[str, tarfile.TarInfo] = {}
        for member in archive:
            if member.type != tarfile.REGTYPE or member.sparse is not None or member.name in self._members:
                raise _damaged()
            self._members[member.name] = member
        text = self._read(_MANIFEST, _MAX_MANIFEST_BYTES)
        stored_mac = self._read(_MANIFEST_MAC, 64)
        self.is_authentic = any(hmac.compare_digest(_mac(key.mac, text), stored_mac) for key in keys)
        try:
            self.manifest = Manifest.model_validate_json(text)
        except ValidationError:
            raise _damaged() from None
        if self.manifest.format != FORMAT:
            raise BackupError("The backup was made by a newer version of frontdesk: upgrade this one first.")

    def check(self) -> None:
        """Reads everything and compares it with the manifest."""
        tables = self.manifest.tables
        expected = {_MANIFEST, _MANIFEST_MAC, *(_table_member(name) for name in tables)}
        if self.manifest.secret_key is not None:
            expected.add(_SECRET_KEY)
            self.secret_key()
        if set(self._members) != expected:
            raise _damaged()
        for name, table in tables.items():
            with self._open(_table_member(name)) as stored:
                if hashlib.file_digest(stored, "sha256").hexdigest() != table.data.sha256:
                    raise _damaged()
            self._check_rows(name, table)

    def open_table(self, name: str) -> gzip.GzipFile:
        return gzip.GzipFile(fileobj=self._open(_table_member(name)))

    def secret_key(self) -> bytes | None:
        if self.manifest.secret_key is None:
            return None
        text = self._read(_SECRET_KEY, _MAX_SECRET_KEY_BYTES)
        if hashlib.sha256(text).hexdigest() != self.manifest.secret_key.sha256:
            raise _damaged()
        return text

    def _check_rows(self, name: str, table: TableRecord) -> None:
        size = rows = 0
        with self.open_table(name) as source:
            while block := source.read(_BLOCK):
                size += len(block)
                rows += block.count(b"\n")
                if size > table.data.size:  # before a few bytes expand without end
                    break
        if (size, rows) != (table.data.size, table.rows):
            raise _damaged()

    def _read(self, name: str, limit: int) -> bytes:
        with self._open(name) as source:
            text = source.read(limit + 1)
        if len(text) > limit:
            raise _damaged()
        return text

    def _open(self, name: str) -> tarfile.ExFileObject:
        if name not in self._members:
            raise _damaged()
        found = self._archive.extractfile(self._members[name])
        assert isinstance(found, tarfile.ExFileObject)
        return found


@contextmanager
def open_backup(
    encrypted: io.BufferedReader,
    work: Path,
    keys: Sequence[BackupKeys],
    identities: Sequence[pyrage.x25519.Identity],
) -> Iterator[Backup]:
    """Decrypts a backup and reads its manifest. `keys` open and authenticate it; `identities` only open it."""
    if shutil.disk_usage(work).free < os.fstat(encrypted.fileno()).st_size:
        raise BackupError(f"There is not enough free disk space in {work} to open the backup.")
    with tempfile.TemporaryFile(dir=work) as plain:
        age_file.decrypt(encrypted, plain, [*(key.identity for key in keys), *identities])
        try:
            with tarfile.open(fileobj=plain, mode="r:") as archive:
                yield Backup(archive, keys)
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error):
            raise _damaged() from None


async def _archive_tables(
    archive: tarfile.TarFile, dsn: str, work: Path, secret_key: bytes | None, version: str, created_at: str
) -> Manifest:
    members: dict[str, Member] = {}

    @contextmanager
    def table_file(name: str) -> Iterator[gzip.GzipFile]:
        with tempfile.TemporaryFile(dir=work) as stored:
            with gzip.GzipFile(fileobj=stored, mode="wb", compresslevel=6, mtime=0) as to:
                yield to
                size = to.tell()
            stored.seek(0)
            members[name] = Member(sha256=hashlib.file_digest(stored, "sha256").hexdigest(), size=size)
            header = tarfile.TarInfo(_table_member(name))
            header.size, header.mode = stored.tell(), 0o600
            stored.seek(0)
            archive.addfile(header, stored)

    content = await copy_out(dsn, table_file)
    if secret_key is not None:
        _add(archive, _SECRET_KEY, secret_key)
        members[_SECRET_KEY] = Member(sha256=hashlib.sha256(secret_key).hexdigest(), size=len(secret_key))
    return Manifest(
        format=FORMAT,
        version=version,
        created_at=created_at,
        migrations=content.migrations,
        sequences=content.sequences,
        tables={
            name: TableRecord(columns=list(table.columns), rows=table.rows, data=members[name])
            for name, table in content.tables.items()
        },
        secret_key=members.get(_SECRET_KEY),
    )


def _damaged() -> BackupError:
    return BackupError("The file is damaged, or it is not a backup of frontdesk.")


def _table_member(name: str) -> str:
    return f"{name}.gz"


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    header = tarfile.TarInfo(name)
    header.size, header.mode = len(content), 0o600
    archive.addfile(header, io.BytesIO(content))


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()
