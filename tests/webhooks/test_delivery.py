"""Deliveries: signed, at least once, in order per appointment, retried for days, replayable."""

import math
import time
from datetime import timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from frontdesk.outbound.webhooks.deliverer import MAX_ATTEMPTS, wait_after
from frontdesk.outbound.webhooks.deliveries import list_attempts, list_deliveries, replay
from frontdesk.outbound.webhooks.endpoints import WebhookError
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver


async def test_a_message_is_signed_and_says_what_happened(desk: Desk, receiver: Receiver) -> None:
    _, secret = await desk.endpoint(receiver.url("/hook?from=frontdesk"))
    event = await desk.happen("apt_1")
    assert await desk.deliver() == 1
    [message] = receiver.received
    document = Webhook(secret).verify(message.body, message.headers)
    assert document["type"] == "appointment.booked"
    assert document["data"] == {"appointmentId": "apt_1", "patientId": "pat_1"}
    assert set(document) == {"type", "timestamp", "data"}
    assert message.id == event
    assert message.path == "/hook?from=frontdesk"
    assert message.headers["content-type"] == "application/json"
    assert message.headers["host"] == f"127.0.0.1:{receiver.port}"
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(message.body.replace(b"apt_1", b"apt_2"), message.headers)


async def test_webhooks_are_sent_while_an_import_holds_the_practice(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    event = await desk.happen("apt_1")
    async with desk.database.transaction(desk.practice_id) as importing:
        await importing.execute("SELECT FROM practice WHERE practice_id = $1 FOR NO KEY UPDATE", desk.practice_id)
        await desk.deliver()
    assert [message.id for message in receiver.received] == [event]


async def test_nothing_but_ids_and_times_leaves_even_if_an_event_holds_more(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    await desk.happen("apt_1", startsAt="2026-11-16T14:00:00Z", firstName="Ada", reason="chest pain")
    await desk.deliver()
    assert receiver.received[0].document["data"] == {
        "appointmentId": "apt_1",
        "patientId": "pat_1",
        "startsAt": "2026-11-16T14:00:00Z",
    }


async def test_an_event_is_delivered_once_when_it_was_received(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    await desk.happen("apt_1")
    assert await desk.deliver() == 1
    desk.clock.advance(days=4)
    assert await desk.deliver() == 0
    assert len(receiver.attempts) == 1


async def test_an_endpoint_gets_only_the_events_it_asked_for_and_none_from_before(
    desk: Desk, receiver: Receiver
) -> None:
    await desk.happen("apt_1")
    await desk.endpoint(receiver.url("/some"), "appointment.cancelled", "patient.created")
    await desk.endpoint(receiver.url("/all"))
    booked = await desk.happen("apt_2")
    cancelled = await desk.happen("apt_2", "appointment.cancelled")
    await desk.deliver()
    assert receiver.ids("/some") == [cancelled]
    assert receiver.ids("/all") == [booked, cancelled]


async def test_practices_do_not_hear_of_each_other(desk: Desk, receiver: Receiver) -> None:
    other = await desk.another_practice()
    await desk.endpoint(receiver.url("/harbor"))
    await other.endpoint(receiver.url("/other"))
    here, there = await desk.happen("apt_1"), await other.happen("apt_2")
    await desk.deliver()
    assert (receiver.ids("/harbor"), receiver.ids("/other")) == ([here], [there])


async def test_an_event_that_commits_late_is_delivered_though_its_id_is_lower(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    async with desk.database.transaction(desk.practice_id) as connection:
        late = await connection.fetchval(
            """INSERT INTO outbox (practice_id, type, subject, occurred_at)
               VALUES ($1, 'appointment.booked', '{"appointmentId": "apt_late"}', $2) RETURNING event_id""",
            desk.practice_id,
            desk.clock.now,
        )
        soon = await desk.happen("apt_soon")
        await desk.deliver()
        assert receiver.ids() == [soon]
    await desk.deliver()
    assert receiver.ids() == [soon, f"evt_{late}"]


async def test_events_of_one_appointment_arrive_in_order_while_the_first_is_refused(
    desk: Desk, receiver: Receiver
) -> None:
    await desk.endpoint(receiver.url())
    receiver.refused_subjects["apt_1"] = 3
    first, second, third = [
        await desk.happen("apt_1", kind)
        for kind in ("appointment.booked", "appointment.rescheduled", "appointment.cancelled")
    ]
    await desk.deliver()
    assert [message.id for message in receiver.attempts] == [first], "the others wait behind it"
    for _ in range(4):
        desk.clock.advance(minutes=10)
        await desk.deliver()
    assert [message.id for message in receiver.attempts] == [first] * 4 + [second, third]
    assert receiver.ids() == [first, second, third]


async def test_another_appointment_does_not_wait_for_one_that_is_refused(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url())
    receiver.refused_subjects["apt_poison"] = 1000
    await desk.happen("apt_poison")
    await desk.deliver()
    good = [await desk.happen(f"apt_{number}") for number in range(3)]
    desk.clock.advance(seconds=6)
    await desk.deliver()
    assert sorted(receiver.ids()) == sorted(good)


async def test_attempts_are_spread_over_about_three_days_with_growing_waits() -> None:
    waits = [wait_after(attempt, 0.5) for attempt in range(1, MAX_ATTEMPTS)]
    known = [wait for wait in waits if wait is not None]
    assert len(known) == len(waits)
    assert known == sorted(known)
    assert known[0] == timedelta(seconds=5)
    assert timedelta(hours=70) < sum(known, timedelta()) < timedelta(hours=76)
    assert wait_after(MAX_ATTEMPTS, 0.5) is None
    assert wait_after(5, 0.0) != wait_after(5, 1.0), "jitter"


async def test_a_refused_event_becomes_a_dead_letter_after_three_days_and_can_be_replayed(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    receiver.refused_subjects["apt_poison"] = MAX_ATTEMPTS
    poison = await desk.happen("apt_poison")
    began = desk.clock.now
    died_after = timedelta()
    for _ in range(200):
        await desk.deliver()
        if (await desk.shown(endpoint)).dead:
            died_after = desk.clock.now - began
            break
        await desk.happen("apt_fine")  # the endpoint works: only this event does not
        await desk.deliver()
        desk.clock.advance(hours=1)
    assert timedelta(days=2.5) < died_after < timedelta(days=4)
    [dead] = await list_deliveries(desk.database, endpoint, "dead", 10)
    assert (f"evt_{dead.event_id}", dead.attempts, dead.due_at) == (poison, MAX_ATTEMPTS, None)
    assert dead.last is not None
    assert (dead.last.status, dead.last.failure) == (503, "refused")
    assert (await desk.shown(endpoint)).paused_at is None, "most of it was received"

    assert await replay(desk.database, endpoint, None, desk.clock.now) == [dead.event_id]
    desk.clock.advance(minutes=10)
    await desk.deliver()
    assert poison in receiver.ids()
    assert (await desk.shown(endpoint)).dead == 0


async def test_one_event_can_be_replayed_though_it_was_delivered(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    event = await desk.happen("apt_1")
    await desk.deliver()
    number = int(event.removeprefix("evt_"))
    await replay(desk.database, endpoint, number, desk.clock.now)
    with pytest.raises(WebhookError):
        await replay(desk.database, endpoint, number, desk.clock.now)
    await desk.deliver()
    assert receiver.ids() == [event, event]
    with pytest.raises(WebhookError):
        await replay(desk.database, endpoint, number + 1, desk.clock.now)


async def test_the_log_tells_every_attempt_with_status_and_latency(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    receiver.hanging.add("/hook")
    event = await desk.happen("apt_1")
    await desk.deliver(desk.node(timeout=2))
    receiver.hanging.clear()
    receiver.status["/hook"] = 500
    desk.clock.advance(minutes=1)
    await desk.deliver()
    receiver.status.clear()
    desk.clock.advance(minutes=1)
    began = time.perf_counter()
    await desk.deliver()
    took = (time.perf_counter() - began) * 1000
    attempts = await list_attempts(desk.database, endpoint, int(event.removeprefix("evt_")))
    assert [(a.status, a.failure) for a in attempts] == [(None, "no answer in time"), (500, "refused"), (200, None)]
    assert attempts[0].milliseconds >= 1900
    assert attempts[2].milliseconds <= math.ceil(took)
    [delivery] = await list_deliveries(desk.database, endpoint, None, 10)
    assert (delivery.state, delivery.attempts, delivery.last) == ("delivered", 3, attempts[2])
