"""kill -9 under load: no acknowledged booking is lost, none is doubled, every open question has an answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.harness import Clinic, check, run_crashes


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    built = Clinic(tmp_path)
    yield built
    built.stop()


@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_many_kills_lose_nothing(clinic: Clinic) -> None:
    kills = 50
    agent = clinic.prepare()
    clinic.start()
    ledger = await run_crashes(clinic, agent, kills, seed=2)
    await check(clinic, ledger)
    assert len(ledger.booked) >= kills, "the load was real"
    verified = clinic.command("audit", "verify")
    assert verified["whole"] is True
