"""Reconcilers of several nodes and a FHIR server that comes and goes: every lost write is settled once, and truly."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from frontdesk.systems.fhir import records as fhir_records
from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.writing import reconciler, writes
from frontdesk.systems.fhir.writing.reconciler import SETTLE_AFTER, Reconciler
from frontdesk.systems.port import SystemUnavailable
from tests.proof.simulation.loop import Link, SimulatedLoop

TIMEOUT_SECONDS = 10.0
SECONDS_OF_TROUBLE = 120.0
# A write that cannot be found is given up then; a node that died holds its lease for five minutes.
MAX_SECONDS = 2 * TIMEOUT_SECONDS + SETTLE_AFTER.total_seconds() + 300 + 60


@dataclass
class Server:
    """The FHIR server: which writes it has executed. A request may arrive late, within what the timeout allows."""

    chance: Random
    up: bool = True

    def __post_init__(self) -> None:
        self.executed: set[str] = set()

    async def has(self, write: str) -> bool:
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        if not self.up:
            raise SystemUnavailable
        return write in self.executed


@dataclass
class Kept:
    """The unsettled writes of a practice, and how each was settled."""

    link: Link
    rows: dict[str, PendingWrite]
    due: dict[str, datetime]
    settled: dict[str, str]

    async def fetch(self, _sql: str, *_given: Any) -> list[dict[str, int]]:
        return await self.link.read(lambda: [{"practice_id": 1}])


class SimulatedRecords:
    """What the functions for unsettled writes do, as a reader of their text would do it by hand."""

    def __init__(self, kept: Kept, practice_id: int) -> None:
        self._kept = kept
        self.practice_id = practice_id

    async def lease_writes(self, now: datetime, lease: timedelta) -> list[PendingWrite]:
        def lease_writes() -> list[PendingWrite]:
            kept, holder = self._kept, f"holder-{self._kept.link._chance.random()}"
            due = sorted((write for write in kept.rows if kept.due[write] <= now), key=lambda write: kept.due[write])
            for write in due[:4]:
                kept.rows[write] = replace(kept.rows[write], holder=holder)
                kept.due[write] = now + lease
            return [kept.rows[write] for write in due[:4]]

        return await self._kept.link.read(lease_writes)

    async def defer(self, write: PendingWrite, _now: datetime, due: datetime) -> None:
        def defer() -> None:
            found = self._kept.rows.get(write.id)
            if found is not None and found.holder == write.holder:
                self._kept.rows[write.id] = replace(found, holder="", attempts=found.attempts + 1)
                self._kept.due[write.id] = due

        await self._kept.link.write(defer)

    async def postpone(self, holder: str, due: datetime) -> None:
        def postpone() -> None:
            for write, row in self._kept.rows.items():
                if row.holder in ("", holder):
                    self._kept.due[write] = due if row.holder == holder else max(self._kept.due[write], due)
                    self._kept.rows[write] = replace(row, holder="")

        await self._kept.link.write(postpone)

    async def retry_now(self, now: datetime) -> None:
        def retry_now() -> None:
            for write, row in self._kept.rows.items():
                if row.holder == "":
                    self._kept.due[write] = min(self._kept.due[write], now)

        await self._kept.link.write(retry_now)

    async def waiting(self) -> int:
        return await self._kept.link.read(lambda: len(self._kept.rows))

    async def finish(self, write: PendingWrite, ending: WriteOutcome, *_rest: Any) -> dict[str, Any] | None:
        def finish() -> dict[str, Any] | None:
            found = self._kept.rows.get(write.id)
            if found is None or found.holder != write.holder:
                return None
            assert write.id not in self._kept.settled, "settled twice"
            self._kept.settled[write.id] = ending.outcome
            del self._kept.rows[write.id]
            return {}

        return await self._kept.link.write(finish)


class SimulatedWriter:
    def __init__(self, upstream: Any, _practice: Any, _deadline: Any, write: PendingWrite, _asked: None) -> None:
        self._server: Server = upstream.server
        self._write = write
        self.releases: list[Any] = []

    async def settle(self, _now: datetime, *, final: bool) -> WriteOutcome | None:
        if await self._server.has(self._write.id):
            return WriteOutcome("executed")
        return WriteOutcome(writes.UNAVAILABLE) if final else None


async def reconciliation(chance: Random) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    server, link = Server(chance), Link(chance)
    kept = Kept(link, {}, {}, {})
    upstream = SimpleNamespace(
        settings=SimpleNamespace(timeout_seconds=TIMEOUT_SECONDS), server=server,
        records=SimulatedRecords(kept, 1), deadline=lambda _seconds: None,
    )  # fmt: skip

    async def find(_practice_id: int) -> Any:
        return upstream, None

    async def lost_write(name: str) -> None:
        """A call that ended before it knew: its request arrives now, late or never."""
        await asyncio.sleep(chance.uniform(0, SECONDS_OF_TROUBLE))
        kept.rows[name] = PendingWrite(name, "", "", "executing", "book", {}, loop.wall())
        kept.due[name] = loop.wall() + timedelta(seconds=chance.uniform(0, 20))
        if chance.random() < 0.6:
            await asyncio.sleep(chance.uniform(0, TIMEOUT_SECONDS + SETTLE_AFTER.total_seconds()))
            server.executed.add(name)

    async def outages() -> None:
        while True:
            await asyncio.sleep(chance.uniform(1, 60))
            server.up = not server.up

    async def node() -> None:
        """Works until it is killed, and is then replaced."""
        while True:
            running = Reconciler(kept, find, loop.wall, lambda _: None)  # type: ignore[arg-type]
            nodes.append(running)
            lives_until = loop.time() + chance.choice((20.0, 100.0, 1e9))
            while loop.time() < lives_until:
                await asyncio.gather(running.start_settling(), return_exceptions=True)
                await asyncio.sleep(2)
            await running.close()
            nodes.remove(running)

    nodes: list[Reconciler] = []
    link.broken = chance.choice((0.0, 0.0, 0.1))
    names = [f"write-{number}" for number in range(chance.randrange(1, 12))]
    with _simulated(loop, chance):
        tasks = [asyncio.create_task(node()) for _ in range(chance.randrange(1, 4))]
        trouble = asyncio.create_task(outages())
        arriving = asyncio.gather(*map(lost_write, names))
        await asyncio.sleep(SECONDS_OF_TROUBLE)
        trouble.cancel()
        server.up, link.broken = True, 0.0
        for each in nodes:
            each.recovered(1)
        await arriving
        async with asyncio.timeout(MAX_SECONDS):
            while kept.rows:
                await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for name in names:
        truth = "executed" if name in server.executed else writes.UNAVAILABLE
        assert kept.settled[name] == truth, f"{name}: settled as {kept.settled[name]}, was {truth}"


@contextmanager
def _simulated(loop: SimulatedLoop, chance: Random) -> Iterator[None]:
    with (
        mock.patch.object(fhir_records, "Records", SimulatedRecords),
        mock.patch.object(writes, "Writer", SimulatedWriter),
        mock.patch.object(reconciler, "time", SimpleNamespace(monotonic=loop.time)),
        mock.patch.object(reconciler, "random", chance),
    ):
        yield
