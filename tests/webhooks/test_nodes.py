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
from pathlib import Path

from frontdesk.background import Background
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
        node = desk.node(timeout=30)
        while not wanted <= set(receiver.ids()):
            started = await node.start_due()
            shares[index] += len(started)
            await asyncio.gather(*started)
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


async def test_nodes_that_look_at_the_same_moment_take_each_delivery_once(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    wanted = {await desk.happen(f"apt_{number}") for number in range(12)}
    nodes = [desk.node(timeout=30) for _ in range(4)]
    for _ in range(10):
        started = await asyncio.gather(*(node.start_due() for node in nodes))
        await asyncio.gather(*(task for tasks in started for task in tasks))
    assert len(receiver.received) == 12
    assert set(receiver.ids()) == wanted
    assert receiver.most_at_once <= 4


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
