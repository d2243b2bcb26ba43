"""Imports and removals beside a client's write: they wait for its locks, and it can go on to take its other ones."""

import asyncio
from collections.abc import Awaitable
from datetime import date
from typing import Any

import asyncpg

from frontdesk.audit.trail import AuditContext
from frontdesk.practice_file.contents import PatientRecord
from frontdesk.store.practices import save_patients
from frontdesk.systems.native.upcoming import cancel_appointments
from tests.support.shared_database import dsn_of_a_new_database, newly_opened_database
from tests.support.world import World, book

database_dsn = dsn_of_a_new_database
database = newly_opened_database


async def waiting(owner: asyncpg.Connection, act: Awaitable[Any]) -> asyncio.Task[Any]:
    """The act, begun, once it waits for a lock."""
    task = asyncio.ensure_future(act)
    async with asyncio.timeout(30):
        while not task.done() and not await owner.fetchval(
            """SELECT count(*) FROM pg_locks
               WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  OR NOT granted AND locktype = 'transactionid'"""
        ):
            await asyncio.sleep(0.02)
    assert not task.done()
    return task


async def test_cancelling_stranded_appointments_locks_them_before_their_calendar(
    world: World, owner: asyncpg.Connection
) -> None:
    agent = await world.client()
    first, second = sorted([await book(agent), await book(agent, "Alan")])

    async def cancel() -> None:
        async with world.database.transaction(1) as connection:
            audit = AuditContext("staff", world.clock.now, "request")
            await cancel_appointments(connection, 1, [first, second], "Closed.", audit)

    async with world.database.transaction(1) as client:
        await client.execute("SELECT FROM appointment WHERE appointment_id = $1 FOR UPDATE", second)
        cancelling = await waiting(owner, cancel())
        # Its trigger locks the provider's calendar.
        await client.execute("UPDATE appointment SET status = 'confirmed' WHERE appointment_id = $1", second)
    await cancelling
    for each in (first, second):
        assert (await agent.get(f"/api/appointments/{each}")).json()["status"] == "cancelled"


async def test_an_import_of_patients_locks_the_counter_before_them(world: World, owner: asyncpg.Connection) -> None:
    ada = PatientRecord(1, "Ada", "Byron", date(1985, 12, 10), "+1 555 010 0199", None, seen=True)

    async def save() -> None:
        async with world.database.transaction(1) as connection:
            await save_patients(connection, 1, [ada], world.clock.now)

    async with world.database.transaction(1) as client:
        await client.execute("UPDATE patient_counter SET last_number = last_number + 1 WHERE practice_id = 1")
        saving = await waiting(owner, save())
        await client.execute("UPDATE patient SET email = 'ada@example.com' WHERE practice_id = 1 AND number = 1")
    await saving
    assert await owner.fetchval("SELECT last_name FROM patient WHERE practice_id = 1 AND number = 1") == "Byron"


async def test_a_removal_waits_for_a_move_in_flight(world: World, owner: asyncpg.Connection, owner_dsn: str) -> None:
    appointment = await book(await world.client())
    operator = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk, public"})
    async with world.database.transaction(1) as client:
        await client.execute("SELECT FROM provider WHERE practice_id = 1 AND provider_id = 10 FOR NO KEY UPDATE")
        removing = await waiting(owner, operator.fetchval("SELECT remove_practice(1)"))
        await client.execute("SELECT record_appointment_move(1, $1, $2, NULL)", appointment, world.clock.now)
    assert await removing == "harbor~1"
    await operator.close()
