"""Background work: failing steps are logged, retried and reported; a failing practice does not stop the others."""

import asyncio
import logging
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import AsyncMock

import asyncpg
import httpx
import pytest

from frontdesk import background as background_module
from frontdesk.app import build_app, build_background, build_service
from frontdesk.background import Background, Step
from frontdesk.settings import Settings
from frontdesk.store.database import Database, DatabaseUnavailable, PartUnavailable
from frontdesk.store.practice_work import for_each_practice
from tests.support.running import running
from tests.support.world import World, patient_id

METRICS_TOKEN = "a token for metrics only"


def _step_names() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), base_url="http://test", metrics_token=METRICS_TOKEN)
        return [step.name for step in build_background(build_service(settings, Database("postgresql://"))).steps]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(background_module, "MAX_PAUSE", 0.05)


async def _until(background: Background, name: str, failures: int) -> None:
    async with asyncio.timeout(30):
        while background.states[name].failures < failures:
            await asyncio.sleep(0.005)


async def _until_succeeded(background: Background, name: str) -> None:
    async with asyncio.timeout(30):
        while not background.states[name].succeeded_at:
            await asyncio.sleep(0.005)


def _failures(caplog: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if getattr(record, "step", None) == name]


def test_steps_have_names_of_their_own() -> None:
    names = _step_names()
    assert len(names) == len(set(names)) > 10


@pytest.mark.parametrize("name", _step_names())
@pytest.mark.usefixtures("quick")
async def test_a_step_that_fails_once_is_logged_and_recovers(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    settings = world.service.settings.model_copy(update={"metrics_token": METRICS_TOKEN})
    service = build_service(settings, world.database, world.clock)
    await service.ring.load()
    steps = {step.name: step for step in build_background(service).steps}
    step, runs = steps[name], 0

    async def fails_once() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise RuntimeError("Ada Lovelace")
        await step.run()

    if step.wake is not None:
        step.wake.set()
    async with running(replace(step, run=fails_once, every=step.every and 0.01)) as background:
        await _until_succeeded(background, name)
        assert background.states[name].failures == 0
    assert runs >= 2
    [failure] = _failures(caplog, name)
    assert failure.levelno == logging.ERROR
    assert failure.exc_info
    assert failure.exc_info[0] is RuntimeError
    assert "Ada" not in failure.getMessage()


@pytest.mark.usefixtures("quick")
async def test_a_step_that_goes_on_failing_backs_off_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[float] = []

    async def fail() -> None:
        runs.append(time.monotonic())
        raise RuntimeError

    async with running(Step("broken", fail, every=0.0)) as background:
        await _until(background, "broken", 6)
    waits = [later - earlier for earlier, later in pairwise(runs)]
    assert all(wait >= least for wait, least in zip(waits, (0.01, 0.02, 0.04, 0.05, 0.05), strict=False))
    assert len(_failures(caplog, "broken")) == 3, "after 1, 2 and 4 failures"


@pytest.mark.usefixtures("quick")
async def test_a_step_whose_own_work_was_cancelled_goes_on() -> None:
    runs = 0

    async def wait_for_cancelled_work() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            work = asyncio.create_task(asyncio.sleep(60))
            work.cancel()
            await work

    async with running(Step("cancelled", wait_for_cancelled_work, every=0.01)) as background:
        await _until_succeeded(background, "cancelled")


async def test_a_step_is_woken_and_pauses_between_runs() -> None:
    wake, runs = asyncio.Event(), []

    async def note() -> None:
        runs.append(time.monotonic())
        wake.set()

    wake.set()
    async with running(Step("woken", note, wake=wake, pause=0.05)), asyncio.timeout(30):
        while len(runs) < 3:
            await asyncio.sleep(0.01)
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(runs))


async def test_stopping_interrupts_a_run_and_closes_every_step(caplog: pytest.LogCaptureFixture) -> None:
    began, closed = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        began.set()
        await asyncio.Event().wait()

    async def fail() -> None:
        raise RuntimeError

    async def close() -> None:
        closed.set()

    async with running(Step("broken", fail, every=60, close=fail), Step("hanging", hang, every=0, close=close)) as both:
        await began.wait()
        assert both.states["hanging"].running
    assert closed.is_set()
    assert len(_failures(caplog, "broken")) == 1


@pytest.mark.usefixtures("quick")
async def test_readiness_names_steps_that_go_on_failing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = True

    async def work() -> None:
        if broken:
            raise RuntimeError("a secret")

    async with running(Step("sealing", work, every=0.01), Step("idle", work, every=60)) as background:
        app = build_app(world.service, background=background)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await _until(background, "sealing", 3)
            assert (await client.get("/readyz")).json() == {"status": "ready"}, "not for long yet"
            monkeypatch.setattr(background_module, "FAILING_SECONDS", 0.0)
            answer = await client.get("/readyz")
            assert answer.status_code == 200, "calls are still answered"
            assert answer.json() == {"status": "degraded", "failing": ["sealing"]}
            broken = False
            await _until_succeeded(background, "sealing")
            assert (await client.get("/readyz")).json() == {"status": "ready"}
            app.on_drain()
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()) == (503, {"status": "stopping"})
            assert (await client.get("/healthz")).status_code == 200


@pytest.mark.usefixtures("quick")
async def test_the_state_of_steps_is_in_the_metrics(world: World) -> None:
    settings = world.service.settings.model_copy(update={"metrics_token": METRICS_TOKEN})
    service = build_service(settings, world.database, world.clock)
    background = build_background(service)
    background.states["webhooks"].failures = 7
    background.states["metrics"].succeeded_at = 1_700_000_000.0
    transport = httpx.ASGITransport(app=build_app(service, background=background))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        text = (await client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})).text
    assert 'frontdesk_background_failures{step="webhooks"} 7.0' in text
    assert 'frontdesk_background_running{step="webhooks"} 0.0' in text
    assert 'frontdesk_background_success_timestamp_seconds{step="metrics"} 1.7e+09' in text


async def _unsealed(owner: asyncpg.Connection) -> list[int]:
    rows = await owner.fetch("SELECT DISTINCT practice_id FROM audit_unsealed ORDER BY practice_id")
    return [row["practice_id"] for row in rows]


async def test_a_broken_audit_head_leaves_other_practices_sealed(
    world: World, owner: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    audit = world.service.engine.audit
    harbor, other = await world.client("harbor"), await world.client("other")
    await patient_id(harbor)
    await audit.seal_pending()
    await owner.execute("ALTER TABLE audit_head DISABLE TRIGGER audit_head_forward")
    assert await owner.execute("UPDATE audit_head SET sequence = 0 WHERE practice_id = 1") == "UPDATE 1"
    for _ in range(3):
        await patient_id(harbor)
        await patient_id(other)
        await audit.seal_due()
    assert await _unsealed(owner) == [1]
    [failure] = [record for record in caplog.records if getattr(record, "practiceId", None) == 1]
    assert failure.getMessage() == "audit sealing failed"
    await owner.execute(
        """UPDATE audit_head h SET (sequence, hash) = (SELECT s.sequence, s.hash FROM audit_seal s
           WHERE s.practice_id = 1 ORDER BY s.sequence DESC LIMIT 1) WHERE h.practice_id = 1"""
    )
    await audit.find_unsealed()
    await audit.seal_pending()
    assert await _unsealed(owner) == []


async def test_a_practice_that_cannot_be_reached_does_not_stop_the_others() -> None:
    done: set[int] = set()

    async def work(practice_id: int) -> None:
        if practice_id == 1:
            raise DatabaseUnavailable
        done.add(practice_id)

    assert await for_each_practice("work", range(1, 6), work) == {1}
    assert done == {2, 3, 4, 5}


async def test_the_practices_of_a_lost_worker_do_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done: set[int] = set()

    async def work(practice_id: int) -> None:
        if practice_id < 20:
            raise PartUnavailable
        done.add(practice_id)

    assert await for_each_practice("work", range(22), work) == set(range(20))
    assert done == {20, 21}
    assert caplog.messages == ["work failed for 20 practices of a lost worker of the database"]


async def test_records_are_sealed_while_a_worker_is_lost(
    world: World, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = world.service.engine.audit
    await patient_id(await world.client("harbor"))
    monkeypatch.setattr(audit, "find_unsealed", AsyncMock(side_effect=PartUnavailable))
    await audit.seal_due()
    assert await _unsealed(owner) == []
    assert audit.find_unsealed.await_count == 1


@pytest.mark.parametrize(("error", "practices", "tried"), [
    (DatabaseUnavailable, 1, 1), (DatabaseUnavailable, 9, 3), (RuntimeError, 9, 9),
])  # fmt: skip
async def test_what_fails_for_every_practice_fails_the_step(error: type[Exception], practices: int, tried: int) -> None:
    seen = []

    async def work(practice_id: int) -> None:
        seen.append(practice_id)
        raise error

    with pytest.raises(error):
        await for_each_practice("work", range(practices), work)
    assert len(seen) == tried


async def test_one_practice_with_an_unexpected_error_does_not_fail_the_step() -> None:
    async def work(_practice_id: int) -> None:
        raise RuntimeError

    assert await for_each_practice("work", [7], work) == {7}
