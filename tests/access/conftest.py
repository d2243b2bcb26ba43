"""What the tests of the access layer share: a clock that stands still, a practice, and a ring of keys."""

from collections.abc import Awaitable, Callable

import pytest

from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.access.keys.ring import KeyRing
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from tests.access.stopped_clock import StoppedClock

SECRET_KEY = "a secret key for tests that is long enough"


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
async def ring(database: Database, clock: StoppedClock) -> KeyRing:
    ring = KeyRing(database, KeyCipher([SECRET_KEY]), clock=clock, monotonic=clock.monotonic)
    await ring.load()
    return ring


@pytest.fixture
def tokens(ring: KeyRing, clock: StoppedClock) -> Tokens:
    return Tokens(ring, Settings(base_url="https://desk.example"), clock=clock)


@pytest.fixture
def make_practice(database: Database) -> Callable[[str], Awaitable[int]]:
    async def make(slug: str) -> int:
        row = await database.write(
            """INSERT INTO practice (slug, name, time_zone, minimum_notice_minutes, booking_horizon_days,
                   slot_interval_minutes, scheduling_system, sandbox, created_at)
               VALUES ($1, $1, 'America/New_York', 0, 90, 15, '{"kind": "native"}', false, now())
               RETURNING practice_id""",
            slug,
        )
        assert row is not None
        return int(row["practice_id"])

    return make


@pytest.fixture
async def practice(make_practice: Callable[[str], Awaitable[int]]) -> str:
    await make_practice("riverside")
    return "riverside"
