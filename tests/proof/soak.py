"""A steady load for minutes or hours, and whether memory, open files, tables, WAL, plans or latency drift."""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from statistics import median

import asyncpg

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from frontdesk.store.migrate import migrate
from tests.proof.soak_load import HISTORY, Load
from tests.security.real_server import RealServer, real_server
from tests.support.shared_database import SERVICE_ROLE, opened

WINDOWS = 12
_WARM_UP = 3  # windows in which caches fill
_MEGABYTE = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATE = """
SELECT sum(pg_table_size(relid))::bigint AS tables, sum(pg_indexes_size(relid))::bigint AS indexes,
       sum(n_live_tup)::bigint AS live, sum(n_dead_tup)::bigint AS dead,
       sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint AS read,
       (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal,
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usesysid IS NOT NULL) AS sessions
FROM pg_stat_user_tables
"""
_TABLES_MOST_READ = """
SELECT string_agg(format('%s %s', relname, rows), ', ' ORDER BY rows DESC)
FROM (SELECT relname, coalesce(seq_tup_read, 0) AS rows FROM pg_stat_user_tables ORDER BY 2 DESC LIMIT 5) AS scanned
"""


@dataclass(frozen=True)
class Sample:
    """What one window showed. Costs are per call."""

    calls: int
    p99_ms: float
    floor_ms: float  # p99 of a call that needs no database
    memory_mb: float  # of the supervisor and its workers
    files: int  # open in all of them
    sessions: int  # at the database
    row_bytes: float  # of tables, per row
    index_bytes: float  # of indexes, per row
    dead_share: float  # of all rows
    wal_bytes: float
    rows_read: float  # more of them: another plan


@dataclass(frozen=True)
class Bound:
    """How far the last third may be above the first: by a factor, and by an amount that does not count."""

    factor: float
    slack: float

    def allows(self, before: float, after: float) -> bool:
        return after <= before * self.factor + self.slack


BOUNDS = {
    "p99_ms": Bound(2.0, 50.0),
    "memory_mb": Bound(1.15, 24.0),
    "files": Bound(1.0, 40),  # the connections that the pools may open
    "sessions": Bound(1.0, 40),
    "row_bytes": Bound(1.3, 50.0),
    "index_bytes": Bound(1.5, 50.0),
    "dead_share": Bound(1.5, 0.2),
    "wal_bytes": Bound(1.5, 500.0),
    "rows_read": Bound(1.5, 500.0),  # a plan that scans the history reads 20,000; one that scans a short queue is fine
}
_P99_OVER_FLOOR = Bound(1.5, 0.0)
_DISTURBED_P99 = Bound(2.0, 500.0)  # what runs beside a soak disturbs whole windows of it


def drifts(samples: Sequence[Sample], bounds: Mapping[str, Bound] = BOUNDS) -> list[str]:
    """What grew from the first third of the samples to the last."""
    third = max(1, len(samples) // 3)

    def thirds(value: Callable[[Sample], float]) -> tuple[float, float]:
        return median(map(value, samples[:third])), median(map(value, samples[-third:]))

    found = []
    for name, bound in bounds.items():
        before, after = thirds(attrgetter(name))
        if not bound.allows(before, after):
            found.append(f"{name} grew from {before:,.1f} to {after:,.1f}")
    if _P99_OVER_FLOOR.allows(*thirds(lambda sample: sample.p99_ms / sample.floor_ms)):
        found = [drift for drift in found if not drift.startswith("p99_ms")]  # the whole machine became slower
    return found


class Observer:
    def __init__(self, server: RealServer, connection: asyncpg.Connection) -> None:
        self._server = server
        self._connection = connection
        self.pids: set[int] = set()

    async def state(self) -> asyncpg.Record:
        await self._connection.execute("SELECT pg_stat_clear_snapshot()")
        return await self._connection.fetchrow(_STATE)

    def processes(self) -> list[Path]:
        """The supervisor and its workers."""
        main = self._server.process.pid
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        self.pids |= {int(pid) for pid in children}
        return [Path("/proc", str(pid)) for pid in (main, *children)]

    async def window(self, load: Load, seconds: float) -> Sample:
        before = await self.state()
        latencies = await load.run(seconds)
        after, processes, calls = await self.state(), self.processes(), max(1, len(latencies))
        rows = max(1, after["live"])
        return Sample(
            calls=len(latencies),
            p99_ms=_p99_ms(latencies),
            floor_ms=_p99_ms(load.floor),
            memory_mb=sum(int((each / "statm").read_text().split()[1]) for each in processes) * _PAGE / _MEGABYTE,
            files=sum(len(list((each / "fd").iterdir())) for each in processes),
            sessions=after["sessions"],
            row_bytes=after["tables"] / rows,
            index_bytes=after["indexes"] / rows,
            dead_share=after["dead"] / (rows + after["dead"]),
            wal_bytes=(after["wal"] - before["wal"]) / calls,
            rows_read=(after["read"] - before["read"]) / calls,
        )


def _p99_ms(seconds: Sequence[float]) -> float:
    return sorted(seconds)[int(0.99 * (len(seconds) - 1))] * 1000 if seconds else 0.0


async def soak(minutes: float, *, beside_others: bool) -> tuple[list[Sample], list[str]]:
    """The samples after the warm-up, and what is wrong."""
    seconds = minutes * 60 / WINDOWS
    with tempfile.TemporaryDirectory(prefix="frontdesk-soak-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with _served(folder) as (server, connection):
            observer, load = Observer(server, connection), await Load.prepare(server)
            observer.processes()
            workers = set(observer.pids)
            samples = []
            for number in range(WINDOWS):
                sample = await observer.window(load, seconds)
                _tell(number, sample)
                samples.append(sample)
                os.truncate(server.log, 0)  # that of hours would fill the disk
            wrong = drifts(samples[_WARM_UP:], BOUNDS | ({"p99_ms": _DISTURBED_P99} if beside_others else {}))
            if any(drift.startswith("rows_read") for drift in wrong):
                wrong.append(f"rows read by scans: {await connection.fetchval(_TABLES_MOST_READ)}")
            if observer.pids != workers:
                wrong.append("a worker was replaced")
            wrong += [f"{count} times {answer}" for answer, count in load.unexpected.items()]
            return samples[_WARM_UP:], wrong


@contextlib.asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[tuple[RealServer, asyncpg.Connection]]:
    postgres = EmbeddedPostgres(folder / "postgres")
    postgres.start(timeout=240)
    try:
        dsn, owner_dsn = postgres.dsn(SERVICE_ROLE), postgres.dsn(OWNER_ROLE)
        await migrate(owner_dsn)
        async with opened(dsn) as database, real_server(database, dsn, owner_dsn, folder, workers=2) as server:
            connection = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk, public"})
            try:
                await connection.execute(HISTORY)
                yield server, connection
            finally:
                await connection.close()
    finally:
        postgres.stop_and_await_end()


def _tell(number: int, sample: Sample) -> None:
    names = [each.name for each in fields(Sample)]
    if number == 0:
        print("".join(f"{name:>12}" for name in ("window", *names)), flush=True)
    values = "".join(f"{getattr(sample, name):>12,.1f}" for name in names)
    print(f"{'warm-up' if number < _WARM_UP else number - _WARM_UP + 1:>12}{values}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--beside-others", action="store_true", help="allow what other suites take of the machine")
    given, began = parser.parse_args(), time.monotonic()
    samples, wrong = asyncio.run(soak(given.minutes, beside_others=given.beside_others))
    calls = sum(sample.calls for sample in samples)
    print(f"{calls:,} calls in {(time.monotonic() - began) / 60:.1f} minutes: {'; '.join(wrong) or 'nothing drifts'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
