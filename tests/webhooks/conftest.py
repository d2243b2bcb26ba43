"""A desk with a receiver beside it; and the command line's fixtures."""

from collections.abc import AsyncIterator
from datetime import datetime, tzinfo

import pytest

from frontdesk.store.database import Database
from tests.cli.conftest import harbor, line
from tests.webhooks.desk import Desk, build_desk
from tests.webhooks.receiver import Receiver, receiving

__all__ = ["harbor", "line"]


@pytest.fixture
async def desk(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    built = await build_desk(database)

    class DeskTime(datetime):
        """Receivers look at the same clock as the desk, wherever a test has moved it."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "DeskTime":
            return cls.fromtimestamp(built.clock.now.timestamp(), tz)

    monkeypatch.setattr("standardwebhooks.webhooks.datetime", DeskTime)
    yield built
    await built.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as opened:
        yield opened
