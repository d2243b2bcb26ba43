"""`frontdesk backup` and `frontdesk restore`: what was saved is what comes back, and nothing less ever does."""

import contextlib
import hashlib
import io
import json
import shutil
import stat
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.cli.command_line import CommandLine, on_database
from tests.ports import free_port
from tests.store.embedded_processes import temporary_home

TRAIL = ("audit_record", "audit_unsealed", "audit_seal", "audit_head", "audit_record_record_id_seq")
ADA = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}


@dataclass(frozen=True)
class Saved:
    """A service that has been used and stopped, a backup made while it ran, and one made after."""

    line: CommandLine
    port: str
    credentials: dict[str, str]
    access_token: str
    appointment: dict[str, Any]
    live: Path
    whole: Path
    without_key: Path


@pytest.fixture(scope="module")
def saved(line: CommandLine, harbor: str, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("backups")
    names = [folder / name for name in ("live.frontdesk", "whole.frontdesk", "without.frontdesk")]
    live, whole, without_key = names
    added = line.json(
        "client", "add", "--practice", harbor, "--name", "old", "--grant", "integration", "--scope", "all"
    )
    credentials = {"client_id": added["clientId"], "client_secret": added["clientSecret"]}
    port = str(free_port())
    with line.serving(FRONTDESK_PORT=port) as served, caller(served.url, credentials) as client:
        stop = threading.Event()
        writer = threading.Thread(target=book_until, args=(client, stop))
        writer.start()
        try:
            line.json("backup", str(live), "--with-secret-key")
        finally:
            stop.set()
            writer.join()
        listed = client.get("/api/appointments").json()["items"]
        appointment = client.get(f"/api/appointments/{listed[0]['id']}").json()
    line.json("audit", "verify")  # seals what waits for it, so that nothing moves any more
    line.json("backup", str(whole), "--with-secret-key")
    line.json("backup", str(without_key))
    token = client.headers["authorization"].removeprefix("Bearer ")
    return Saved(line, port, credentials, token, appointment, *names)


def caller(url: str, credentials: dict[str, str]) -> httpx.Client:
    answer = httpx.post(f"{url}/oauth/token", data={"grant_type": "client_credentials", **credentials}, timeout=30)
    assert answer.status_code == 200, answer.text
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {answer.json()['access_token']}"}, timeout=30)


def book_until(client: httpx.Client, stop: threading.Event) -> None:
    patient = client.post("/api/patients/match", json=ADA).json()["items"][0]["id"]
    query = {"visitTypeId": 22, "procedureId": 103, "limit": 50}
    for slot in client.get("/api/slots/first-available", params=query).json()["items"]:
        answer = client.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})
        if stop.is_set() and answer.status_code == 201:
            return


@contextlib.contextmanager
def empty_folder() -> Iterator[CommandLine]:
    with temporary_home() as home:
        yield CommandLine(home.parent)


@contextlib.contextmanager
def running(line: CommandLine) -> Iterator[None]:
    postgres = EmbeddedPostgres(line.data_dir / "postgres")
    postgres.start()
    yield
    postgres.end()


def every_table(line: CommandLine) -> dict[str, list[str]]:
    """All rows of all tables, as text and sorted; and where every sequence stands."""

    async def read(connection: Any) -> dict[str, list[str]]:
        names = await connection.fetch(
            "SELECT relname, relkind = 'S' AS counts FROM pg_class "
            "WHERE relnamespace = 'frontdesk'::regnamespace AND relkind IN ('r', 'S')"
        )
        found = {}
        for name, counts in names:
            content = "(last_value, is_called)" if counts else "t"
            rows = await connection.fetch(f'SELECT {content}::text AS text FROM "{name}" t')
            found[name] = sorted(row["text"] for row in rows)
        return found

    found: dict[str, list[str]] = on_database(line, read)
    return found


def test_a_restored_database_holds_every_row_of_every_table(saved: Saved) -> None:
    with empty_folder() as new:
        told = new.json("restore", str(saved.whole))
        assert (told["practices"], told["keysOpen"]) == (1, True)
        with running(new):
            restored = every_table(new)
            made = new.json("audit", "list", "--limit", "2")
        assert [record["operation"] for record in made] == ["command.restore", "command.backup"]
        kept = every_table(saved.line)
        for name in TRAIL:  # backups and restores add to it
            restored.pop(name), kept.pop(name)
        assert restored == kept
        assert len(restored["appointment"]) >= 1
        assert sorted(path.name for path in new.data_dir.iterdir()) == ["postgres", "secret.key"]
        assert stat.S_IMODE((new.data_dir / "secret.key").stat().st_mode) == 0o600


def test_a_service_on_a_restored_database_knows_old_tokens_and_secrets_and_books_on(saved: Saved) -> None:
    with empty_folder() as new:
        new.json("restore", str(saved.whole))
        with new.serving(FRONTDESK_PORT=saved.port) as served:
            path = f"/api/appointments/{saved.appointment['id']}"
            old = httpx.get(served.url + path, headers={"Authorization": f"Bearer {saved.access_token}"}, timeout=30)
            assert (old.status_code, old.json()) == (200, saved.appointment)
            stop = threading.Event()
            stop.set()
            with caller(served.url, saved.credentials) as client:
                assert client.get(path).json() == saved.appointment
                before = len(client.get("/api/appointments", params={"limit": 200}).json()["items"])
                book_until(client, stop)
                assert len(client.get("/api/appointments", params={"limit": 200}).json()["items"]) == before + 1
        assert new.json("audit", "verify")["whole"]


def test_a_backup_made_while_the_service_books_shows_one_moment(saved: Saved) -> None:
    with empty_folder() as new:
        new.json("restore", str(saved.live))
        with running(new):
            tables = every_table(new)
    booked = [row for row in tables["outbox"] if "appointment.booked" in row]
    assert len(tables["appointment"]) == len(booked)


def test_without_the_secret_key_the_keys_wait_for_it(saved: Saved) -> None:
    with tarfile.open(saved.without_key) as archive:
        assert archive.getnames() == ["manifest.json", "manifest.sha256", "database.dump"]
    with empty_folder() as new:
        done = new.run("restore", str(saved.without_key))
        assert done.status == 0, done
        assert "put the secret key" in done.out
        assert [path.name for path in new.data_dir.iterdir()] == ["postgres"]
        shutil.copy(saved.line.data_dir / "secret.key", new.data_dir)
        keys = {each["check"]: each["state"] for each in new.json("doctor", FRONTDESK_PORT=str(free_port()))["checks"]}
        assert keys["keys"] == "ok"


def test_a_backup_says_whether_the_secret_key_is_in_it_and_is_private(saved: Saved, tmp_path: Path) -> None:
    for words, included in ((["--with-secret-key"], True), ([], False)):
        file = tmp_path / f"{included}.frontdesk"
        done = saved.line.run("backup", str(file), *words)
        assert done.status == 0, done
        assert ("is included" in done.out, "is not included" in done.out) == (included, not included)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["False.frontdesk", "True.frontdesk"]


def test_a_backup_never_overwrites(saved: Saved, tmp_path: Path) -> None:
    file = tmp_path / "old.frontdesk"
    file.write_text("precious")
    done = saved.line.run("backup", str(file))
    assert (done.status, file.read_text()) == (2, "precious")


def test_a_damaged_backup_is_refused_wherever_it_is_damaged_and_nothing_is_left_behind(
    saved: Saved, tmp_path: Path
) -> None:
    content = saved.whole.read_bytes()
    dump_at, manifest_at = content.index(b"PGDMP") + 5000, content.index(b'"tables"') + 3
    damaged = {
        "dump": flipped(content, dump_at),
        "manifest": flipped(content, manifest_at),
        "cut": content[: len(content) // 2],
        "other": b"not a backup",
        "empty": b"",
    }
    with empty_folder() as new:
        for name, some in damaged.items():
            file = tmp_path / name
            file.write_bytes(some)
            done = new.run("restore", str(file))
            assert (done.status, done.out) == (1, ""), name
            assert "damaged" in done.err, done
            assert list(new.data_dir.iterdir()) == [], name


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_rows_that_differ_from_the_manifest_are_noticed_and_nothing_is_left_behind(
    saved: Saved, tmp_path: Path
) -> None:
    file = tmp_path / "forged"
    with tarfile.open(saved.whole) as archive, tarfile.open(file, "w") as forged:
        manifest = json.load(archive.extractfile("manifest.json") or io.BytesIO())
        manifest["tables"]["patient"]["sum"] = "1"
        text = json.dumps(manifest).encode()
        parts = {"manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}
        for name in archive.getnames():
            part = parts.get(name) or (archive.extractfile(name) or io.BytesIO()).read()
            member = tarfile.TarInfo(name)
            member.size = len(part)
            forged.addfile(member, io.BytesIO(part))
    with empty_folder() as new:
        done = new.run("restore", str(file))
        assert done.status == 1
        assert "differs from the backup in: patient." in done.err
        assert list(new.data_dir.iterdir()) == []


def test_a_restore_needs_an_empty_data_directory(saved: Saved) -> None:
    with empty_folder() as new:
        (new.data_dir / "note").write_text("mine")
        done = new.run("restore", str(saved.whole))
        assert (done.status, "is not empty" in done.err) == (2, True)
        assert [path.name for path in new.data_dir.iterdir()] == ["note"]


def test_what_an_interrupted_restore_left_is_named(saved: Saved) -> None:
    with empty_folder() as new:
        (new.data_dir / ".restoring").mkdir()
        done = new.run("restore", str(saved.whole))
        assert (done.status, "interrupted" in done.err) == (2, True)


def test_a_secret_key_that_does_not_fit_is_noticed_before_anything_is_restored(saved: Saved) -> None:
    with empty_folder() as new:
        done = new.run("restore", str(saved.whole), FRONTDESK_SECRET_KEY="another secret key of enough length")
        assert (done.status, "another secret key" in done.err) == (1, True)
        assert list(new.data_dir.iterdir()) == []


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_given_by_url_is_not_ours_to_save(line: CommandLine, tmp_path: Path, command: str) -> None:
    done = line.run(command, str(tmp_path / "file"), FRONTDESK_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert (done.status, "embedded database" in done.err) == (2, True)
