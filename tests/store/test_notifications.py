"""Word of changes between processes: it arrives, it comes back after a break, and it never harms who listens."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from frontdesk.store.database import Database
from frontdesk.store.hosts import Hosts
from frontdesk.store.notifications import NotificationListener, notify
from tests.support.running import running

WAIT_TIMEOUT = 30


class Heard:
    def __init__(self) -> None:
        self.changes: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def __call__(self, kind: str, id_: str) -> None:
        self.changes.put_nowait((kind, id_))

    async def next(self) -> tuple[str, str]:
        return await asyncio.wait_for(self.changes.get(), WAIT_TIMEOUT)


@asynccontextmanager
async def listening(dsn: str, heard: Callable[[str, str], None]) -> AsyncIterator[None]:
    listener = NotificationListener(Hosts(dsn), heard)
    async with running(listener.step):
        await asyncio.wait_for(listener.listening.wait(), WAIT_TIMEOUT)
        yield


async def test_an_announced_change_is_heard_by_every_listener(database: Database, database_dsn: str) -> None:
    both = [Heard(), Heard()]
    async with listening(database_dsn, both[0]), listening(database_dsn, both[1]):
        await notify(database, "client", "fd_1")
        await notify(database, "practice", "a slug with spaces")
        for heard in both:
            assert await heard.next() == ("client", "fd_1")
            assert await heard.next() == ("practice", "a slug with spaces")


async def test_a_change_is_heard_when_its_transaction_commits_and_only_then(
    database: Database, database_dsn: str
) -> None:
    heard = Heard()
    async with listening(database_dsn, heard):
        with contextlib.suppress(ZeroDivisionError):
            async with database.transaction() as connection:
                await notify(connection, "client", "never happened")
                raise ZeroDivisionError
        async with database.transaction() as connection:
            await notify(connection, "client", "happened")
            assert heard.changes.empty()
        assert await heard.next() == ("client", "happened")


async def test_listening_comes_back_by_itself(database: Database, database_dsn: str, owner_dsn: str) -> None:
    heard = Heard()
    async with listening(database_dsn, heard):
        await notify(database, "client", "before")
        assert await heard.next() == ("client", "before")
        owner = await asyncpg.connect(owner_dsn)
        for _ in range(2):
            cut = await owner.fetchval(
                """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND query LIKE 'LISTEN%'"""
            )
            assert cut  # one that was cut before may take a moment to be gone from the list
            async with asyncio.timeout(WAIT_TIMEOUT):
                while not heard.changes.qsize():
                    await notify(database, "client", "after")
                    await asyncio.sleep(0.05)
            while not heard.changes.empty():
                assert heard.changes.get_nowait() == ("client", "after")
        await owner.close()


async def test_connections_that_are_closed_at_once_are_not_opened_in_a_rush(database_dsn: str) -> None:
    opened = 0

    def close() -> None:
        nonlocal opened
        opened += 1
        listener._connection.terminate()

    listener = NotificationListener(Hosts(database_dsn), Heard(), close)
    async with running(listener.step):
        await asyncio.sleep(1.2)
    assert 1 <= opened <= 3


async def test_a_listener_that_fails_on_a_change_hears_the_next_one(
    database: Database, database_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def fails_first(kind: str, id_: str) -> None:
        if id_ == "first":
            raise RuntimeError
        heard(kind, id_)

    async with listening(database_dsn, fails_first):
        with caplog.at_level(logging.ERROR):
            await notify(database, "client", "first")
            await notify(database, "client", "second")
            assert await heard.next() == ("client", "second")
        assert "could not be handled" in caplog.text


async def test_a_database_that_cannot_be_reached_harms_nobody(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere")
    listener = NotificationListener(Hosts(f"postgresql://nobody:pass-word@/none?host={nowhere}"), Heard())
    with caplog.at_level(logging.WARNING):
        async with running(listener.step), asyncio.timeout(WAIT_TIMEOUT):
            while "background step failed" not in caplog.text:
                await asyncio.sleep(0.02)
    assert "pass-word" not in caplog.text
    assert not listener.listening.is_set()
