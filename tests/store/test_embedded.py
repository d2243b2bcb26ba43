"""The embedded PostgreSQL is shared, durable, gone after its last user, and says why when it cannot start."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from frontdesk.store.embedded.account import account_for, reachable_paths, wheel_binaries
from frontdesk.store.embedded.server import EmbeddedPostgres, EmbeddedPostgresError
from tests.store.embedded_processes import (
    another_process,
    copy_of,
    is_free,
    is_stopped,
    parent_of,
    query,
    server_pid,
    temporary_home,
    until_ready,
    wait_until,
)


@pytest.fixture
def home() -> Iterator[Path]:
    with temporary_home() as home:
        yield home


@pytest.fixture
def used_home(made_server: Path) -> Iterator[Path]:
    with copy_of(made_server) as home:
        yield home


@pytest.fixture(scope="module")
def running(made_server: Path) -> Iterator[EmbeddedPostgres]:
    """One server for the tests that only look at it."""
    with copy_of(made_server) as home:
        pg = EmbeddedPostgres(home)
        pg.start()
        yield pg
        pg.stop()


def test_server_is_shared_and_stops_after_its_last_user(home: Path) -> None:
    with another_process(home) as other:
        assert until_ready(other) == ["Creating the database", "Starting PostgreSQL"]
        first = server_pid(home)
        pg = EmbeddedPostgres(home)
        steps: list[str] = []
        pg.start(progress=steps.append)
        pg.start(progress=steps.append)
        assert steps == []
    assert other.returncode == 0
    time.sleep(0.3)
    assert server_pid(home) == first
    assert query(pg, "SELECT current_database()") == "frontdesk"
    second = EmbeddedPostgres(home)
    second.start()
    second.stop_and_wait()
    assert server_pid(home) == first
    pg.stop_and_wait()
    assert is_stopped(home), "the last user waits until the server has ended"


def test_start_right_after_stop_gives_a_server_that_answers(used_home: Path) -> None:
    pg = EmbeddedPostgres(used_home)
    for _ in range(8):
        pg.start()
        assert query(pg, "SELECT 1") == "1"
        pg.stop()
        time.sleep(0.12)  # about when the guard notices


def test_killed_user_does_not_keep_the_server_running(used_home: Path) -> None:
    with another_process(used_home) as other:
        until_ready(other)
        other.kill()
    wait_until(lambda: is_stopped(used_home))


def test_committed_rows_survive_killing_everything(used_home: Path) -> None:
    pg = EmbeddedPostgres(used_home)
    for n in range(3):
        with another_process(used_home) as user:
            until_ready(user)
            query(pg, f"CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES ({n})")
            server = server_pid(used_home)
            for pid in (parent_of(server), server, user.pid):
                with suppress(ProcessLookupError):  # the server begins to end with its guard
                    os.kill(pid, signal.SIGKILL)
    pg.start()
    assert query(pg, "SELECT array_agg(n ORDER BY n) FROM kept") == "{0,1,2}"
    pg.stop()


def test_leftover_lock_files_naming_a_living_process_do_not_hinder_the_start(used_home: Path) -> None:
    pg = EmbeddedPostgres(used_home)
    pg.start()
    pg.stop()
    wait_until(lambda: is_stopped(used_home))
    account = account_for(used_home / "data")
    with subprocess.Popen(["sleep", "60"], **asdict(account)) as stranger:
        (used_home / "data" / "postmaster.pid").write_text(f"{stranger.pid}\n")
        (used_home / "run" / ".s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n")
        pg.start()
        stranger.kill()
    assert query(pg, "SELECT 1") == "1"
    pg.stop()


def test_killed_server_comes_back_while_it_has_a_user(used_home: Path) -> None:
    pg = EmbeddedPostgres(used_home)
    pg.start()
    first = server_pid(used_home)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: server_pid(used_home) != first)
    pg.start()
    assert query(pg, "SELECT 1") == "1"
    pg.stop()
    wait_until(lambda: is_stopped(used_home))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_server_does_not_outlive_its_guard_and_is_revived_by_its_user(used_home: Path) -> None:
    pg = EmbeddedPostgres(used_home)
    pg.start()
    first = server_pid(used_home)
    os.kill(parent_of(first), signal.SIGKILL)
    wait_until(lambda: is_free(used_home / "guard.lock"))  # a killed process takes a moment to be gone
    pg.start()
    assert server_pid(used_home) != first
    assert query(pg, "SELECT 1") == "1"
    pg.stop()


def test_two_processes_starting_at_once_create_one_database(home: Path) -> None:
    with another_process(home) as one, another_process(home) as two:
        steps = until_ready(one) + until_ready(two)
    assert sorted(steps) == ["Creating the database", "Starting PostgreSQL"]


@pytest.mark.parametrize("with_its_children", [True, False], ids=["and-initdb", "alone"])
def test_creation_that_was_killed_leaves_nothing_half_made(home: Path, with_its_children: bool) -> None:
    with another_process(home, database="stays half made") as other:
        wait_until((home / "data.new" / "PG_VERSION").exists)
        if with_its_children:
            os.killpg(other.pid, signal.SIGKILL)
        else:
            other.kill()
    assert not (home / "data").exists()
    pg = EmbeddedPostgres(home)
    pg.start()
    assert query(pg, "SELECT count(*) FROM pg_class WHERE relname = 'pg_class'") == "1"
    assert not (home / "data.new").exists()
    pg.stop()


def test_second_server_on_the_folder_is_refused(running: EmbeddedPostgres) -> None:
    account = account_for(running.home / "data")
    with reachable_paths(account, running.home / "data") as ((data,), descriptors):
        second = subprocess.run(
            [wheel_binaries() / "postgres", "-D", data, "-k", "", "-h", "127.0.0.1", "-p", "1"],
            capture_output=True,
            text=True,
            pass_fds=descriptors,
            cwd="/",
            timeout=20,
            **asdict(account),
        )
    assert second.returncode != 0
    assert "postmaster.pid" in second.stderr
    assert query(running, "SELECT 1") == "1"


def test_commits_are_durable_and_the_network_is_closed(running: EmbeddedPostgres) -> None:
    wanted = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "100",
        "listen_addresses": "",
        "TimeZone": "UTC",
        "jit": "off",
    }
    shown = query(running, "SELECT " + " || ',' || ".join(f"current_setting('{name}')" for name in wanted))
    assert shown == ",".join(wanted.values())


def test_failed_statements_and_their_values_stay_out_of_the_log(running: EmbeddedPostgres) -> None:
    query(running, "CREATE TABLE person (name text PRIMARY KEY)")
    with pytest.raises(AssertionError, match="Marked Patient"):
        query(running, "INSERT INTO person VALUES ('Marked Patient'), ('Marked Patient')")
    with pytest.raises(AssertionError, match="Marked Number"):
        query(running, "SELECT 'Marked Number'::int")
    assert "Marked" not in running.log_path.read_text()


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage("/")._replace(free=1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)


def test_disk_too_full_to_create_the_database_is_one_clear_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch)
    with pytest.raises(EmbeddedPostgresError) as refused:
        EmbeddedPostgres(home).start()
    assert str(refused.value) == f"There is not enough free disk space for the database in {home}."
    assert not (home / "data").exists()


def test_disk_too_full_to_start_the_server_is_one_clear_sentence(
    used_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch)
    (used_home / "data" / "PG_VERSION").write_text("")  # as a full disk leaves a file
    with pytest.raises(EmbeddedPostgresError) as refused:
        EmbeddedPostgres(used_home).start()
    assert str(refused.value) == f"There is not enough free disk space for the database in {used_home}."


def test_server_that_cannot_start_says_why_and_where_to_look(used_home: Path) -> None:
    pg = EmbeddedPostgres(used_home)
    pg.start()
    pg.stop()
    wait_until(lambda: is_stopped(used_home))
    (used_home / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedPostgresError) as refused:
        pg.start()
    assert str(refused.value) == (
        f"PostgreSQL in {used_home} cannot be started (database files are incompatible with server); see {pg.log_path}."
    )
    assert is_free(used_home / "users.lock")
