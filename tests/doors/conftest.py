"""What the tests of the doors share."""

from collections.abc import AsyncIterator

import pytest

from frontdesk.access.clients.records import add_client
from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.access.keys.ring import KeyRing
from frontdesk.store.database import Database
from tests.doors.oauth_desk import HELD, Desk


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
