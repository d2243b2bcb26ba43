"""Events are kept for thirty days, and for longer where an endpoint still needs them; no outbox grows forever."""

import asyncio

import pytest

from frontdesk.housekeeping import prune_deliveries, prune_events
from frontdesk.outbound.webhooks import deliverer
from frontdesk.outbound.webhooks.endpoints import pause_endpoint, resume_endpoint
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver


async def kept(desk: Desk) -> list[str]:
    return [f"evt_{row['event_id']}" for row in await desk.rows("SELECT event_id FROM outbox ORDER BY event_id")]


async def forget(desk: Desk, limit: int = 1000) -> int:
    return await prune_events(desk.database, desk.clock.now, limit)


async def test_events_that_nobody_listens_to_go_after_thirty_days(desk: Desk) -> None:
    await desk.happen("apt_1")
    desk.clock.advance(days=29)
    young = await desk.happen("apt_2")
    assert await forget(desk) == 0
    desk.clock.advance(days=2)
    assert await forget(desk) == 1
    assert await kept(desk) == [young]


async def test_a_delivered_event_goes_when_its_delivery_is_forgotten_and_not_before(
    desk: Desk, receiver: Receiver
) -> None:
    await desk.endpoint(receiver.url())
    event = await desk.happen("apt_1")
    await desk.deliver()
    desk.clock.advance(days=31)
    assert await forget(desk) == 0, "its delivery can still be looked at and replayed"
    assert await kept(desk) == [event]
    await prune_deliveries(desk.database, desk.clock.now)
    assert await forget(desk) == 1
    assert await kept(desk) == []


async def test_what_waits_for_a_paused_endpoint_stays_and_arrives(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    await pause_endpoint(desk.database, endpoint, desk.clock.now)
    missed = await desk.happen("apt_1")
    assert await desk.deliver() == 0
    desk.clock.advance(days=400)
    await prune_deliveries(desk.database, desk.clock.now)
    assert await forget(desk) == 0
    await resume_endpoint(desk.database, endpoint, desk.clock.now)
    await desk.deliver()
    assert receiver.ids() == [missed]


async def test_an_event_that_has_not_been_handed_over_stays(desk: Desk, receiver: Receiver) -> None:
    before = await desk.happen("apt_0")
    await desk.endpoint(receiver.url())
    event = await desk.happen("apt_1")
    desk.clock.advance(days=31)
    assert await forget(desk) == 1, "what was there before the endpoint is nobody's"
    assert await kept(desk) == [event]
    assert before not in await kept(desk)
    assert await desk.deliver() == 1
    assert receiver.ids() == [event]


async def test_a_run_removes_at_most_so_many_over_all_practices(desk: Desk) -> None:
    other = await desk.another_practice()
    for number in range(3):
        await desk.happen(f"apt_{number}")
        await other.happen(f"apt_{number}")
    desk.clock.advance(days=31)
    assert await forget(desk, limit=4) == 4
    assert len(await kept(desk)) + len(await kept(other)) == 2
    assert await forget(desk, limit=4) == 2


async def test_an_endpoint_added_to_an_emptied_outbox_hears_of_what_happens_next(
    desk: Desk, receiver: Receiver
) -> None:
    await desk.happen("apt_1")
    desk.clock.advance(days=31)
    assert await forget(desk) == 1
    await desk.endpoint(receiver.url())
    event = await desk.happen("apt_2")
    await desk.deliver()
    assert receiver.ids() == [event]


async def test_more_practices_than_one_query_returns_take_turns(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "_MAX_PRACTICES_PER_LOOK", 2)
    desks = [desk, *[await desk.another_practice(f"other-{number}") for number in range(4)]]
    for each in desks:
        await each.endpoint(receiver.url(f"/{each.practice_id}"))
    node = desk.node()
    for _ in range(2):
        for each in desks:
            await each.happen("apt_1")
        for found in (2, 2, 1):
            started = await node.start_due()
            assert len(started) == found
            await asyncio.gather(*started)
    assert [len(receiver.ids(f"/{each.practice_id}")) for each in desks] == [2] * 5
