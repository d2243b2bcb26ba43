"""Endpoints that fail, hang or were paused: noticed, spared, never in anybody's way, and nothing is lost."""

import asyncio
import socket
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.audit.trail import seal
from frontdesk.audit.verify import verify_chain
from frontdesk.housekeeping import prune_deliveries
from frontdesk.outbound.webhooks.deliveries import list_deliveries
from frontdesk.outbound.webhooks.endpoints import pause_endpoint, resume_endpoint
from tests.support.running import running
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver, receiving


async def test_an_endpoint_that_fails_for_a_day_is_paused_with_a_notice(
    desk: Desk, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint, _ = await desk.endpoint(receiver.url("/down"))
    receiver.status["/down"] = 500
    waiting = [await desk.happen("apt_1"), await desk.happen("apt_2")]
    began = desk.clock.now
    while (await desk.shown(endpoint)).paused_at is None:
        assert desk.clock.now - began < timedelta(days=3)
        await desk.deliver()
        desk.clock.advance(hours=1)
    paused = await desk.shown(endpoint)
    assert paused.pause_reason == "failing"
    assert paused.paused_at is not None
    assert paused.paused_at - began >= timedelta(days=1)
    assert desk.paused == [desk.practice_id]
    notices = [record for record in caplog.records if record.getMessage() == "webhook endpoint paused"]
    assert [record.__dict__["endpoint"] for record in notices] == [endpoint]
    [record] = await desk.rows("SELECT * FROM audit_record WHERE operation = 'pause_webhook'")
    assert (record["actor"], record["outcome"], record["subject_ids"]) == ("frontdesk", "failing", [endpoint])
    await seal(desk.database, desk.practice_id)
    assert (await verify_chain(desk.database, desk.practice_id, desk.clock.now)).violations == ()

    receiver.status.clear()
    desk.clock.advance(days=5)
    waiting.append(await desk.happen("apt_3"))
    assert await desk.deliver() == 0, "paused"
    await resume_endpoint(desk.database, endpoint, desk.clock.now)
    await desk.deliver()
    assert sorted(receiver.ids("/down")) == sorted(waiting), "nothing was lost"


async def test_an_endpoint_that_says_it_is_gone_is_paused_at_once(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    receiver.status["/hook"] = 410
    await desk.happen("apt_1")
    await desk.deliver()
    assert (await desk.shown(endpoint)).pause_reason == "gone"


async def test_a_paused_endpoint_gets_what_it_missed_in_order(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    await pause_endpoint(desk.database, endpoint, desk.clock.now)
    missed = [await desk.happen("apt_1"), await desk.happen("apt_1", "appointment.cancelled")]
    assert await desk.deliver() == 0
    assert (await desk.shown(endpoint)).pending == 2
    await resume_endpoint(desk.database, endpoint, desk.clock.now)
    await desk.deliver()
    assert receiver.ids() == missed


async def test_dead_endpoints_with_much_to_deliver_do_not_delay_others(desk: Desk, receiver: Receiver) -> None:
    other = await desk.another_practice()
    for path in ("/hangs", "/hangs-too", "/hangs-as-well"):
        receiver.hanging.add(path)
        await desk.endpoint(receiver.url(path))
    await desk.endpoint(receiver.url("/neighbour"))
    await other.endpoint(receiver.url("/other"))
    for number in range(40):
        await desk.happen(f"apt_{number}")
        await other.happen(f"apt_{number}")
    node = desk.node(timeout=3600, lease=timedelta(hours=2))  # who waits for an endpoint that hangs, waits for good
    async with running(node.step), asyncio.timeout(240):
        while len(receiver.ids("/neighbour")) < 40 or len(receiver.ids("/other")) < 40:
            await asyncio.sleep(0.02)
        hanging = [message for message in receiver.attempts if message.path in receiver.hanging]
        assert len(hanging) <= 12, "a few at a time"


async def test_slow_receivers_of_one_practice_leave_places_to_others(desk: Desk, receiver: Receiver) -> None:
    other = await desk.another_practice()
    await other.endpoint(receiver.url())
    async with receiving() as slow:
        slow.delay = 60
        for number in range(10):
            await desk.endpoint(slow.url(f"/{number}"))
            await desk.happen(f"apt_{number}")
        async with running(desk.node(timeout=90).step), asyncio.timeout(30):
            while slow.at_once < 16:
                await asyncio.sleep(0.02)
            for number in range(20):
                await other.happen(f"apt_{number}")
            while len(receiver.received) < 20:
                await asyncio.sleep(0.02)


async def test_names_that_hang_do_not_delay_other_practices(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await desk.another_practice()
    over, hanging, usual = threading.Event(), Counter[str](), socket.getaddrinfo

    def lookup(host: str, *given: Any, **more: Any) -> Any:
        if host.endswith(".example.com"):
            hanging[host] += 1
            over.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")
        return usual(host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    for number in range(10):
        await desk.endpoint(f"https://hangs-{number}.example.com/hook")
        await desk.happen(f"apt_{number}")
    await other.endpoint(receiver.url())
    node = desk.node(timeout=2)
    try:
        assert await desk.deliver(node) > 10
        assert len(hanging) >= 8, "their places are free, their lookups still hang"
        event = await other.happen("apt_1")
        await desk.deliver(node)
        assert receiver.ids() == [event]
        assert set(hanging.values()) == {1}, "a name takes one thread"
    finally:
        over.set()


async def test_an_endpoint_that_fails_is_tried_with_one_message_at_a_time(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    receiver.status["/hook"] = 503
    for number in range(20):
        await desk.happen(f"apt_{number}")
    await desk.deliver()
    after_first = len(receiver.attempts)
    assert after_first <= 4
    assert await desk.deliver() == 0, "it rests"
    desk.clock.advance(hours=2)
    assert await desk.deliver() == 1
    assert (await desk.shown(endpoint)).failing_since is not None


async def test_old_deliveries_are_forgotten_and_waiting_ones_are_not(desk: Desk, receiver: Receiver) -> None:
    delivered, _ = await desk.endpoint(receiver.url())
    paused, _ = await desk.endpoint(receiver.url("/paused"))
    await pause_endpoint(desk.database, paused, desk.clock.now)
    await desk.happen("apt_1")
    await desk.deliver()
    desk.clock.advance(days=31)
    assert await prune_deliveries(desk.database, desk.clock.now) == 1
    assert await list_deliveries(desk.database, delivered, None, 1) == []
    assert (await desk.shown(paused)).pending == 1
    assert await desk.rows("SELECT * FROM webhook_attempt") == []


@pytest.mark.one_server
async def test_looking_for_work_where_there_is_none_writes_nothing(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    await desk.happen("apt_1")
    await desk.deliver()
    [before] = await desk.rows("SELECT xmax::text AS turn FROM practice WHERE practice_id = $1", desk.practice_id)
    assert await desk.deliver() == 0
    [after] = await desk.rows("SELECT xmax::text AS turn FROM practice WHERE practice_id = $1", desk.practice_id)
    assert before == after
    assert before["turn"] != "0", "a turn shows here"
