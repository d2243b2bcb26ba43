"""Fair turns: a practice that sends many calls at once delays neither other practices nor answers from the cache."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.caller import Caller
from frontdesk.app import build_app
from frontdesk.domain.errors import Problem
from frontdesk.engine import fair_limiter
from frontdesk.engine.fair_limiter import FairLimiter
from frontdesk.systems.native import NativeSystem
from tests.support.world import MONDAY, World


def caller(practice_id: int, client_id: str = "fd_one") -> Caller:
    return Caller(client_id, practice_id, "slug", frozenset(), "agent", 1)


class Calls:
    """Calls that take a turn and keep it until they are told to end; `started` is their order."""

    def __init__(self, at_once: int, per_practice: int, *, yields: bool = False) -> None:
        self.limiter = FairLimiter(at_once, per_practice, yields=yields)
        self.started: list[str] = []
        self.running: dict[str, asyncio.Event] = {}

    async def _work(self, name: str, who: Caller) -> None:
        turn = await self.limiter.acquire(who)
        try:
            self.started.append(name)
            self.running[name] = asyncio.Event()
            await self.running[name].wait()
        finally:
            self.limiter.release(who, turn)

    async def begin(self, name: str, practice_id: int, client_id: str = "fd_one") -> asyncio.Task[None]:
        task = asyncio.create_task(self._work(name, caller(practice_id, client_id)))
        await asyncio.sleep(0)
        return task

    async def end(self, name: str) -> None:
        self.running.pop(name).set()
        for _ in range(3):
            await asyncio.sleep(0)

    async def end_all(self) -> None:
        while self.running:
            await self.end(next(iter(self.running)))


async def test_a_practice_has_its_share_and_the_others_theirs() -> None:
    calls = Calls(at_once=4, per_practice=2)
    for n in range(5):
        await calls.begin(f"a{n}", 1)
    await calls.begin("b0", 2)
    assert calls.started == ["a0", "a1", "b0"], "two of the noisy practice, and the other one at once"
    await calls.end("a0")
    assert calls.started == ["a0", "a1", "b0", "a2"]
    await calls.end_all()
    assert calls.started == ["a0", "a1", "b0", "a2", "a3", "a4"]
    assert calls.limiter._free == 4
    assert not calls.limiter._running
    assert not calls.limiter._waiting


async def test_practices_take_turns_and_so_do_the_clients_of_a_practice() -> None:
    calls = Calls(at_once=1, per_practice=1)
    await calls.begin("first", 1)
    for n in range(3):
        await calls.begin(f"a-loud-{n}", 1, "fd_loud")
    await calls.begin("a-quiet", 1, "fd_quiet")
    for n in range(2):
        await calls.begin(f"b-{n}", 2)
    await calls.end_all()
    assert calls.started == ["first", "a-loud-0", "b-0", "a-quiet", "b-1", "a-loud-1", "a-loud-2"]


async def test_a_practice_has_one_turn_at_a_time_and_rests_while_another_is_active(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls(at_once=4, per_practice=3, yields=True)
    rests: list[tuple[float, Callable[[], None]]] = []
    now, loop = 1000.0, asyncio.get_running_loop()

    def call_later(seconds: float, act: Callable[..., None], *about: Any) -> asyncio.TimerHandle | None:
        if act is fair_limiter._expire:
            return loop.call_later(seconds, act, *about)
        rests.append((seconds, partial(act, *about)))
        return None

    monkeypatch.setattr(fair_limiter.asyncio, "get_running_loop", lambda: clock)
    clock = SimpleNamespace(time=lambda: now, create_future=loop.create_future, call_later=call_later)
    for n in range(9):
        await calls.begin(f"a{n}", 1)
    calls.limiter.mark_active(caller(1))
    await calls.end("a0")
    assert list(calls.running) == ["a1", "a2", "a3"], "its own answers from the cache do not count"
    calls.limiter.mark_active(caller(2))
    now += 0.04
    for name in ("a1", "a2", "a3"):
        await calls.end(name)
    assert not calls.running
    assert [seconds for seconds, _ in rests] == pytest.approx([0.04] * 3)
    await calls.begin("b0", 2)
    assert list(calls.running) == ["b0"], "the other practice does not wait for the end of the rest"
    rests.pop()[1]()
    await asyncio.sleep(0)
    assert list(calls.running) == ["b0", "a4"]
    now += 3600.0
    await calls.end("a4")
    assert list(calls.running) == ["b0", "a5", "a6", "a7"], "nobody else is active any more, and it does not rest"
    calls.limiter.mark_active(caller(2))
    now += 0.5
    await calls.end("a5")
    assert rests[-1][0] == fair_limiter._MAX_REST
    now += 3600.0
    rests[-1][1]()
    await calls.end_all()
    assert (calls.limiter._free, calls.limiter._waiting, calls.limiter._resting) == (4, {}, set())
    calls.limiter.mark_active(caller(2))
    await calls.begin("a9", 1)
    await calls.end("a9")
    assert not calls.limiter._resting, "a practice that sends one call after the other does not rest"


async def test_a_call_that_gives_up_loses_nobodys_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(at_once=1, per_practice=1)
    await calls.begin("first", 1)
    impatient = await calls.begin("impatient", 1)
    unlucky = await calls.begin("unlucky", 2)
    await calls.begin("patient", 2)
    impatient.cancel()
    await asyncio.sleep(0)
    calls.running["first"].set()
    await asyncio.sleep(0)  # the turn is handed to the unlucky one ...
    unlucky.cancel()  # ... before it could begin
    for _ in range(4):
        await asyncio.sleep(0)
    assert calls.started == ["first", "patient"]
    monkeypatch.setattr(fair_limiter, "WAIT_SECONDS", 0)
    with pytest.raises(Problem) as raised:
        await calls.limiter.acquire(caller(3))
    assert (raised.value.code, raised.value.retry_after) == ("upstream_unavailable", 2)
    await calls.end("patient")
    assert calls.limiter._free == 1


Search = Callable[..., Awaitable[httpx.Response]]


def searches(client: httpx.AsyncClient) -> Search:
    async def search(day: int) -> httpx.Response:
        date = MONDAY.replace(day=MONDAY.day + day).isoformat()
        ids = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101}
        return await client.get("/api/slots", params={**ids, "from": date, "to": date})

    return search


async def test_cold_searches_of_one_practice_hold_up_no_answers_from_the_cache(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long it takes until the burst, the other is active.
    monkeypatch.setattr(fair_limiter, "_CROWDED_SECONDS", 60)
    monkeypatch.setattr(fair_limiter, "WAIT_SECONDS", 60)
    noisy, quiet = [searches(await world.client(slug)) for slug in ("harbor", "other")]
    for search, day in ((noisy, 0), (quiet, 3)):
        assert (await search(day)).status_code == 200
    blocked, entered, find_slots = asyncio.Event(), [], NativeSystem.find_slots

    async def slow(self: NativeSystem, *args: Any, **options: Any) -> Any:
        entered.append(self._practice_id)
        if self._practice_id == 1:
            await blocked.wait()
        return await find_slots(self, *args, **options)

    monkeypatch.setattr(NativeSystem, "find_slots", slow)
    burst = [asyncio.create_task(noisy(day)) for day in range(1, 11)]
    while not entered.count(1):
        await asyncio.sleep(0.001)
    assert (await noisy(0)).status_code == 200, "from the cache"
    assert (await quiet(3)).status_code == 200, "from the cache"
    assert entered.count(1) == 1, "one at a time beside another practice"
    blocked.set()
    assert {answer.status_code for answer in await asyncio.gather(*burst)} == {200}
    assert entered.count(1) == 10


async def test_callers_that_wait_for_a_turn_do_not_work_the_same_answer_out_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_limiter, "WAIT_SECONDS", 60)
    search = searches(await world.client())
    entered, find_slots = [], NativeSystem.find_slots

    waiting, all_arrived = world.service.engine.search_limiter._waiting, asyncio.Event()

    def arrived() -> int:
        return len(entered) + sum(len(calls) for clients in waiting.values() for calls in clients.values())

    async def counted(self: NativeSystem, *args: Any, **options: Any) -> Any:
        entered.append(self._practice_id)
        async with asyncio.timeout(30):
            while not all_arrived.is_set():  # a late caller would find a free turn, too
                await asyncio.sleep(0.01)
                if arrived() == 40:
                    all_arrived.set()
        return await find_slots(self, *args, **options)

    monkeypatch.setattr(NativeSystem, "find_slots", counted)
    answers = await asyncio.gather(*(search(0) for _ in range(40)))
    assert {answer.content for answer in answers} == {answers[0].content}
    assert answers[0].status_code == 200
    assert len(entered) <= 16, "only the callers that found a free turn"


async def test_calls_of_a_remote_system_take_no_turn(world: World) -> None:
    client = await world.client()
    engine = world.service.engine
    full = FairLimiter(at_once=0, per_practice=0)

    async def remote(who: Caller, *_: Any) -> Any:
        return replace(await engine.systems(who), remote=True)

    service = replace(world.service, engine=replace(engine, systems=remote, limiter=full, search_limiter=full))
    transport = httpx.ASGITransport(app=build_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=client.headers) as other:
        assert (await other.get("/api/practice")).status_code == 200
