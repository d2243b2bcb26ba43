"""Two PostgreSQL servers, one of which replicates the other synchronously and takes over when it fails."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded.account import Account, account_for, binaries_for
from frontdesk.store.embedded.cluster import DATABASE, OWNER_ROLE, ROLES

WAIT_TIMEOUT = 120.0
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "80",
    "shared_buffers": "32MB",
    "deadlock_timeout": "100ms",
    "wal_level": "replica",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "wal_keep_size": "64MB",
    "hot_standby": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
}
_ROOM = 600 * 1024 * 1024
_FILLED = "filled"


class Server:
    """One server in a folder of its own."""

    def __init__(self, folder: Path, account: Account) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.sockets = folder / "run"
        self.account = account
        self.process: subprocess.Popen[bytes] | None = None
        for each in (folder, self.sockets):
            each.mkdir(mode=0o755, exist_ok=True)
            if account.user is not None and account.group is not None:
                os.chown(each, account.user, account.group)

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [binaries_for(self.account) / program, *arguments],
            env={"LC_ALL": "C", "PATH": os.defpath},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            **asdict(self.account),
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")
        return done.stdout

    def create(self) -> None:
        self.run("initdb", "-D", str(self.data), "--username=postgres", "--encoding=UTF8", "--auth=trust", "--locale=C",
                 "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-sync")  # fmt: skip

    def copy_of(self, other: "Server") -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-h", str(other.sockets), "-U", "postgres", "-D", str(self.data), "-R",
                 "--wal-method=stream", "--checkpoint=fast", "--no-sync")  # fmt: skip

    def start(self) -> None:
        for left in (self.data / "postmaster.pid", self.sockets / ".s.PGSQL.5432.lock"):
            left.unlink(missing_ok=True)
        settings = {**_SETTINGS, "unix_socket_directories": str(self.sockets)}
        with (self.folder / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(
                [binaries_for(self.account) / "postgres", "-D", str(self.data)]
                + [f"--{name}={value}" for name, value in settings.items()],
                env={"LC_ALL": "C", "PATH": os.defpath},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **asdict(self.account),
            )

    def until_ready(self) -> None:
        deadline = time.monotonic() + WAIT_TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(RuntimeError):
                self.run("pg_isready", "-q", "-h", str(self.sockets))
                return
            if self.process is None or self.process.poll() is not None:  # as after a full disk
                self.start()
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL did not start: " + (self.folder / "postgres.log").read_text()[-2000:])

    def sql(self, statement: str, database: str = "postgres") -> str:
        return self.run("psql", "-h", str(self.sockets), "-U", "postgres", "-d", database, "-XqAtc", statement)

    def processes(self) -> list[int]:
        """The server and everything it started."""
        if self.process is None or self.process.poll() is not None:
            return []
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [self.process.pid, *map(int, children.split())]

    def kill(self) -> None:
        """Kills the server and waits until the processes it leaves behind have noticed."""
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        deadline = time.monotonic() + WAIT_TIMEOUT
        while any(Path(f"/proc/{pid}/stat").exists() for pid in left[1:]) and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.kill()


class Pair:
    def __init__(self, folder: Path) -> None:
        account = account_for(folder / "none")
        self.servers = [Server(folder / name, account) for name in ("one", "two")]
        self.folder = folder
        self.primary, self.standby = self.servers

    def dsn(self, user: str) -> str:
        """Finds whichever server is the primary."""
        hosts = ",".join(str(server.sockets) for server in self.servers)
        return f"postgresql://{user}@/{DATABASE}?host={hosts}&port=5432,5432&target_session_attrs=primary"

    @property
    def service_dsn(self) -> str:
        return self.dsn(SERVICE_ROLE)

    @property
    def owner_dsn(self) -> str:
        return self.dsn(OWNER_ROLE)

    def start(self) -> None:
        self.primary.create()
        self.primary.start()
        self.primary.until_ready()
        self.primary.sql(f"CREATE DATABASE {DATABASE}")
        for statement in ROLES.read_text().split("\n\n"):
            if not statement.startswith("-- Gives"):
                self.primary.sql(statement, DATABASE)
        self.attach_standby()

    def attach_standby(self) -> None:
        """A new copy of the primary, which every commit waits for from now on."""
        self.standby.stop()
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.primary.sql("SELECT pg_reload_conf()")
        self.standby.copy_of(self.primary)
        self.standby.start()
        self._until_caught_up()
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.sql("SELECT pg_reload_conf()")

    def _until_caught_up(self) -> None:
        deadline = time.monotonic() + WAIT_TIMEOUT
        while self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'").strip() != "1":
            if time.monotonic() > deadline:
                raise RuntimeError("the standby does not replicate")
            time.sleep(0.1)

    def restart_primary(self) -> None:
        self.primary.kill()
        self.primary.start()
        self.primary.until_ready()

    def fail_over(self) -> None:
        """As Patroni does, only to a standby that is connected: a primary that was killed and has started again shows
        commits that the standby does not have before it is."""
        self._until_caught_up()
        self.primary.kill()
        self.standby.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.standby.sql("SELECT pg_promote()")
        self.primary, self.standby = self.standby, self.primary
        self.attach_standby()

    def fill_disk(self) -> None:
        """Leaves no room for the servers, where their folder is a file system of its own."""
        with (self.folder / _FILLED).open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))

    def free_disk(self) -> None:
        (self.folder / _FILLED).unlink(missing_ok=True)
        for server in self.servers:
            server.until_ready()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of its own at the folder, if we may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={_ROOM},mode=755", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)
