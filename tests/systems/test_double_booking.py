"""The database itself refuses a double booking by any writer."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.support.world import World, patient_id


@pytest.fixture
async def insert(world: World, owner_dsn: str) -> AsyncIterator[Any]:
    """Inserts an appointment by SQL as the owner of the tables, past every check of ours."""
    patient = await patient_id(await world.client())
    connection = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk, public"})
    numbers = iter(range(100))

    async def run(start: str, end: str, *, busy_until: str | None = None, lane: int = 1, status: str = "booked") -> str:
        appointment = f"apt_{next(numbers):022}"
        await connection.execute(
            """INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id,
                   visit_type_id, procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at,
                   updated_at)
               VALUES (1, $1, $2, 10, 1, 21, 101, $3, $4::text::timestamptz, $5::text::timestamptz,
                   $6::text::timestamptz, $7, 'sql', now(), now())""",
            appointment,
            patient,
            lane,
            f"2026-11-16 {start}Z",
            f"2026-11-16 {end}Z",
            f"2026-11-16 {busy_until or end}Z",
            status,
        )
        return appointment

    run.connection = connection  # type: ignore[attr-defined]
    yield run
    await connection.close()


@pytest.mark.parametrize(
    ("start", "end"), [("09:00", "09:30"), ("09:29", "09:45"), ("08:00", "12:00"), ("09:10", "09:20")]
)
async def test_overlapping_times_in_one_lane_are_refused(insert: Any, start: str, end: str) -> None:
    await insert("09:00", "09:30")
    with pytest.raises(asyncpg.ExclusionViolationError):
        await insert(start, end)


async def test_the_buffer_counts(insert: Any) -> None:
    await insert("09:00", "09:30", busy_until="09:45")
    with pytest.raises(asyncpg.ExclusionViolationError):
        await insert("09:30", "10:00")


async def test_neighbours_other_lanes_and_cancelled_ones_are_fine(insert: Any) -> None:
    await insert("09:00", "09:30")
    await insert("09:30", "10:00")
    await insert("09:00", "09:30", lane=2)
    await insert("09:00", "09:30", status="cancelled")


async def test_a_cancelled_appointment_cannot_come_back_into_a_taken_time(insert: Any) -> None:
    cancelled = await insert("09:00", "09:30", status="cancelled")
    await insert("09:00", "09:30")
    with pytest.raises(asyncpg.ExclusionViolationError):
        await insert.connection.execute(
            "UPDATE appointment SET status = 'booked' WHERE practice_id = 1 AND appointment_id = $1", cancelled
        )


async def test_times_cannot_be_moved_into_each_other(insert: Any) -> None:
    one = await insert("09:00", "09:30")
    await insert("10:00", "10:30")
    with pytest.raises(asyncpg.ExclusionViolationError):
        await insert.connection.execute(
            """UPDATE appointment SET starts_at = starts_at + interval '1 hour', ends_at = ends_at + interval '1 hour',
                   busy_until = busy_until + interval '1 hour' WHERE practice_id = 1 AND appointment_id = $1""",
            one,
        )


@pytest.mark.parametrize(
    ("start", "end", "busy_until"),
    [("09:30", "09:00", "10:00"), ("09:00", "09:30", "09:15"), ("09:00", "09:00", "09:00")],
)
async def test_times_out_of_order_are_refused(insert: Any, start: str, end: str, busy_until: str) -> None:
    with pytest.raises((asyncpg.CheckViolationError, asyncpg.DataError)):
        await insert(start, end, busy_until=busy_until)


async def test_a_booking_by_sql_between_check_and_commit_is_a_taken_slot(world: World, insert: Any) -> None:
    """A writer that locks no provider is still met by the constraint, and the caller gets the documented answer."""
    from tests.support.world import slots

    integration = await world.client(grant="integration")
    slot = (await slots(integration))[0]
    transaction = insert.connection.transaction()
    await transaction.start()
    await insert("14:00", "14:15")
    import asyncio

    booking = asyncio.create_task(
        integration.post(
            "/api/appointments", json={"patientId": await patient_id(integration, "Alan"), "slotId": slot["id"]}
        )
    )
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
    async with asyncio.timeout(30):
        while not await insert.connection.fetchval(waiting):
            assert not booking.done(), "it did not meet the other one"
            await asyncio.sleep(0.01)
    await transaction.commit()
    answer = await booking
    assert (answer.status_code, answer.json()["code"]) == (409, "slot_unavailable")
