"""What waits in the database is measured over all practices: events, deliveries, audit records, writes to settle."""

from datetime import UTC, datetime, timedelta

import pytest

from frontdesk.store import queues
from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.store.queues import QUEUES, Measured, QueueMeter, measure_queues
from tests.webhooks.desk import Desk

_UNSEALED = "SELECT append_audit($1, $2, 'fd_1', 'get_patient', 'executed', '{}', 'request')"
_WRITE = """
INSERT INTO upstream_write VALUES (
    $1, $2, '\\x00', 'executing', 'book', '{}', $2, false, 'fd_1', 'book_appointment', 'request',
    now() - interval '1 hour', $3, now() + interval '1 hour', 0
)
"""
_MISCONFIGURATION = "INSERT INTO upstream_misconfiguration VALUES ($1, 'read Slot', 'refused', now(), now())"
_DELIVERY = "UPDATE webhook_delivery SET holder = $3, due_at = $4 WHERE practice_id = $1 AND event_id = $2"


async def test_everything_that_waits_is_counted_over_all_practices(desk: Desk) -> None:
    idle = await measure_queues(desk.database)
    assert set(idle.values()) == {0.0}
    assert {name for name, _ in idle} == QUEUES.keys()

    other = await desk.another_practice()
    desk.clock.now = datetime.now(UTC) - timedelta(minutes=30)
    for place in (desk, other):
        async with place.database.transaction(place.practice_id) as connection:
            await connection.execute(_UNSEALED, place.practice_id, place.clock.now)
    async with desk.database.transaction(desk.practice_id) as connection:
        for name, holder in (("write-1", "a worker"), ("write-2", ""), ("write-3", "")):
            await connection.execute(_WRITE, desk.practice_id, name, holder)
        await connection.execute(_MISCONFIGURATION, desk.practice_id)
    async with desk.database.transaction(other.practice_id) as connection:
        await connection.execute(_MISCONFIGURATION.replace("now()", "now() - interval '2 hours'"), other.practice_id)
    await desk.happen("apt_0")  # before there was an endpoint: it waits for nobody
    await desk.endpoint("https://receiver.example/hook")
    await other.endpoint("https://elsewhere.example/hook")
    events = [int((await desk.happen(f"apt_{n}")).removeprefix("evt_")) for n in range(4)]

    measured = await measure_queues(desk.database)
    assert measured["outbox_events", ""] == 4
    assert 1790 < measured["outbox_seconds", ""] < 2000
    assert (measured["audit_unsealed_records", ""], measured["upstream_misconfigured_practices", ""]) == (2, 1)
    assert 1790 < measured["audit_unsealed_seconds", ""] < 2000
    assert (measured["upstream_writes", "leased"], measured["upstream_writes", "waiting"]) == (1, 2)
    assert 3590 < measured["upstream_write_seconds", ""] < 4000
    assert measured["webhook_overdue_seconds", ""] == 0

    async with desk.database.transaction(desk.practice_id) as connection:
        await connection.execute("SELECT relay_events($1, now(), 100)", desk.practice_id)
        soon, long_ago = datetime.now(UTC) + timedelta(hours=1), datetime.now(UTC) - timedelta(minutes=20)
        states_of = zip(events, ("a worker", "", "", ""), (soon, long_ago, soon, soon), strict=True)
        await connection.executemany(_DELIVERY, [(desk.practice_id, *each) for each in states_of])
    await other.happen("apt_9")
    async with desk.database.transaction(other.practice_id) as connection:
        await connection.execute("SELECT relay_events($1, now(), 100)", other.practice_id)
        await connection.execute("UPDATE webhook_endpoint SET paused_at = now(), pause_reason = 'gone'")
    measured = await measure_queues(desk.database)
    assert measured["outbox_events", ""] == 0
    states = {state: value for (name, state), value in measured.items() if name == "webhook_deliveries"}
    assert states == {"due": 1, "leased": 1, "retrying": 2, "paused": 1}
    states = {state: value for (name, state), value in measured.items() if name == "webhook_endpoints"}
    assert states == {"working": 1, "failing": 0, "paused": 1, "stopped": 0}
    assert 1190 < measured["webhook_overdue_seconds", ""] < 1500


async def test_measuring_takes_a_bounded_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answers = 100.0, [{("outbox_events", ""): 1.0}, {("outbox_events", ""): 2.0}]

    async def slow(_database: Database) -> Measured:
        nonlocal clock
        clock += 3
        if not answers:
            raise DatabaseUnavailable
        return answers.pop(0)

    monkeypatch.setattr(queues, "measure_queues", slow)
    meter = QueueMeter(Database("postgresql://"), monotonic=lambda: clock)
    first = await meter.read()
    clock += 59
    assert await meter.read() is first
    clock += 1
    assert await meter.read() == {("outbox_events", ""): 2.0}
    clock += 60
    assert await meter.read() == {}, "what was measured long ago is not published"
