"""Faults that a run meets, one after the other, in a schedule that its seed decides."""

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import asyncpg

from tests.proof.nodes import OPEN_FILES, SOURCES, WORKERS, Node, clock_library
from tests.proof.postgres import Pair
from tests.proof.recorder import History, Offset
from tests.proof.upstream import TIMEOUT_SECONDS, FhirPractice

# Seconds: within and beyond the life of a token. After a day stored results are forgotten: a resend executes again.
CLOCK_JUMPS = (-900, -90, 90, 900, 20 * 3600)
CLOCK_LAG = 3.0  # seconds until every process has noticed: libfaketime looks again up to two seconds later
_STRAGGLERS = 2.0 * TIMEOUT_SECONDS  # until the service has given up what no client waits for any more
_SETTLED_BY = 600  # seconds: beyond all leases
_SETTLED_WITHIN = 600.0  # on a busy machine
Fault = tuple[str, Callable[[random.Random], Awaitable[None]]]
_SERVICE_BACKENDS = "FROM pg_stat_activity WHERE usename = 'frontdesk_service'"


@dataclass
class Nemeses:
    nodes: list[Node]
    postgres: Pair
    history: History
    chance: random.Random
    fhir: FhirPractice
    has_small_disk: bool
    previous_release: Path | None  # its sources
    faults: Counter[str] = field(default_factory=Counter)
    lost_memory: bool = False  # a database server was killed

    def schedule(self) -> list[list[Fault]]:
        """Every kind of fault once, in an order that the seed decides; some of nodes and database at the same time. The
        clock jumps alone: see `move_clock`. So does the previous release run: it may not survive what this one does."""
        of_nodes: list[Fault] = [
            ("kill a worker", self.kill_worker),
            ("kill a supervisor", self.kill_supervisor),
            ("stop a worker", self.stop_worker),
            ("exhaust descriptors", self.exhaust_descriptors),
            ("rolling restart", self.rolling_restart),
        ]
        of_database: list[Fault] = [
            ("kill the database", self.kill_database),
            ("stop the database", self.stop_database),
            ("exhaust the pool", self.exhaust_pool),
            ("slow disk", self.slow_disk),
            ("cancel statements", self.cancel_statements),
            ("end sessions", self.end_sessions),
            ("deadlocks", self.deadlocks),
            ("fail-over", self.fail_over),
            ("FHIR server", self.harm_fhir_server),
        ]
        if self.has_small_disk:
            of_database.append(("full disk", self.fill_disk))
        self.chance.shuffle(of_nodes)
        self.chance.shuffle(of_database)
        together = self.chance.randrange(1, len(of_nodes))
        pairs = [list(pair) for pair in zip(of_nodes[:together], of_database, strict=False)]
        alone = [[fault] for fault in (*of_nodes[together:], *of_database[together:])]
        if clock_library() is not None:
            alone.append([("clock jump", self.move_clock)])
        if self.previous_release is not None:
            alone.append([("rolling upgrade", partial(self.rolling_upgrade, self.previous_release))])
        return self.chance.sample(pairs + alone, len(pairs + alone))

    async def run(self, seconds: float) -> None:
        """Faults until the time is over, with a pause after each in which the service has to work again."""
        deadline = time.monotonic() + seconds
        while True:
            for faults in self.schedule():
                await asyncio.sleep(self.chance.uniform(0.5, 2.0))
                if time.monotonic() > deadline:
                    return
                for kind, _ in faults:
                    self.history.faults.append((time.monotonic_ns(), kind))
                    self.faults[kind] += 1
                # Each draws for itself: how long the others take does not change it.
                await asyncio.gather(*(begin(random.Random(self.chance.random())) for _, begin in faults))

    async def heal(self) -> None:
        for node in self.nodes:
            await asyncio.to_thread(node.until_ready)

    async def settle(self) -> None:
        """Waits until every write to the FHIR server is settled. The clock goes forward, so that they are due."""
        await asyncio.sleep(_STRAGGLERS)
        if clock_library() is not None:
            await self._set_clock(_SETTLED_BY)
        deadline = time.monotonic() + _SETTLED_WITHIN
        while (await self.fhir.stored(self.postgres.owner_dsn)).open_writes and time.monotonic() < deadline:
            await asyncio.sleep(0.5)
        await self._set_clock(0)

    async def kill_worker(self, chance: random.Random) -> None:
        node = chance.choice(self.nodes)
        if workers := node.workers():
            node.signal([chance.choice(workers)], signal.SIGKILL)

    async def kill_supervisor(self, chance: random.Random) -> None:
        node = chance.choice(self.nodes)
        await asyncio.to_thread(node.kill)
        node.start()
        await asyncio.to_thread(node.until_ready)

    async def kill_database(self, _chance: random.Random) -> None:
        self.lost_memory = True
        await asyncio.to_thread(self.postgres.restart_primary)

    async def stop_worker(self, chance: random.Random) -> None:
        node, seconds = chance.choice(self.nodes), chance.uniform(1, 4)
        workers = node.workers()[:1]
        node.signal(workers, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        node.signal(workers, signal.SIGCONT)

    async def stop_database(self, chance: random.Random) -> None:
        processes = self.postgres.primary.processes()
        self.nodes[0].signal(processes, signal.SIGSTOP)
        await asyncio.sleep(chance.uniform(1, 3))
        self.nodes[0].signal(processes, signal.SIGCONT)

    async def exhaust_pool(self, chance: random.Random) -> None:
        """Writers wait for locks that somebody holds, until no connection is left."""
        connection = await self._connect()
        try:
            async with connection.transaction():
                await connection.execute("SELECT FROM frontdesk.provider FOR UPDATE")
                await connection.execute("SELECT FROM frontdesk.patient FOR UPDATE")
                await asyncio.sleep(chance.uniform(2, 7))
        finally:
            await connection.close()

    async def exhaust_descriptors(self, chance: random.Random) -> None:
        """More connections than the workers of a node may have open files."""
        node = chance.choice(self.nodes)
        wanted = (asyncio.open_connection("127.0.0.1", node.port) for _ in range(OPEN_FILES * WORKERS + 50))
        opened = await asyncio.gather(*wanted, return_exceptions=True)
        await asyncio.sleep(chance.uniform(1, 3))
        for connection in opened:
            if not isinstance(connection, BaseException):
                connection[1].close()

    async def slow_disk(self, chance: random.Random) -> None:
        """Every commit waits a tenth of a second before it is flushed."""
        connection = await self._connect()
        try:
            for setting in ("commit_delay = 100000", "commit_siblings = 0"):
                await connection.execute(f"ALTER SYSTEM SET {setting}")
            await connection.execute("SELECT pg_reload_conf()")
            await asyncio.sleep(chance.uniform(2, 4))
            for setting in ("commit_delay", "commit_siblings"):
                await connection.execute(f"ALTER SYSTEM RESET {setting}")
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    async def cancel_statements(self, _chance: random.Random) -> None:
        """What the server does to a statement that has run for too long, to all that run."""
        await self._to_backends("pg_cancel_backend(pid)", "state = 'active'")

    async def end_sessions(self, _chance: random.Random) -> None:
        await self._to_backends("pg_terminate_backend(pid)", "random() < 0.3")

    async def _to_backends(self, act: str, which: str) -> None:
        connection = await self._connect()
        try:
            for _ in range(20):
                await connection.execute(f"SELECT {act} {_SERVICE_BACKENDS} AND {which}")
                await asyncio.sleep(0.05)
        finally:
            await connection.close()

    async def deadlocks(self, _chance: random.Random) -> None:
        """Locks patients before providers, while bookings lock them the other way round."""
        connection = await self._connect()
        try:
            for _ in range(15):
                with contextlib.suppress(asyncpg.DeadlockDetectedError):
                    async with connection.transaction():
                        await connection.execute("SELECT FROM frontdesk.patient FOR UPDATE")
                        await asyncio.sleep(0.03)
                        await connection.execute("SELECT FROM frontdesk.provider FOR UPDATE")
        finally:
            await connection.close()

    async def fail_over(self, _chance: random.Random) -> None:
        self.lost_memory = True
        await asyncio.to_thread(self.postgres.fail_over)

    async def rolling_restart(self, _chance: random.Random) -> None:
        for node in self.nodes:
            await asyncio.to_thread(node.restart, SOURCES)

    async def rolling_upgrade(self, previous: Path, chance: random.Random) -> None:
        """One node after the other runs the previous release, and then this one again."""
        for sources in (previous, SOURCES):
            for node in self.nodes:
                await asyncio.to_thread(node.restart, sources)
                await asyncio.sleep(chance.uniform(1, 3))

    async def fill_disk(self, chance: random.Random) -> None:
        self.lost_memory = True
        await asyncio.to_thread(self.postgres.fill_disk)
        await asyncio.sleep(chance.uniform(1, 3))
        await asyncio.to_thread(self.postgres.free_disk)

    async def harm_fhir_server(self, chance: random.Random) -> None:
        self.fhir.harm(random.Random(chance.random()))
        await asyncio.sleep(chance.uniform(2, 5))
        self.fhir.heal()

    async def move_clock(self, chance: random.Random) -> None:
        """A write to the FHIR server whose time seems to be over is settled as if it could not arrive any more: its
        clients wait, and nothing else fails meanwhile."""
        async with self.fhir.gate.closed():
            await asyncio.sleep(_STRAGGLERS)
            await self._set_clock(chance.choice(CLOCK_JUMPS))
            await asyncio.sleep(chance.uniform(1, 3))
            await self._set_clock(0)

    async def _set_clock(self, seconds: int) -> None:
        before = self.history.offsets[-1]
        least, most = min(before.least, seconds), max(before.most, seconds)
        self.history.offsets.append(Offset(time.monotonic_ns(), least, most))
        self.nodes[0].set_clock(seconds)
        await asyncio.sleep(CLOCK_LAG)
        self.history.offsets.append(Offset(time.monotonic_ns(), seconds, seconds))

    async def _connect(self) -> "asyncpg.Connection[asyncpg.Record]":
        return await asyncpg.connect(self.postgres.dsn("postgres"))
