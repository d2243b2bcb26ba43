"""`frontdesk backup` and `frontdesk restore`: what was saved is what comes back, and nothing less ever does."""

import contextlib
import json
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyrage
import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.cli.command_line import CommandLine, on_database
from tests.store.embedded_processes import temporary_home
from tests.support.ports import free_port

TRAIL = ("audit_record", "audit_unsealed", "audit_seal", "audit_head", "audit_record_record_id_seq")
ADA = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}


@dataclass(frozen=True)
class Saved:
    """A service that has been used and stopped, a backup made while it ran, and those made after."""

    line: CommandLine
    port: str
    credentials: dict[str, str]
    access_token: str
    appointment: dict[str, Any]
    live: Path
    whole: Path
    portable: Path
    """With the secret key, to the recipient of `identity`."""
    identity: Path


@pytest.fixture(scope="module")
def saved(line: CommandLine, harbor: str, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("backups")
    live, whole, portable, identity = (folder / name for name in ("live", "whole", "portable", "identity"))
    key = pyrage.x25519.Identity.generate()
    identity.write_text(f"# made for a test\n{key}\n")
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
            line.json("backup", str(live))
        finally:
            stop.set()
            writer.join()
        listed = client.get("/api/appointments").json()["items"]
        appointment = client.get(f"/api/appointments/{listed[0]['id']}").json()
    line.json("audit", "verify")  # seals what waits for it, so that nothing moves any more
    line.json("backup", str(portable), "--with-secret-key", "--recipient", str(key.to_public()))
    line.json("backup", str(whole))
    token = client.headers["authorization"].removeprefix("Bearer ")
    return Saved(line, port, credentials, token, appointment, live, whole, portable, identity)


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
def empty_folder(secret_key_of: CommandLine | None = None) -> Iterator[CommandLine]:
    """A new data directory, with the secret key of another installation if one is given."""
    with temporary_home() as home:
        if secret_key_of is not None:
            shutil.copy(secret_key_of.data_dir / "secret.key", home.parent)
        yield CommandLine(home.parent)


@pytest.fixture(scope="module")
def restored(saved: Saved) -> Iterator[CommandLine]:
    with empty_folder(saved.line) as new:
        report = new.json("restore", str(saved.whole))
        assert (report["practices"], report["keysOpen"], report["verified"]) == (1, True, True)
        yield new


@contextlib.contextmanager
def running(line: CommandLine) -> Iterator[None]:
    postgres = EmbeddedPostgres(line.data_dir / "postgres")
    postgres.start()
    yield
    postgres.stop_and_await_end()


def every_table(line: CommandLine) -> dict[str, list[str]]:
    """All rows of all tables, as text and sorted; and where every sequence stands."""

    async def read(connection: Any) -> dict[str, list[str]]:
        names = await connection.fetch(
            "SELECT relname, relkind = 'S' AS counts FROM pg_class "
            "WHERE relnamespace = 'frontdesk'::regnamespace AND relkind IN ('r', 'S') "
            "AND relname NOT IN ('migration', 'function_file')"  # what was applied to this database, and when
        )
        found = {}
        for name, counts in names:
            content = "(last_value, is_called)" if counts else "t"
            rows = await connection.fetch(f'SELECT {content}::text AS text FROM "{name}" t')
            found[name] = sorted(row["text"] for row in rows)
        return found

    found: dict[str, list[str]] = on_database(line, read)
    return found


def test_a_restored_database_holds_every_row_of_every_table(saved: Saved, restored: CommandLine) -> None:
    with running(restored):
        rows = every_table(restored)
        made = restored.json("audit", "list", "--limit", "2")
    assert [record["operation"] for record in made] == ["command.restore", "command.backup"]
    kept = every_table(saved.line)
    for name in (*TRAIL, "outbox_event_id_seq"):  # backups and restores add to the trail; events get new ids
        rows.pop(name), kept.pop(name)
    assert rows == kept
    assert len(rows["appointment"]) >= 1
    assert sorted(path.name for path in restored.data_dir.iterdir()) == ["postgres", "secret.key"]


def test_a_service_on_a_restored_database_knows_old_tokens_and_secrets_and_books_on(
    saved: Saved, restored: CommandLine
) -> None:
    with restored.serving(FRONTDESK_PORT=saved.port) as served:
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
    assert restored.json("audit", "verify")["whole"]


def test_a_backup_made_while_the_service_books_shows_one_moment(saved: Saved) -> None:
    with empty_folder(saved.line) as new:
        done = new.run("restore", str(saved.live))
        assert (done.status, done.err) == (0, ""), done
        with running(new):
            tables = every_table(new)
    booked = [row for row in tables["outbox"] if "appointment.booked" in row]
    assert len(tables["appointment"]) == len(booked)


def test_a_backup_to_a_recipient_needs_the_identity_and_without_a_key_from_elsewhere_an_explicit_yes(
    saved: Saved, tmp_path: Path
) -> None:
    """Anyone can encrypt to a public key, so what is in the backup cannot vouch for it."""
    portable, identity = str(saved.portable), str(saved.identity)
    assert saved.line.run("backup", "verify", portable).status == 1
    assert saved.line.run("backup", "verify", portable, "--identity", identity).status == 0
    protected = tmp_path / "identity.age"
    protected.write_bytes(pyrage.passphrase.encrypt(saved.identity.read_bytes(), "open sesame"))
    for passphrase, status in (("open sesame", 0), ("open barley", 2)):
        done = saved.line.run("backup", "verify", portable, "--identity", str(protected), stdin=f"{passphrase}\n")
        assert done.status == status, done
    with empty_folder() as new:
        refused = new.run("restore", portable, "--identity", identity)
        assert (refused.status, "cannot be authenticated" in refused.err) == (1, True)
        assert list(new.data_dir.iterdir()) == []
        done = new.run("restore", portable, "--identity", identity, "--unverified", "--json")
        assert (done.status, "not authenticated" in done.err) == (0, True), done
        report = json.loads(done.out)
        assert (report["keysOpen"], report["verified"]) == (True, False)
        assert (new.data_dir / "secret.key").read_bytes() == (saved.line.data_dir / "secret.key").read_bytes()
        assert stat.S_IMODE((new.data_dir / "secret.key").stat().st_mode) == 0o600


def test_without_the_secret_key_nothing_is_restored_and_the_operator_is_told_what_is_needed(saved: Saved) -> None:
    with empty_folder() as new:
        done = new.run("restore", str(saved.whole))
        assert (done.status, f"{new.data_dir}/secret.key" in done.err) == (2, True)
        another = {"FRONTDESK_SECRET_KEY": "another secret key of enough length"}
        done = new.run("restore", str(saved.whole), "--unverified", **another)
        assert (done.status, "needs another key. Nothing was restored." in done.err) == (1, True)
        assert list(new.data_dir.iterdir()) == []


def test_a_backup_is_private_and_says_what_a_restore_needs(saved: Saved, tmp_path: Path) -> None:
    key = str(pyrage.x25519.Identity.generate().to_public())
    for words, sentence in (
        ([], f"Nobody can restore it without {saved.line.data_dir}/secret.key"),
        (["--recipient", key], "without the recipient's identity file and"),
        (["--recipient", key, "--with-secret-key"], "includes the secret key"),
    ):
        file = tmp_path / str(len(words))
        done = saved.line.run("backup", str(file), *words)
        assert (done.status, sentence in done.out) == (0, True), done
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "2", "3"]
    assert not any(path.name.startswith("tmp") for path in saved.line.data_dir.iterdir())


def test_a_backup_is_refused_if_it_could_not_be_restored_or_would_overwrite(saved: Saved, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for words, settings, status, sentence in (
        ([], {"FRONTDESK_SECRET_KEY": "another secret key of enough length"}, 1, "another secret key"),
        (["--with-secret-key"], {}, 2, "cannot protect itself"),
        (["--recipient", "age1nonsense"], {}, 2, "public key of age"),
    ):
        done = saved.line.run("backup", str(file), *words, **settings)
        assert (done.status, sentence in done.err) == (status, True), done
    assert saved.line.run("backup", "verify").status == 2
    assert list(tmp_path.iterdir()) == []
    file.write_text("precious")
    done = saved.line.run("backup", str(file))
    assert (done.status, file.read_text()) == (2, "precious")


def test_a_database_whose_secret_key_is_elsewhere_is_not_backed_up_under_a_new_one(
    saved: Saved, tmp_path: Path
) -> None:
    key = saved.line.data_dir / "secret.key"
    aside = key.rename(key.with_suffix(".aside"))
    try:
        done = saved.line.run("backup", str(tmp_path / "file"))
        assert (done.status, f"{key} is missing: put back your copy" in done.err) == (1, True)
        assert not key.exists()
    finally:
        aside.rename(key)


def test_a_damaged_backup_is_refused_and_nothing_is_left_behind(saved: Saved, tmp_path: Path) -> None:
    content = saved.whole.read_bytes()
    middle = len(content) // 2
    damaged = {
        "altered": (content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :], "damaged"),
        "cut": (content[:middle], "damaged"),
        "other": (b"not a backup", "not a backup"),
    }
    with empty_folder(saved.line) as new:
        for name, (some, sentence) in damaged.items():
            file = tmp_path / name
            file.write_bytes(some)
            for words in (("restore", "--unverified"), ("backup", "verify")):
                done = new.run(*words, str(file))
                assert (done.status, done.out, sentence in done.err) == (1, "", True), (name, done)
        assert [path.name for path in new.data_dir.iterdir()] == ["secret.key"]


def test_a_whole_backup_is_verified_without_a_database(saved: Saved) -> None:
    with empty_folder(saved.line) as new:
        done = new.run("backup", "verify", str(saved.whole), "--json")
        assert (done.status, json.loads(done.out)["verified"]) == (0, True)
        assert [path.name for path in new.data_dir.iterdir()] == ["secret.key"]


def test_a_restore_needs_an_empty_data_directory_and_names_what_an_interrupted_one_left(saved: Saved) -> None:
    with empty_folder() as new:
        (new.data_dir / "note").write_text("mine")
        done = new.run("restore", str(saved.whole))
        assert (done.status, "is not empty" in done.err) == (2, True)
        assert [path.name for path in new.data_dir.iterdir()] == ["note"]
        (new.data_dir / ".restoring").mkdir()
        done = new.run("restore", str(saved.whole))
        assert (done.status, "interrupted" in done.err) == (2, True)


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_given_by_url_is_not_ours_to_save(line: CommandLine, tmp_path: Path, command: str) -> None:
    done = line.run(command, str(tmp_path / "file"), FRONTDESK_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert (done.status, "embedded database" in done.err) == (2, True)
