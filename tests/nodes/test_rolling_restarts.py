"""Two nodes behind a load balancer are restarted one after the other under a booking load: no request fails."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.store.embedded.server import OWNER_ROLE
from tests.crash.harness import Clinic, check_stored
from tests.nodes.load import booking_load
from tests.nodes.proxy import DRAIN_SECONDS, Proxy

RESTARTS = int(os.environ.get("ROLLING_RESTARTS", "10"))
REQUESTS = int(os.environ.get("REQUESTS", "0"))  # at least
READS_PER_BOOKING = int(os.environ.get("READS_PER_BOOKING", "2"))


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Clinic]]:
    """Two servers on one database, which the test keeps up."""
    built = [Clinic(tmp_path), Clinic(tmp_path)]
    for node in built:
        node.environment |= {"FRONTDESK_DRAIN_SECONDS": DRAIN_SECONDS, "FRONTDESK_BASE_URL": "http://desk.example.org"}
    built[0].postgres.start()
    yield built
    for node in built:
        node.stop()
    built[0].postgres.stop()


@pytest.mark.heavy
@pytest.mark.timeout(7200)
async def test_rolling_restarts_fail_no_request(nodes: list[Clinic]) -> None:
    agent = nodes[0].prepare()
    for node in nodes:
        node.start()
    async with Proxy(*(node.port for node in nodes)).running() as proxy:
        for node in nodes:
            await proxy.until_ready(node.port)
        async with booking_load(f"http://127.0.0.1:{proxy.port}", agent, READS_PER_BOOKING) as load:
            restarts = 0
            while restarts < RESTARTS or load.requests < REQUESTS:
                node = nodes[restarts % 2]
                restarts += 1
                await asyncio.to_thread(node.stop)
                assert node.process is not None
                assert node.process.returncode == 0
                await asyncio.to_thread(node.start)
                await proxy.until_ready(node.port)
        print(f"{restarts} restarts, {load.requests} requests, {len(load.ledger.booked)} bookings", load.answers)
        assert load.failed == []
        assert proxy.failed == []
    await check_stored(nodes[0].postgres.dsn(OWNER_ROLE), load.ledger)
    assert len(load.ledger.booked) >= restarts, "the load was real"
    errors = [line for line in (nodes[0].folder / "server.log").read_text().splitlines() if '"level":"error"' in line]
    assert errors == []
