"""What a soak calls a drift, and that it runs for longer than a token is valid."""

from dataclasses import replace
from itertools import repeat

import httpx
import pytest

from tests.proof import soak_load
from tests.proof.soak import BOUNDS, Sample, drifts
from tests.proof.soak_load import Actor

STEADY = Sample(
    calls=300, p99_ms=80.0, floor_ms=4.0, memory_mb=200.0, files=60, sessions=20, row_bytes=400.0, index_bytes=300.0,
    dead_share=0.1, wal_bytes=3000.0, rows_read=30.0,
)  # fmt: skip


def test_a_steady_run_and_one_slow_window_do_not_drift() -> None:
    assert drifts([STEADY] * 9) == []
    assert drifts([*[STEADY] * 8, replace(STEADY, p99_ms=5000.0)]) == []


def test_a_machine_that_becomes_slower_is_no_drift() -> None:
    slower = [replace(STEADY, p99_ms=80.0 * (1 + number), floor_ms=4.0 * (1 + number)) for number in range(9)]
    assert drifts(slower) == []


@pytest.mark.parametrize("name", BOUNDS)
def test_anything_that_grows_window_by_window_drifts(name: str) -> None:
    step = getattr(STEADY, name) / 2 + BOUNDS[name].slack / 4
    grown = [replace(STEADY, **{name: getattr(STEADY, name) + step * number}) for number in range(9)]
    assert [drift.split()[0] for drift in drifts(grown)] == [name]


async def test_a_token_is_renewed_with_the_secret_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak_load, "_RENEW_SECONDS", -1.0)
    seen: list[str | None] = []

    def issue(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(200, json={"access_token": f"token-{len(seen)}"})

    async with httpx.AsyncClient(base_url="http://desk", transport=httpx.MockTransport(issue)) as client:
        actor = Actor(client, "client", "secret", repeat(1))
        await actor.renew()
        await actor.renew()
        assert client.headers["Authorization"] == "Bearer token-2"
    assert seen == [None, None]
