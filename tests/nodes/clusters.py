"""A PostgreSQL cluster with a synchronous standby, by default made from the binaries of the embedded one."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from frontdesk.store.embedded.account import account_for, binaries_for
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "hot_standby": "on",
    "fsync": "off",  # no machine loses its power here
}


class Cluster:
    """One PostgreSQL, of an account that may run it."""

    def __init__(self, folder: Path, binaries: Path | None = None) -> None:
        self.data = folder / "data"
        self.port = free_port()
        self._log = folder / "postgres.log"
        self._account = account_for(self.data)
        self._binaries = binaries or binaries_for(self._account)
        self._process: subprocess.Popen[bytes] | None = None
        self.settings = {**_SETTINGS, "port": str(self.port)}
        folder.mkdir()
        if self._account.user is not None:
            os.chown(folder, self._account.user, self._account.group or -1)

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")

    def copy(self, primary: "Cluster") -> None:
        address = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
        self.run("pg_basebackup", "-D", str(self.data), "-R", "--no-sync", "-c", "fast", *address)

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in self.settings.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self.data), *settings],
                stdout=log, stderr=log, cwd="/", start_new_session=True, **asdict(self._account),
            )  # fmt: skip
        wait_until(self._accepts, 240)

    def sql(self, statement: str) -> str:
        return self.run("psql", "-X", "-A", "-t", "-d", self.dsn, "-c", statement)

    def script(self, text: str) -> None:
        """Statements and commands of psql, as an administrator runs them."""
        self.run("psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", self.dsn, given=text)

    @contextmanager
    def running(self, program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Another program, of the same account."""
        with self._log.open("ab") as log:
            process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd="/", **asdict(self._account))
        try:
            yield process
        finally:
            process.kill()
            process.wait(30)

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(120)

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "-D", str(self.data))

    def hang(self) -> None:
        self._signal(signal.SIGSTOP)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(30)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids():
            with suppress(ProcessLookupError):  # a connection that has ended meanwhile
                os.kill(pid, number)

    def _pids(self) -> list[int]:
        if self._process is None or self._process.poll() is not None:
            return []
        postmaster = self._process.pid
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        return [postmaster, *map(int, children)]

    def _accepts(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        command = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command).returncode == 0

    def run(self, program: str, *arguments: str, given: str = "") -> str:
        """A program of PostgreSQL, or another one by its path, as the account of the cluster."""
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            input=given, capture_output=True, text=True, cwd="/", env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            timeout=600, **asdict(self._account),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
