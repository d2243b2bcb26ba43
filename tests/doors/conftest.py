"""What the tests of the doors share."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.records import add_client
from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.access.keys.ring import KeyRing
from frontdesk.app import build_app
from frontdesk.store.database import Database
from tests.doors.oauth_desk import HELD, Desk
from tests.support.world import World


@pytest.fixture
async def desk(database: Database) -> AsyncIterator[Desk]:
    await database.write(
        """INSERT INTO practice (slug, name, time_zone, minimum_notice_minutes, booking_horizon_days,
               slot_interval_minutes, scheduling_system, sandbox, created_at)
           VALUES ('riverside', 'Riverside', 'America/New_York', 0, 90, 15, '{"kind": "native"}', false, now())"""
    )
    ring = KeyRing(database, KeyCipher(["a secret key for tests that is long enough"]))
    await ring.load()
    client, secret = await add_client(
        database, ring, practice="riverside", name="Phone agent", grant="agent", scopes=HELD
    )
    desk = Desk(database, ring, client, secret)
    yield desk
    await desk.http.aclose()


@pytest.fixture
async def caller_at(world: World) -> AsyncIterator[Any]:
    """Clients of a service with other settings, coming from an address."""
    opened = []

    def make(address: str = "198.51.100.7", **settings: Any) -> httpx.AsyncClient:
        service = replace(world.service, settings=world.service.settings.model_copy(update=settings))
        transport = httpx.ASGITransport(app=build_app(service), client=(address, 4711))
        client = httpx.AsyncClient(transport=transport, base_url="http://test")
        opened.append(client)
        return client

    yield make
    for client in opened:
        await client.aclose()
