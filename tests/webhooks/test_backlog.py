"""A backlog of events on tables without statistics does not slow down their delivery."""

from datetime import timedelta

from tests.webhooks.desk import Desk

_EVENTS = 20_000
_MAX_ROWS_READ = 100
_FILL = """
INSERT INTO outbox (practice_id, type, subject, occurred_at, relayed)
SELECT $1, 'appointment.booked', jsonb_build_object('appointmentId', 'apt_' || n), $2, n % 2 = 0
FROM generate_series(1, $3::integer) n
"""
_DELIVER = """
INSERT INTO webhook_delivery (practice_id, endpoint_id, event_id, subject, state, due_at)
SELECT $1, $2, event_id, subject ->> 'appointmentId', 'pending', $3 FROM outbox WHERE practice_id = $1 AND relayed
ON CONFLICT DO NOTHING
"""
_LEASE = "SELECT event_id FROM lease_webhook_deliveries($1, $2, 'holder', $3, 32, 4)"
_READ = """
SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer FROM pg_stat_xact_user_tables
WHERE relname IN ('outbox', 'webhook_delivery')
"""


async def test_taking_deliveries_reads_few_rows_of_a_backlog(desk: Desk) -> None:
    endpoint, _ = await desk.endpoint("https://example.org/hook")
    now = desk.clock.now
    async with desk.database.transaction(desk.practice_id) as connection:
        for _ in range(6):  # PostgreSQL keeps the plans of five executions, here for tables that are almost empty
            await connection.execute(_FILL, desk.practice_id, now, 1)
            assert len(await connection.fetch(_LEASE, desk.practice_id, now, timedelta())) == 1
            await connection.execute("UPDATE webhook_delivery SET state = 'delivered'")
        await connection.execute(_FILL, desk.practice_id, now, _EVENTS)
        await connection.execute(_DELIVER, desk.practice_id, endpoint, now)
        before = await connection.fetchval(_READ)
        taken = await connection.fetch(_LEASE, desk.practice_id, now, timedelta(seconds=30))
        read = await connection.fetchval(_READ) - before
        found = await connection.fetch("SELECT practice_id FROM practices_with_webhooks(0, 10, $1) WHERE due", now)
        looked = await connection.fetchval(_READ) - before - read
    assert [row["event_id"] for row in taken] == [8, 10, 12, 14], "the oldest that were handed over"
    assert read < _MAX_ROWS_READ
    assert len(found) == 1
    assert looked < 100
