"""A fail-over that loses changes: what a process remembers of them must not outlive the connection it was read over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import httpx
import pytest

from frontdesk.store.hosts import Hosts
from frontdesk.store.notifications import NotificationListener
from tests.support.running import running
from tests.support.shared_database import as_superuser
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

_END_LISTENING = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""


@pytest.fixture
async def fail_over(world: World, database_dsn: str) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """Undoes changes by SQL, behind the back of the process, whose connection for notifications then breaks."""
    connected = asyncio.Event()

    def on_listening() -> None:
        world.service.on_listening()
        connected.set()

    async def undo(sql: str, *, reconnects: bool = True) -> None:
        connected.clear()
        await superuser.execute(sql)
        if not reconnects:
            return
        await superuser.execute(_END_LISTENING)
        await asyncio.wait_for(connected.wait(), 10)

    superuser = await asyncpg.connect(as_superuser(database_dsn), server_settings={"search_path": "frontdesk, public"})
    listener = NotificationListener(Hosts(database_dsn), world.service.on_change, on_listening)
    async with running(listener.step):
        await asyncio.wait_for(connected.wait(), 10)
        yield undo
    await superuser.close()


async def first_start(client: httpx.AsyncClient) -> str:
    start: str = (await slots(client))[0]["start"]
    return start[11:16]


@pytest.mark.parametrize("reconnects", [True, False])
async def test_a_lost_version_of_the_directory_is_forgotten(
    world: World, fail_over: Callable[..., Awaitable[None]], reconnects: bool
) -> None:
    await world.import_file(PRACTICE.replace("SLUG", "harbor"))
    client = await world.client()
    assert await first_start(client) == "09:00"
    await fail_over("UPDATE practice SET version = version - 1", reconnects=reconnects)
    assert await first_start(client) == "09:00"


async def test_a_lost_booking_is_forgotten_although_its_calendar_has_as_many_changes_again(
    world: World, fail_over: Callable[..., Awaitable[None]]
) -> None:
    client = await world.client()
    _, second, *_ = await slots(client)
    await book(client)
    assert await first_start(client) == "09:15"
    await fail_over("DELETE FROM appointment; UPDATE calendar_version SET version = version - 2, recent = '{}'")
    body = {"patientId": await patient_id(client), "slotId": second["id"]}
    assert (await confirmed(client, "POST", "/api/appointments", body)).status_code == 201
    found = [slot["start"][11:16] for slot in await slots(client)]
    assert found[:2] == ["09:00", "09:30"]
