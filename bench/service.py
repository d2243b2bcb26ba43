"""A real `frontdesk serve` on an embedded PostgreSQL of its own, and what its processes cost.

Owns starting and stopping it, its practices and clients, and the reading of /proc. The service runs with its defaults:
durable commits, gateway and authentication on, a log line per request (to nowhere).
"""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import asyncpg

from frontdesk.access.clients.records import AccessLimits, add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.keys.encryption import load_secret_key
from frontdesk.access.keys.ring import SLOT_IDS, KeyRing
from frontdesk.access.staff.links import new_link
from frontdesk.access.staff.members import add_staff
from frontdesk.access.staff.sessions import StaffSessions
from frontdesk.audit.trail import AuditContext
from frontdesk.domain.slot_ids import SlotIds, practice_key
from frontdesk.practice_file import parse
from frontdesk.settings import Settings
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.account import own_name
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.store.practices import import_practice

T = TypeVar("T")
SESSION_COOKIE = "frontdesk_session"
FRONTDESK = str(Path(sys.executable).parent / "frontdesk")
_READY_SECONDS = 120
_STOP_SECONDS = 60
_LOGIN_SECONDS = 10


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Service:
    """One data directory, and the server that runs on it. Several may share a directory and with it the database."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.folder = folder
        self.workers = workers
        self.port = free_port()
        self.postgres = EmbeddedPostgres(folder / "postgres")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")} | {
            "FRONTDESK_DATA_DIR": str(folder),
            "FRONTDESK_TOKEN_LIFETIME_SECONDS": "86400",
            "FRONTDESK_BASE_URL": "http://bench",  # tokens hold for every server on this database, whatever its port
        }
        self._server: subprocess.Popen[str] | None = None
        self._earlier_database_cpu = 0.0

    def start(self) -> float:
        """Seconds until it answered."""
        began = time.perf_counter()
        self._server = subprocess.Popen(
            [FRONTDESK, "serve", "--json", "--port", str(self.port), "--workers", str(self.workers)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if line.startswith("}"):
                return time.perf_counter() - began
        raise RuntimeError(f"frontdesk serve ended with {self._server.wait()}: run it by hand to see why")

    def stop(self) -> None:
        """Returns when the server has ended, and PostgreSQL with its last user."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGINT)  # without a drain
            self._server.wait(_STOP_SECONDS)
            assert self._server.stdout is not None
            self._server.stdout.close()
            self._server = None

    def restart(self) -> None:
        """New processes, PostgreSQL's included, if nobody else uses it."""
        self._earlier_database_cpu = self.database_cpu_seconds()
        self.stop()
        self.wait_for_database_to_end()
        self.start()

    def wait_for_database_to_end(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while (self.folder / "postgres/data/postmaster.pid").exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    @property
    def worker_pids(self) -> list[int]:
        assert self._server is not None
        return children(self._server.pid)

    @property
    def processes(self) -> dict[str, list[int]]:
        """Who works for a call: the server's own processes, and the database's."""
        assert self._server is not None
        return {"service": [self._server.pid, *self.worker_pids], "database": self.database_pids}

    @property
    def database_pids(self) -> list[int]:
        postmaster = int((self.folder / "postgres/data/postmaster.pid").read_text().split()[0])
        return [postmaster, *children(postmaster)]

    def database_cpu_seconds(self) -> float:
        """All that the database has spent, by processes that have ended, too."""
        postmaster, *live = self.database_pids
        fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
        ended = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return self._earlier_database_cpu + ended + cpu_seconds(live)

    def spent_seconds(self) -> dict[str, float]:
        """CPU so far, also of connections that are opened or closed meanwhile."""
        return {"service": cpu_seconds(self.processes["service"]), "database": self.database_cpu_seconds()}

    def import_practice(self, document: dict[str, Any]) -> int:
        """As the command line does; returns its id."""

        async def imported(database: Database, _ring: KeyRing) -> int:
            return await import_practice(database, parse(json.dumps(document)), datetime.now(UTC))  # JSON is YAML, too

        return self.with_keys(imported)

    def tokens(self, slugs: Sequence[str], grant: str = "agent") -> list[str]:
        """An access token for each practice, of a new client whose caps nobody reaches."""

        async def add(database: Database, ring: KeyRing) -> list[tuple[str, str]]:
            added = [
                await add_client(
                    database,
                    ring,
                    practice=slug,
                    name="bench",
                    grant=grant,
                    scopes=SCOPES,
                    per_minute=10**9,
                    quota=10**12,
                    access_limits=AccessLimits(0, 0, 0, writes_per_hour=0, upcoming_per_patient=0),
                )
                for slug in slugs
            ]
            return [(client.client_id, secret) for client, secret in added]

        return [self._token(*credentials) for credentials in self.with_keys(add)]

    def _token(self, client_id: str, secret: str) -> str:
        form = urlencode({"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, body = exchange(self.port, "POST", "/oauth/token", form, headers)
        assert status == http.client.OK, body
        token: str = json.loads(body)["access_token"]
        return token

    def staff_session(self, practice: str) -> str:
        """The session of a new staff member who has signed in to the console."""

        async def open_one(database: Database, _ring: KeyRing) -> str:
            audit = AuditContext("bench", datetime.now(UTC), "0" * 32)
            member = await add_staff(database, practice=practice, name="Bench", role="staff", audit=audit)
            _, token = await new_link(database, member.staff_id, audit=audit)
            sessions = StaffSessions(database, lambda: datetime.now(UTC), lambda _practice: None)
            return await sessions.by_link(token, "bench", "0" * 32)

        return self.with_keys(open_one)

    def slot_ids(self, practice_ids: Sequence[int]) -> list[SlotIds]:
        """What the service writes slot ids with: bookings need more of them than searches would give in time."""

        async def master(_database: Database, ring: KeyRing) -> bytes:
            return ring.secrets(SLOT_IDS)[0]

        key = self.with_keys(master)
        return [SlotIds(practice_key(key, practice_id)) for practice_id in practice_ids]

    def with_keys(self, work: Callable[[Database, KeyRing], Awaitable[T]]) -> T:
        async def run() -> T:
            database = Database(self.postgres.dsn(SERVICE_ROLE), pool_size=2)
            await database.open()
            try:
                secret_key = load_secret_key(Settings(data_dir=self.folder))
                ring = KeyRing(database, secret_key, token_lifetime_seconds=86400)
                await ring.load()
                return await work(database, ring)
            finally:
                await database.close()

        return asyncio.run(run())

    def query(self, sql: str, *arguments: Any) -> list[Any]:
        """As the superuser."""

        async def ask() -> list[Any]:
            connection = await self._superuser()
            try:
                return list(await connection.fetch(sql, *arguments))
            finally:
                await connection.close()

        return asyncio.run(ask())

    def sampled(self, sql: str, work: Callable[[], T], every: float = 0.02) -> tuple[T, list[Any]]:
        """The result of the work, and the rows of a query that is repeated meanwhile."""
        over, rows = threading.Event(), list[Any]()

        async def sample() -> None:
            connection = await self._superuser()
            try:
                while not over.is_set():
                    rows.append(await connection.fetchrow(sql))
                    await asyncio.sleep(every)
            finally:
                await connection.close()

        thread = threading.Thread(target=lambda: asyncio.run(sample()))
        thread.start()
        try:
            return work(), rows
        finally:
            over.set()
            thread.join()

    def execute(self, *scripts: str) -> None:
        """SQL scripts as the superuser, each on a connection of its own, together. For bulk loads: foreign keys are not
        checked row by row, the loaded rows satisfy them."""

        async def run(script: str) -> None:
            connection = await self._superuser(session_replication_role="replica", synchronous_commit="off")
            try:
                await connection.execute(script)
            finally:
                await connection.close()

        async def run_all() -> None:
            await asyncio.gather(*(run(script) for script in scripts))

        asyncio.run(run_all())

    def settle(self) -> None:
        """Does now what autovacuum would do some time during the measurements."""
        tables = self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'frontdesk'")
        self.execute("VACUUM (ANALYZE) " + ", ".join(row["tablename"] for row in tables))
        self.execute("CHECKPOINT")

    async def _superuser(self, **settings: str) -> Any:
        self._let_superuser_in()
        deadline = time.monotonic() + _LOGIN_SECONDS
        while True:
            try:
                return await asyncpg.connect(
                    self.postgres.dsn("postgres"), server_settings={"search_path": "frontdesk, public", **settings}
                )
            except asyncpg.InvalidAuthorizationSpecificationError:  # the server has yet to read its new rules
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.01)

    def _let_superuser_in(self) -> None:
        """Bulk loads skip foreign keys, which only the superuser may do; the service itself never logs in as it."""
        rules, names = (self.folder / "postgres/access" / name for name in ("pg_hba.conf", "pg_ident.conf"))
        if "postgres" not in names.read_text():
            rules.write_text("local all all peer map=frontdesk\n")
            names.write_text(names.read_text() + f'frontdesk "{own_name()}" postgres\n')
            os.kill(self.database_pids[0], signal.SIGHUP)


@contextlib.contextmanager
def running(folder: Path, workers: int = 1) -> Iterator[Service]:
    service = Service(folder, workers)
    try:
        service.start()
        yield service
    finally:
        service.stop()


def exchange(
    port: int, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, list[tuple[str, str]], bytes]:
    """One request, its status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def cpu_seconds(processes: Iterable[int]) -> float:
    """Of every thread; a process that has just ended counts nothing."""
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                with contextlib.suppress(OSError):
                    total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def busy_seconds() -> float:
    """Of all cores, whoever kept them busy."""
    user, nice, system, _idle, _wait, irq, soft, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(process: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found.group(1)) / 1024


def accounted(processes: Callable[[], dict[str, list[int]]], work: Callable[[], Any]) -> Any:
    """Runs a load and notes on its measurement what each group of processes spent per answer, in microseconds."""
    groups = processes()
    before = {name: cpu_seconds(pids) for name, pids in groups.items()}
    measured = work()
    spent = {name: cpu_seconds(pids) - before[name] for name, pids in groups.items()}
    measured.costs = {name: seconds / max(1, measured.answers) * 1e6 for name, seconds in spent.items()}
    return measured
