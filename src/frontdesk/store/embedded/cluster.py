"""Creates the database of the embedded PostgreSQL and its roles, as the superuser in single-user mode."""

import errno
import hashlib
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

from frontdesk.store.embedded.account import (
    Account,
    EmbeddedPostgresError,
    binaries_for,
    create_account_folder,
    reachable_paths,
)

DATA = "data"
DATABASE = "frontdesk"
OWNER_ROLE = "frontdesk_owner"
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}  # none of the caller's PG* variables
FREE_TO_CREATE = 200 * 1024 * 1024
ROLES = Path(__file__).with_name("roles.sql")
INITDB_OPTIONS = (
    *("--username=postgres", "--encoding=UTF8", "--auth-local=peer", "--auth-host=reject"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)


def create(home: Path, account: Account, gate: int) -> None:
    """Create the database in another folder and rename it, so that it appears complete or not at all."""
    if shutil.disk_usage(home).free < FREE_TO_CREATE:
        raise EmbeddedPostgresError(startup_error(home, os.strerror(errno.ENOSPC)))
    new = home / "data.new"
    shutil.rmtree(new, ignore_errors=True)
    create_account_folder(new, account)
    try:
        with reachable_paths(account, new) as ((path,), descriptors):
            kept = (gate, *descriptors)  # the next start waits for these if we are killed
            _run(home, [binaries_for(account) / "initdb", "-D", path, *INITDB_OPTIONS], "", account, kept)
            _run_alone(home, path, "postgres", f"CREATE DATABASE {DATABASE};\n\n", account, kept)
        new.rename(home / DATA)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    folder = os.open(home, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def has_roles(home: Path) -> bool:
    applied = home / "roles"
    return applied.exists() and applied.read_text() == _checksum(ROLES)


def set_up_roles(home: Path, account: Account, kept: tuple[int, ...]) -> None:
    """Apply `roles.sql` to a database that lacks its present text; the caller holds the locks in `kept`."""
    (home / DATA / "postmaster.pid").unlink(missing_ok=True)  # stale: no server runs while the locks are held
    with reachable_paths(account, home / DATA) as ((path,), descriptors):
        _run_alone(home, path, DATABASE, ROLES.read_text(), account, (*kept, *descriptors))
    (home / "roles").write_text(_checksum(ROLES))


def startup_error(home: Path, reason: str, advice: str = "") -> str:
    if "No space left" in reason or "quota exceeded" in reason:
        return f"There is not enough free disk space for the database in {home}."
    last = (reason.strip().splitlines() or ["no reason given"])[-1].rstrip(".")
    return f"PostgreSQL in {home} cannot be started ({last}){advice}."


def _run_alone(home: Path, data: str, database: str, sql: str, account: Account, kept: tuple[int, ...]) -> None:
    """Run statements in single-user mode; a blank line ends each."""
    options = ["--single", "-j", "-D", data, "-c", "exit_on_error=on", database]
    _run(home, [binaries_for(account) / "postgres", *options], sql, account, kept)


def _run(home: Path, command: list[str | Path], text: str, account: Account, kept: tuple[int, ...]) -> None:
    done = subprocess.run(  # noqa: S603 (our own command)
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
        pass_fds=kept,
        **asdict(account),
    )
    if done.returncode != 0:
        raise EmbeddedPostgresError(startup_error(home, done.stderr))


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
