"""The recipe of `deploy/patroni` under a booking load: a switch-over and a primary that hangs lose no booking."""

import asyncio
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.harness import Clinic, check_stored
from tests.nodes.outages import booking, outage
from tests.nodes.patroni import Patroni, missing

MAX_OUTAGE = 30.0  # of three servers and the load on one machine; README.md says what to expect

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        bool(missing()),
        reason=f"not installed: {', '.join(missing())}"
        " (Debian: apt-get install patroni python3-etcd etcd-server haproxy postgresql)",
    ),
]


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    built = Clinic(tmp_path)
    yield built
    built.stop()


@pytest.fixture
def patroni(clinic: Clinic) -> Iterator[Patroni]:
    with tempfile.TemporaryDirectory(prefix="fd-", dir="/dev/shm") as name:
        folder = Path(name)
        folder.chmod(0o755)
        built = Patroni(folder)
        try:
            built.start(clinic.port)
            yield built
        finally:
            built.stop()


async def test_writes_go_on_after_a_switch_over_and_after_a_hang(clinic: Clinic, patroni: Patroni) -> None:
    clinic.environment["FRONTDESK_DATABASE_URL"] = patroni.dsn
    agent = clinic.prepare()
    clinic.start("--workers", "2")
    patroni.wait_for_service()
    async with booking(patroni.url, agent) as ledger:
        switched = await outage(ledger, lambda: asyncio.to_thread(patroni.switch_over))
        await asyncio.to_thread(patroni.wait_for_standby)
        hung = patroni.primary

        async def hang() -> None:
            hung.signal(signal.SIGSTOP)

        waited = await outage(ledger, hang)
        hung.signal(signal.SIGCONT)
        before = len(ledger.booked)
        while len(ledger.booked) < before + 20:  # the old primary comes back, as a standby
            await asyncio.sleep(0.1)
    print(f"switch-over: {switched:.1f} s, hang: {waited:.1f} s without writes; {len(ledger.booked)} bookings told")
    await check_stored(patroni.dsn, ledger)
    assert patroni.primary is not hung
    assert switched <= MAX_OUTAGE
    assert waited <= MAX_OUTAGE
