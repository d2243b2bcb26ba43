"""Backups as an attacker alters them: nothing but rows for our own tables ever comes out of one."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pyrage
import pytest

from frontdesk.access.keys.backups import read_backup_keys
from frontdesk.settings import Settings
from frontdesk.store.embedded import age_file
from frontdesk.store.embedded.backup_file import Backup, BackupKeys, Manifest, open_backup, write_backup
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.store.embedded.table_data import BackupError, Content, copy_in
from frontdesk.store.migrate import Release, migrate, this_release
from tests.support.shared_database import as_owner, new_database

SECRET = "the secret key of the service that made the backup"
Members = dict[str, bytes]


@dataclass(frozen=True)
class Made:
    file: Path
    keys: list[BackupKeys]
    dsn: str
    members: Members


def keys_of(secret: str) -> list[BackupKeys]:
    return read_backup_keys(Settings(secret_key=secret))


async def write(file: Path, dsn: str, keys: list[BackupKeys], work: Path) -> None:
    await write_backup(
        file,
        as_owner(dsn),
        keys=keys[0],
        recipients=[],
        secret_key=None,
        work=work,
        version="1.2.3",
        created_at="2026-01-01T00:00:00Z",
    )


@pytest.fixture(scope="module")
async def made(
    cluster: EmbeddedPostgres, world_template: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Made]:
    folder = tmp_path_factory.mktemp("made")
    keys = keys_of(SECRET)
    async with new_database(cluster, world_template[0]) as dsn:
        await write(folder / "backup", dsn, keys, folder)
        yield Made(folder / "backup", keys, dsn, members_of(folder / "backup", keys))


@pytest.fixture
async def empty_database(cluster: EmbeddedPostgres) -> AsyncIterator[str]:
    async with new_database(cluster, "template0") as dsn:
        yield as_owner(dsn)


def members_of(file: Path, keys: list[BackupKeys]) -> Members:
    plain = pyrage.decrypt(file.read_bytes(), [keys[0].identity])
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        return {name: (archive.extractfile(name) or io.BytesIO()).read() for name in archive.getnames()}


def tar_of(members: Members, *more: tarfile.TarInfo) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
        for header in more:
            archive.addfile(header, io.BytesIO(bytes(header.size)))
    return written.getvalue()


def encrypted(made: Made, tar: bytes, folder: Path) -> Path:
    """What somebody writes who knows the key that backups are encrypted to, and not the secret key."""
    file = folder / "forged"
    file.write_bytes(pyrage.encrypt(tar, [made.keys[0].identity.to_public()]))
    return file


@contextlib.contextmanager
def opened(file: Path, keys: list[BackupKeys]) -> Iterator[Backup]:
    with file.open("rb") as encrypted, open_backup(encrypted, file.parent, keys, []) as backup:
        yield backup


def check(file: Path, keys: list[BackupKeys]) -> bool:
    """Whether it is authentic; raises if it is not whole."""
    with opened(file, keys) as backup:
        backup.check()
        return backup.is_authentic


def is_accepted(file: Path, keys: list[BackupKeys]) -> bool:
    with contextlib.suppress(BackupError):
        check(file, keys)
        return True
    return False


async def is_restored(dsn: str, content: Content, table_file: Callable[[str], Any]) -> bool:
    with contextlib.suppress(BackupError):
        await copy_in(dsn, content, table_file)
        return True
    return False


def edited(members: Members, change: Callable[[Any], None]) -> Members:
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return members | {"manifest.json": json.dumps(manifest).encode()}


async def test_a_backup_restores_every_row_and_sequence_into_an_empty_database(made: Made, empty_database: str) -> None:
    assert check(made.file, made.keys)
    with opened(made.file, made.keys) as backup:
        assert list(made.file.parent.iterdir()) == [made.file]  # what is not encrypted has no name
        began = time.time()
        await copy_in(empty_database, backup.manifest.content, backup.open_table)
    restored, original = await rows_of(empty_database), await rows_of(as_owner(made.dsn))
    [event_ids] = restored.pop("outbox_event_id_seq")
    original.pop("outbox_event_id_seq")
    assert restored == original
    # Receivers of webhooks would ignore an event with an id that was given after the backup was made.
    last_event, is_called = event_ids.strip("()").split(",")
    assert (int(last_event) >= int(began * 1000), is_called) == (True, "t")


async def test_a_backup_of_an_older_release_is_restored_with_its_migrations_and_then_migrated(
    cluster: EmbeddedPostgres, empty_database: str, tmp_path: Path
) -> None:
    release = this_release()
    keys = keys_of(SECRET)
    async with new_database(cluster, "template0") as older:
        await migrate(as_owner(older), Release(release.version, release.migrations[:-1], ()))
        await migrate(as_owner(older), Release(release.version, release.migrations[:-1], release.functions[:-1]))
        await write(tmp_path / "backup", older, keys, tmp_path)
    with opened(tmp_path / "backup", keys) as backup:
        backup.check()
        assert len(backup.manifest.migrations) == len(release.migrations) - 1
        await copy_in(empty_database, backup.manifest.content, backup.open_table)
    state = await migrate(empty_database)
    assert len(state.pending_migrations) == 1
    assert len(state.pending_functions) == len(release.functions)


async def rows_of(dsn: str) -> dict[str, list[str]]:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk"})
    try:
        assert not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        names = await connection.fetch(
            "SELECT relname, relkind = 'S' FROM pg_class WHERE relnamespace = 'frontdesk'::regnamespace "
            "AND relkind IN ('r', 'S') AND relname NOT IN ('migration', 'function_file')"
        )
        found = {}
        for name, counts in names:
            content = "(last_value, is_called)" if counts else "t"
            found[name] = sorted(row[0] for row in await connection.fetch(f'SELECT {content}::text FROM "{name}" t'))
        return found
    finally:
        await connection.close()


def test_a_backup_says_nothing_to_those_without_the_key(made: Made, tmp_path: Path) -> None:
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    content = made.file.read_bytes()
    assert content.startswith(b"age-encryption.org/v1\n")
    assert not any(word in content for word in (b"manifest", b"patient", b"Harbor"))
    with pytest.raises(BackupError, match="cannot be decrypted"):
        check(made.file, keys_of("another secret key of enough length"))


def test_an_older_secret_still_opens_and_authenticates(made: Made) -> None:
    assert check(made.file, keys_of(f"a new secret key that came after that one,{SECRET}"))


def test_altered_and_cut_files_are_refused(made: Made, tmp_path: Path) -> None:
    content = made.file.read_bytes()
    file = tmp_path / "altered"
    places = [0, 30, 100, content.index(b"\n--- ") + 8, len(content) // 2, len(content) - 1]
    altered = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in places]
    cut = [content[:at] for at in (0, 10, 200, len(content) // 2, len(content) - 1)]
    for some in (*altered, *cut, content + b"x", b"not a backup", bytes(100_000)):
        file.write_bytes(some)
        with pytest.raises(BackupError, match=r"damaged|cannot be decrypted"):
            check(file, made.keys)


def test_an_unencrypted_backup_is_refused(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "plain"
    file.write_bytes(tar_of(made.members))
    with pytest.raises(BackupError, match="not a backup of frontdesk"):
        check(file, made.keys)


def test_what_was_forged_without_the_secret_key_is_not_authentic(made: Made, tmp_path: Path) -> None:
    others = keys_of("another secret key of enough length")

    def relabel(manifest: Any) -> None:
        manifest["created_at"] = "2030-01-01T00:00:00Z"

    for members in (
        edited(made.members, relabel),
        made.members | {"manifest.mac": b"0" * 64},
        made.members | {"manifest.mac": b""},
    ):
        assert check(encrypted(made, tar_of(members), tmp_path), made.keys) is False
    with opened(encrypted(made, tar_of(made.members), tmp_path), made.keys) as backup:
        assert backup.is_authentic
    file = tmp_path / "by-another"
    file.write_bytes(pyrage.encrypt(tar_of(made.members), [others[0].identity.to_public()]))
    assert check(file, others) is False


def link(name: str, target: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = tarfile.SYMTYPE, target
    return header


def test_archives_with_other_members_than_the_manifest_names_are_refused(made: Made, tmp_path: Path) -> None:
    members = made.members
    swapped = members | {"patient.gz": members["provider.gz"], "provider.gz": members["patient.gz"]}
    rows = gzip.decompress(members["patient.gz"])
    sparse = tarfile.TarInfo("patient.gz")
    sparse.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**44)}
    without_patients = {name: some for name, some in members.items() if name != "patient.gz"}
    hostile = {
        "swapped": tar_of(swapped),
        "rows of the same length": tar_of(members | {"patient.gz": gzip.compress(rows.replace(b"555", b"556", 1))}),
        "sixteen terabytes of nothing": tar_of(without_patients, sparse),
        "missing": tar_of(without_patients),
        "added": tar_of(members | {"database.dump": b"PGDMP"}),
        "outside": tar_of(members | {"../../outside": b"x"}),
        "absolute": tar_of(members | {"/tmp/outside": b"x"}),
        "twice": tar_of(members, tarfile.TarInfo("patient.gz")),
        "symlink": tar_of(members, link("etc", "/etc")),
        "symlinked table": tar_of(without_patients, link("patient.gz", "provider.gz")),
        "no manifest": tar_of({name: some for name, some in members.items() if name != "manifest.json"}),
        "no mac": tar_of({name: some for name, some in members.items() if name != "manifest.mac"}),
        "not a tar": os.urandom(50_000),
        "empty": b"",
        "huge manifest": tar_of(members | {"manifest.json": b" " * 2_000_000}),
        "manifest of another shape": tar_of(members | {"manifest.json": b'{"format": 1}'}),
        "deep manifest": tar_of(members | {"manifest.json": b"[" * 100_000}),
    }
    assert b"555" in rows
    folder = tmp_path / "above" / "folder"  # a name with ../.. would appear in tmp_path
    folder.mkdir(parents=True)
    for name, tar in hostile.items():
        assert not is_accepted(encrypted(made, tar, folder), made.keys), name
    assert sorted(tmp_path.rglob("*")) == [folder.parent, folder, folder / "forged"]


def test_a_few_bytes_that_expand_without_end_are_not_read_to_it(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = gzip.compress(bytes(256 * 1024 * 1024), compresslevel=1)

    def claim(manifest: Any) -> None:
        manifest["tables"]["patient"]["data"]["sha256"] = hashlib.sha256(bomb).hexdigest()

    file = encrypted(made, tar_of(edited(made.members | {"patient.gz": bomb}, claim)), tmp_path)
    read = 0

    def counting(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        nonlocal read
        block = original(self, size)
        read += len(block)
        return block

    original = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", counting)
    with pytest.raises(BackupError, match="damaged"):
        check(file, made.keys)
    assert read < 16 * 1024 * 1024


async def test_only_tables_that_our_migrations_make_are_restored(made: Made, empty_database: str) -> None:
    """An archive that names something else, with a valid manifest: the attacker may have the secret key."""
    program = "COPY (SELECT 1) TO PROGRAM 'touch /tmp/run-by-a-backup'"

    def add(manifest: Any) -> None:
        manifest["tables"]["evil"] = manifest["tables"]["patient"]

    def drop(manifest: Any) -> None:
        del manifest["tables"]["patient"]

    def inject_column(manifest: Any) -> None:
        manifest["tables"]["patient"]["columns"][0] = f'x") FROM STDIN; {program}; --'

    def inject_table(manifest: Any) -> None:
        manifest["tables"][f'patient" FROM STDIN; {program}; --'] = manifest["tables"].pop("patient")

    def inject_sequence(manifest: Any) -> None:
        manifest["sequences"][f"x'; {program}; --"] = 1

    def unknown_migration(manifest: Any) -> None:
        manifest["migrations"].append(["", 999, "x"])

    def other_migration(manifest: Any) -> None:
        manifest["migrations"][0][2] = "x"

    def no_migrations(manifest: Any) -> None:
        manifest["migrations"] = []

    for change in (
        add, drop, inject_column, inject_table, inject_sequence, unknown_migration, other_migration, no_migrations
    ):  # fmt: skip
        manifest = json.loads(made.members["manifest.json"])
        change(manifest)
        content = Manifest.model_validate_json(json.dumps(manifest)).content
        with opened(made.file, made.keys) as backup:
            assert not await is_restored(empty_database, content, backup.open_table), change.__name__
    assert not Path("/tmp/run-by-a-backup").exists()


async def test_rows_are_data_and_must_keep_the_rules_of_their_tables(made: Made, empty_database: str) -> None:
    def rows(name: str, change: Callable[[bytes], bytes]) -> Callable[[str], Any]:
        def table_file(asked: str) -> Any:
            with opened(made.file, made.keys) as backup, backup.open_table(asked) as source:
                content = source.read()
            return contextlib.closing(io.BytesIO(change(content) if asked == name else content))

        return table_file

    def endless(content: bytes) -> bytes:
        return b"\\.\nCOPY (SELECT 1) TO PROGRAM 'touch /tmp/run-by-a-backup';\n" + content

    def orphaned(content: bytes) -> bytes:
        return b"".join(b"99" + line for line in content.splitlines(keepends=True))

    def unreadable(content: bytes) -> bytes:
        return b"\xff\x00" + content

    def fewer(content: bytes) -> bytes:
        return b"".join(content.splitlines(keepends=True)[1:])

    with opened(made.file, made.keys) as backup:
        content = backup.manifest.content
    for change in (endless, orphaned, unreadable, fewer):
        assert not await is_restored(empty_database, content, rows("patient", change)), change.__name__
    assert not Path("/tmp/run-by-a-backup").exists()
    connection = await asyncpg.connect(empty_database)
    assert await connection.fetchval("SELECT count(*) FROM frontdesk.practice") == 0
    await connection.close()


async def test_a_backup_that_was_not_written_completely_is_noticed_and_removed(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_the_last_block(plain: Any, to: Any, recipients: Any) -> None:
        (made_file,) = tmp_path.iterdir()  # and no other: what is not encrypted has no name
        assert stat.S_IMODE(made_file.stat().st_mode) == 0o600
        whole = io.BytesIO()
        original(plain, whole, recipients)
        to.write(whole.getvalue()[:-1000])

    original = pyrage.encrypt_io
    monkeypatch.setattr(age_file.pyrage, "encrypt_io", lose_the_last_block)
    with pytest.raises(BackupError, match="not enough free disk space"):
        await write(tmp_path / "backup", made.dsn, made.keys, tmp_path)
    assert list(tmp_path.iterdir()) == []
