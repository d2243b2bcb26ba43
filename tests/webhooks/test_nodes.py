"""Several nodes share the work; one that dies loses nothing; and never is an appointment's order broken."""

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from frontdesk.background import Background
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.deliveries import list_attempts
from frontdesk.outbound.webhooks.outcomes import Outcome, Outcomes
from frontdesk.outbound.webhooks.sender import Sender, Sent
from frontdesk.store.database import PartUnavailable
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Message, Receiver

ROOT = Path(__file__).parents[2]
EVENTS_OF_A_SUBJECT = 6


def in_order(messages: list[Message]) -> bool:
    """Whether the first arrivals of each subject came in the order of their ids."""
    seen: dict[str, list[int]] = {}
    for message in messages:
        number = int(message.id.removeprefix("evt_"))
        numbers = seen.setdefault(message.subject, [])
        if number not in numbers:
            numbers.append(number)
    return all(numbers == sorted(numbers) for numbers in seen.values())


async def happen_interleaved(desk: Desk, subjects: int) -> set[str]:
    return {
        await desk.happen(f"apt_{subject}")
        for _, subject in itertools.product(range(EVENTS_OF_A_SUBJECT), range(subjects))
    }


async def all_received(receiver: Receiver, wanted: set[str], seconds: float) -> None:
    began = time.monotonic()
    while not wanted <= set(receiver.ids()):
        assert time.monotonic() - began < seconds, f"{len(wanted - set(receiver.ids()))} are missing"
        await asyncio.sleep(0.05)


@contextlib.contextmanager
def node_process(dsn: str, lease: float) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.webhooks.node", dsn, str(lease)], cwd=ROOT, env={**os.environ}
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_two_nodes_share_the_work_and_keep_the_order_of_every_appointment(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    receiver.delay = 0.005
    receiver.refused_subjects["apt_3"] = 2
    wanted = await happen_interleaved(desk, 8)
    shares = [0, 0]

    async def work(index: int) -> None:
        # While one waits for its results, the other goes on moving the clock: no lease may run out by that.
        node = desk.node(timeout=30, lease=timedelta(days=1))
        while not wanted <= set(receiver.ids()):
            started = await node.start_due()
            shares[index] += len(started)
            await asyncio.gather(*started)
            while shares[index] and not min(shares):  # the other one is only slow to begin
                await asyncio.sleep(0.01)
            desk.clock.advance(seconds=0.1)

    async with asyncio.timeout(120):
        await asyncio.gather(work(0), work(1))
    assert in_order(receiver.attempts)
    assert len(receiver.received) == len(wanted), "each was received once"
    assert min(shares) > 0, shares


async def test_a_node_that_is_killed_while_sending_loses_nothing_and_breaks_no_order(
    desk: Desk, receiver: Receiver, database_dsn: str
) -> None:
    await desk.endpoint(receiver.url())
    wanted = await happen_interleaved(desk, 3)
    receiver.hanging.add("/hook")
    with node_process(database_dsn, lease=4) as first:
        await asyncio.wait_for(receiver.arrived.wait(), 30)
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert receiver.received == []
    receiver.hanging.clear()
    receiver.delay = 0.05
    with node_process(database_dsn, lease=4) as second:
        while len(receiver.received) < 4:
            await asyncio.sleep(0.01)
        second.send_signal(signal.SIGKILL)
        second.wait()
    with node_process(database_dsn, lease=4):
        await all_received(receiver, wanted, 120)
    assert in_order(receiver.received)
    assert in_order(receiver.attempts)


async def test_a_lease_that_has_run_out_is_taken_over_and_not_before(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    event = await desk.happen("apt_1")
    receiver.hanging.add("/hook")
    gone = desk.node(timeout=30)
    [task] = await gone.start_due()
    await asyncio.wait_for(receiver.arrived.wait(), 30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    receiver.hanging.clear()
    assert await desk.deliver() == 0
    desk.clock.advance(seconds=31)
    assert await desk.deliver() == 1
    assert receiver.ids() == [event]


async def test_a_node_whose_clock_is_wrong_leases_and_retries_by_the_clock_of_the_database(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Ahead":
            return cls.fromtimestamp(time.time() + 3600, tz)

    answered = asyncio.Event()

    async def send(_node: Deliverer, _practice_id: int, _row: Any) -> Sent:
        await answered.wait()
        return Sent(503, 1, "http_503")

    monkeypatch.setattr("frontdesk.outbound.webhooks.deliverer.datetime", Ahead)
    monkeypatch.setattr(Deliverer, "_send", send)
    endpoint, _ = await desk.endpoint("https://hooks.example.com/late")
    event = await desk.happen("apt_1")
    sender = Sender(allow_private=True, timeout_seconds=30)
    node = Deliverer(desk.database, desk.cipher, sender, desk.paused.append)
    until = "SELECT holder, extract(epoch FROM due_at - now())::float AS seconds FROM webhook_delivery"
    [sending] = await node.start_due()
    [leased] = await desk.rows(until)
    answered.set()
    await sending
    [waiting] = await desk.rows(until)
    assert leased["holder"]
    assert 0 < leased["seconds"] <= 30
    assert waiting["holder"] == ""
    assert waiting["seconds"] <= 6
    [attempt] = await list_attempts(desk.database, endpoint, int(event.removeprefix("evt_")))
    assert attempt.at <= desk.clock.now + timedelta(minutes=5)
    await sender.close()


async def test_attempts_that_end_together_are_recorded_in_one_statement(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = asyncio.Event()

    async def send(_node: Deliverer, _practice_id: int, row: Any) -> Sent:
        await answered.wait()
        return Sent(410, 1, "refused") if row.url.endswith("/gone") else Sent(200, 1, None)

    monkeypatch.setattr(Deliverer, "_send", send)
    for path in ("a", "b", "gone"):
        await desk.endpoint(f"https://hooks.example.com/{path}")
    for number in range(4):
        await desk.happen(f"apt_{number}")
    started = await desk.node().start_due()
    before = desk.database.statements
    answered.set()
    await asyncio.gather(*started)
    assert len(started) == 12
    assert desk.database.statements - before == 1
    assert len(await desk.rows("SELECT FROM webhook_delivery WHERE state = 'delivered'")) == 8
    assert len(await desk.rows("SELECT FROM webhook_attempt")) == 12
    assert desk.paused == [desk.practice_id]


async def test_nodes_that_look_at_the_same_moment_take_each_delivery_once(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    wanted = {await desk.happen(f"apt_{number}") for number in range(12)}
    nodes = [desk.node(timeout=30) for _ in range(4)]
    for _ in range(10):
        started = await asyncio.gather(*(node.start_due() for node in nodes))
        await asyncio.gather(*(task for tasks in started for task in tasks))
    assert len(receiver.received) == 12
    assert set(receiver.ids()) == wanted
    assert receiver.max_concurrent <= 4


async def test_a_node_ends_also_when_a_delivery_ends_at_the_same_moment(desk: Desk) -> None:
    node = desk.node()
    background = Background([node.step])
    background.start()
    async with asyncio.timeout(30):
        while not node._ended._waiters:
            await asyncio.sleep(0.01)
    node._ended.set()
    async with asyncio.timeout(10):
        await background.stop()


async def test_results_are_recorded_in_the_order_of_endpoints_so_that_two_nodes_do_not_deadlock() -> None:
    given: list[Any] = []

    async def fetch(_sql: str, *arguments: Any) -> list[Any]:
        given.append(arguments)
        return []

    outcomes = Outcomes(Mock(fetch=fetch), "holder", lambda _: None)
    ended = [Outcome(endpoint, event, 503, 1, "refused", None) for event, endpoint in enumerate("bab")]
    assert all(await asyncio.gather(*(outcomes.record(1, outcome) for outcome in ended)))
    [(_practice, _now, _holder, endpoints, events, *_)] = given
    assert (endpoints, events) == (["a", "b", "b"], [1, 0, 2])


async def test_a_lost_worker_of_the_database_does_not_hold_up_the_practices_of_others(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = await desk.another_practice()
    for practice in (desk, lost):
        await practice.endpoint(receiver.url())
        await practice.happen("apt_1")
    fetch = desk.database.fetch

    async def reaching_one_worker(sql: str, *args: Any) -> list[Any]:
        if "practices_with_webhooks" in sql or args[0] == lost.practice_id:
            raise PartUnavailable
        return await fetch(sql, *args)

    monkeypatch.setattr(desk.database, "fetch", reaching_one_worker)
    node = desk.node()
    assert await desk.deliver(node) == 1
    monkeypatch.undo()
    assert await desk.deliver(node) == 1
    assert len(receiver.received) == 2
