"""The primary hangs or is killed under load and its standby is promoted: writes go on, and no booking is lost."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.harness import Clinic, check_stored
from tests.nodes.clusters import Cluster
from tests.nodes.outages import MAX_OUTAGE, booking, outage
from tests.store.embedded_processes import wait_until


@dataclass
class Replicated:
    clinic: Clinic
    primary: Cluster
    standby: Cluster


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    with tempfile.TemporaryDirectory(prefix="fd-", dir="/dev/shm") as name:
        folder = Path(name)
        folder.chmod(0o755)
        primary, standby = Cluster(folder / "one"), Cluster(folder / "two")
        clinic = Clinic(tmp_path)
        try:
            primary.create()
            primary.start()
            standby.copy(primary)
            standby.start()
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.sql("SELECT pg_reload_conf()")
            wait_until(lambda: primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1")
            clinic.environment |= {
                "FRONTDESK_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}"
                "/postgres?target_session_attrs=read-write&sslmode=disable",
            }
            yield Replicated(clinic, primary, standby)
        finally:
            clinic.stop()
            primary.kill()
            standby.kill()


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [Cluster.hang, Cluster.kill])
async def test_writes_go_on_at_the_promoted_standby(replicated: Replicated, end: Callable[[Cluster], None]) -> None:
    clinic, primary, standby = replicated.clinic, replicated.primary, replicated.standby
    agent = clinic.prepare()  # the commands pass over the standby, which the address names first
    clinic.start()

    async def promote() -> None:
        end(primary)
        await asyncio.to_thread(standby.promote)
        standby.sql("ALTER SYSTEM RESET synchronous_standby_names")
        standby.sql("SELECT pg_reload_conf()")

    async with booking(clinic.url, agent) as ledger:
        seconds = await outage(ledger, promote)
    print(f"{end.__name__}: {seconds:.1f} s without writes; {len(ledger.booked)} bookings told")
    assert seconds <= MAX_OUTAGE
    await check_stored(standby.dsn, ledger)


@pytest.mark.heavy
def test_a_standby_alone_is_refused(replicated: Replicated) -> None:
    standby = replicated.standby.dsn
    environment = {**replicated.clinic.environment, "FRONTDESK_DATABASE_URL": standby}
    for command in (["doctor"], ["serve"], ["db", "migrate"], ["practice", "list"]):
        done = replicated.clinic.attempt(*command, environment=environment)
        assert done.returncode == 1, command
        assert "accepts no writes" in done.stdout + done.stderr, command
