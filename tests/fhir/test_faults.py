"""Every fault at every request of every write: the documented answer, and after healing exactly one execution.

The short list runs always, against a small server in memory; every combination runs in the heavier suite, against a
server that nobody here wrote.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.store.database import Database
from tests.fhir.door import FAULTS, REFUSED, Fault, Request
from tests.fhir.practice import Upstream, fhir_world, forgive, give, opened, settle
from tests.fhir.writes import WRITES, Scene, Write, nothing_is_left_over

# What may be answered when the fault hits this request of a write. A read breaks off before anything was executed; a
# slot that is held and given back was no booking; only the write itself can leave an open outcome.
READ = {(502, "upstream_unavailable")}
OPEN = {(502, "upstream_unavailable"), (409, "confirmation_incomplete")}

SLOW: tuple[Fault, ...] = ("delay", "drip", "hang")
CERTAINLY_NOT_EXECUTED = tuple(REFUSED)  # the server itself turned the request away
NOT_TO_BE_RETRIED = ("garbage", "unauthorized", "forbidden", "conflict")  # as the answer to a read
WAIT_TIMEOUT, SHORT_TIMEOUT = 30.0, 0.6  # seconds that all requests of a write may take together

QUICK: list[tuple[str, Fault]] = [("book", fault) for fault in ("late", "cut_after", "error_late", "conflict")]
QUICK_PROPOSED: list[tuple[str, Fault]] = [
    *(("book", fault) for fault in ("late", "cut_after", "error_late")),
    ("cancel", "cut_after"),
    ("reschedule", "cut_after"),
]
EVERY = [*((name, fault) for name in WRITES for fault in FAULTS), ("book", "error_late"), ("create", "error_late")]
MAX_REQUESTS = 30


def against_all(quick: list[Any], every: list[Any], quick_proposed: list[Any]) -> list[Any]:
    """Cases with the server that each runs against."""
    return [
        *(_case("fake", case) for case in quick),
        *(_case("proposing-batch", case) for case in quick_proposed),
        *(_case("medplum", case, pytest.mark.heavy) for case in every),
        *(_case("proposing", case, pytest.mark.heavy) for case in every),
    ]


def _case(server: str, case: tuple[Any, ...], *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(server, *case, id="-".join((server, *map(str, case))), marks=marks)


@pytest.fixture
async def scene(server: str, database: Database, tmp_path: Path) -> AsyncIterator[Scene]:
    async with opened(server) as door:
        upstream = Upstream(door)
        await upstream.seed(days=2)
        door.slow = 30
        async with fhir_world(database, tmp_path, door) as world:
            yield Scene(world, upstream, await world.client(), await world.client(grant="integration"))


@pytest.mark.parametrize(("server", "name", "fault"), against_all(QUICK, EVERY, QUICK_PROPOSED))
async def test_a_fault_at_any_request_leaves_exactly_one_execution(scene: Scene, name: str, fault: Fault) -> None:
    for point in range(MAX_REQUESTS):
        write = await WRITES[name](scene, point)
        token = await scene.challenged(write)
        scene.upstream.door.reset({point: fault})
        give(scene.world, SHORT_TIMEOUT if fault in SLOW else WAIT_TIMEOUT)
        answer = await scene.send(write, token)
        give(scene.world, WAIT_TIMEOUT)
        earlier, hit = scene.upstream.door.seen[:point], next(iter(scene.upstream.door.seen[point:]), None)
        if answer.status_code not in (200, 201):
            assert (answer.status_code, answer.json()["code"]) in _documented(earlier, hit, fault), (point, hit)
        elif hit is None:
            assert point >= 2
            return
        if answer.status_code == 502:
            assert fault in NOT_TO_BE_RETRIED or int(answer.headers["retry-after"]) >= 1
            assert not await write.happened() or fault in ("late", "error_late")
        await _heal(scene, write, token, answer, fault)
        await nothing_is_left_over(scene, write)
    raise AssertionError("the write never came through")


@pytest.mark.parametrize(
    ("server", "name", "mode"),
    against_all(
        [("book", "hang")],
        [(name, mode) for name in ("book", "cancel", "reschedule", "create") for mode in ("delay", "hang")],
        [("book", "delay")],
    ),
)
async def test_a_node_that_dies_in_the_middle_leaves_exactly_one_execution(
    scene: Scene, name: str, mode: Fault
) -> None:
    """The call ends at a request of its own, before or after that was executed, and nothing after it is done."""
    for point in range(MAX_REQUESTS):
        write = await WRITES[name](scene, point)
        token = await scene.challenged(write)
        scene.upstream.door.reset({point: mode})
        call = asyncio.create_task(scene.send(write, token))
        stuck = asyncio.create_task(scene.upstream.door.stuck.wait())
        await asyncio.wait({call, stuck}, return_when=asyncio.FIRST_COMPLETED)
        if not scene.upstream.door.stuck.is_set():
            stuck.cancel()
            assert (await call).status_code in (200, 201)
            assert point >= 3
            return
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        scene.upstream.door.reset()
        await settle(scene.world)
        await _resent(scene, write, token)
        await nothing_is_left_over(scene, write)
    raise AssertionError("the write never came through")


@pytest.mark.parametrize(("server", "seed"), against_all([], [(seed,) for seed in range(12)], []))
async def test_several_faults_at_once_leave_exactly_one_execution(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    write = await WRITES[chance.choice(list(WRITES))](scene, seed % 2)
    token = await scene.challenged(write)
    scene.upstream.door.reset({point: chance.choice(FAULTS) for point in chance.sample(range(12), 4)})
    give(scene.world, 1.0)
    for _ in range(4):
        answer = await scene.send(write, token)
        if answer.status_code not in (200, 201):
            assert (answer.status_code, answer.json()["code"]) in READ | OPEN
    await scene.upstream.door.quiet()
    scene.upstream.door.reset()
    give(scene.world, WAIT_TIMEOUT)
    forgive(scene.world)
    await settle(scene.world)
    await _resent(scene, write, token)
    await nothing_is_left_over(scene, write)


def _documented(earlier: list[Request], hit: Request | None, fault: Fault) -> set[tuple[int, str]]:
    written = any(each.is_write and "/Slot" not in each.parts[0][1] for each in earlier)
    if fault in SLOW and (hit is None or written):
        # Only a machine so slow that another request ran out of its short time.
        return READ | OPEN
    if hit is None:
        return set()
    if not hit.is_write:
        return OPEN if written else READ
    if "/Slot" in hit.parts[0][1]:
        return READ
    return READ if fault in CERTAINLY_NOT_EXECUTED or fault == "error_late" else OPEN


async def _heal(scene: Scene, write: Write, token: str, answer: httpx.Response, fault: Fault) -> None:
    """What a well-behaved caller does, once the server is well again."""
    await scene.upstream.door.quiet()
    scene.upstream.door.reset()
    forgive(scene.world)
    if answer.status_code == 502:
        again = await scene.send(write, token)  # the token is still valid
        if again.status_code not in (200, 201):
            # What a server does after it has said that it failed stands in the way until it is undone.
            allowed = {"slot_unavailable", "validation", "conflict"} if fault == "error_late" else set()
            assert again.json()["code"] in allowed, again.text
    elif answer.status_code == 409 and answer.json()["code"] == "confirmation_incomplete":
        again = await scene.send(write, token)  # and stays so, until somebody has looked
        assert again.json()["code"] == "confirmation_incomplete", again.text
    await settle(scene.world)
    resent = await _resent(scene, write, token)
    assert (await scene.send(write, token)).json() == resent.json()


async def _resent(scene: Scene, write: Write, token: str) -> httpx.Response:
    """The stored result, or the execution that had not come about."""
    resent = await scene.send(write, token)
    assert resent.status_code in (200, 201), resent.text
    return resent
