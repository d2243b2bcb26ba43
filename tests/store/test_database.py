"""The database boundary: which failures leave nothing executed, and who gets connections back."""

import asyncio
import contextlib
import gc
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from frontdesk.store import database as store
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown, PartUnavailable
from frontdesk.store.hosts import Hosts
from tests.support.shared_database import dsn_of_a_new_database, newly_opened_database

database_dsn, database = dsn_of_a_new_database, newly_opened_database

_LOSE_AT_COMMIT = """
CREATE TABLE noted (number integer);
GRANT ALL ON noted TO frontdesk_service;
CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON noted DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION lose_connection();
"""


async def _sessions(owner: asyncpg.Connection) -> int:
    found: int = await owner.fetchval(
        """SELECT count(*) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
    )
    return found


async def _usable(database: Database) -> None:
    async with database.transaction() as connection:
        assert await connection.fetchval("SELECT 1") == 1


@contextlib.contextmanager
def _complaints() -> Iterator[list[dict[str, Any]]]:
    """What the event loop complains about, and not about what earlier tests left behind."""
    gc.collect()
    found: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: found.append(context))
    try:
        yield found
    finally:
        loop.set_exception_handler(None)


@pytest.mark.parametrize("sqlstate", ["40P01", "40001", "55P03", "57014", "53300", "53100", "57P03", "25006"])
async def test_a_transaction_that_was_rolled_back_is_unavailable(database: Database, sqlstate: str) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with database.transaction() as connection:
            await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$")
    await _usable(database)


@pytest.mark.parametrize(
    ("sqlstate", "is_kept"), [("23505", True), ("P0001", True), ("0A000", False), ("42703", False), ("XX000", False)]
)
@pytest.mark.parametrize("in_transaction", [False, True])
async def test_a_session_is_given_up_after_an_error_that_no_statement_expects(
    database: Database, sqlstate: str, is_kept: bool, in_transaction: bool
) -> None:
    async def fail() -> None:
        failing = f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$"
        if not in_transaction:
            await database.fetch(failing)
        async with database.transaction() as connection:
            await connection.execute(failing)

    session = await database.fetchval("SELECT pg_backend_pid()")
    with pytest.raises(asyncpg.PostgresError):
        await fail()
    assert (await database.fetchval("SELECT pg_backend_pid()") == session) is is_kept


@pytest.mark.parametrize("in_transaction", [False, True])
async def test_a_statement_that_reached_the_wrong_worker_was_not_executed(
    database: Database, in_transaction: bool
) -> None:
    unknown = "SELECT current_setting('frontdesk.unknown')"  # as a practice's setting is at such a worker

    async def fail() -> None:
        if not in_transaction:
            await database.write(unknown)
        async with database.transaction() as connection:
            await connection.execute(unknown)

    session = await database.fetchval("SELECT pg_backend_pid()")
    with pytest.raises(DatabaseUnavailable):
        await fail()
    assert await database.fetchval("SELECT pg_backend_pid()") != session


async def test_a_lost_part_of_the_database_costs_no_other_connection(database: Database) -> None:
    async with database.transaction() as kept:
        session = kept.get_server_pid()
        with pytest.raises(PartUnavailable):
            await database.fetch("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '08006'; END $$")
    async with database.transaction() as first, database.transaction() as second:
        assert session in (first.get_server_pid(), second.get_server_pid())


@pytest.mark.parametrize("limit", ["lock_timeout", "statement_timeout"])
async def test_a_transaction_that_waits_too_long_for_a_lock_is_unavailable(
    database: Database, owner: asyncpg.Connection, limit: str
) -> None:
    async def wait() -> None:
        async with database.transaction() as connection:
            await connection.execute(f"SET LOCAL {limit} = '100ms'")
            await connection.fetch("SELECT FROM practice")

    async with owner.transaction():
        await owner.execute("LOCK TABLE practice")
        with pytest.raises(DatabaseUnavailable):
            await wait()
    await _usable(database)


async def test_connections_lost_while_idle_do_not_fail_a_transaction(
    database: Database, owner: asyncpg.Connection
) -> None:
    await asyncio.gather(*(database.fetchval("SELECT pg_sleep(0.1)") for _ in range(3)))
    await owner.execute(
        """SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
    )
    await asyncio.sleep(0.1)  # the event loop learns of it
    for _ in range(3):
        await _usable(database)


async def test_a_connection_lost_before_the_commit_executed_nothing(database: Database) -> None:
    async def lose() -> None:
        async with database.transaction() as connection:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(DatabaseUnavailable):
        await lose()
    await _usable(database)


async def test_a_connection_lost_during_the_commit_leaves_the_outcome_unknown(
    database: Database, owner: asyncpg.Connection
) -> None:
    await owner.execute(_LOSE_AT_COMMIT)
    with pytest.raises(OutcomeUnknown):
        async with database.transaction() as connection:
            await connection.execute("INSERT INTO noted VALUES (1)")
    await _usable(database)


async def test_an_error_of_the_caller_passes_through_a_transaction(database: Database) -> None:
    with pytest.raises(LookupError):
        async with database.transaction():
            raise LookupError
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.transaction() as connection:
            await connection.execute("SELECT FROM nothing_like_it")


async def test_idle_connections_are_given_back_and_closed(
    database_dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_POOLED_SECONDS", 0.2)
    monkeypatch.setattr(store, "READY_SECONDS", 60.0)
    database = Database(database_dsn, pool_size=4)
    await database.open()
    await owner.execute("SELECT pg_advisory_lock(1)")
    statements = [asyncio.create_task(database.fetchval("SELECT pg_advisory_xact_lock_shared(1)")) for _ in range(4)]
    async with asyncio.timeout(30):
        while await _sessions(owner) < 4:
            await asyncio.sleep(0.05)
    await owner.execute("SELECT pg_advisory_unlock(1)")
    await asyncio.gather(*statements)
    await database.release_idle()
    assert database.connections == (4, 4), "in use a moment ago"
    monkeypatch.setattr(store, "READY_SECONDS", 0.0)
    await database.release_idle()
    async with asyncio.timeout(30):
        while await _sessions(owner) > 1:
            await asyncio.sleep(0.1)
    assert await database.fetchval("SELECT 1") == 1
    await database.close()


async def test_closing_waits_for_running_statements_and_no_longer(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_CLOSE_SECONDS", 60.0)
    database = Database(database_dsn, pool_size=4)
    await database.open()
    await asyncio.gather(*(database.fetchval("SELECT 1") for _ in range(3)))
    running: asyncio.Task[Any] = asyncio.create_task(database.fetchval("SELECT 1 FROM pg_sleep(0.5)"))
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await database.close()
    assert time.monotonic() - began < store._CLOSE_SECONDS
    assert await running == 1
    with pytest.raises(DatabaseUnavailable):
        await database.fetchval("SELECT 1")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


_LOGGED_IN = _message(b"R", struct.pack("!i", 0)) + _message(b"S", b"server_version\x0018.0\0") + _message(b"Z", b"I")
_SHUT_DOWN = _message(b"E", b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0")


async def test_a_server_that_ends_new_connections_is_unavailable(database: Database, tmp_path: Path) -> None:
    answering: set[asyncio.Task[Any] | None] = set()

    async def end_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(asyncio.current_task())
        await reader.read(1024)
        writer.write(_LOGGED_IN + _SHUT_DOWN)
        await reader.read(1)
        writer.close()
        await writer.wait_closed()

    assert database._pool is not None
    async with await asyncio.start_unix_server(end_at_once, tmp_path / ".s.PGSQL.5432"):
        database.hosts = Hosts(f"postgresql://someone@/any?host={tmp_path}")
        await database._pool.expire_connections()
        for attempt in (database.fetchval("SELECT 1"), database.write("SELECT 1"), _usable(database)):
            with pytest.raises(DatabaseUnavailable):
                await attempt
        await database.close()
    await asyncio.gather(*(task for task in answering if task is not None), return_exceptions=True)


async def test_a_write_on_a_connection_that_the_server_has_just_ended_is_repeated(database: Database) -> None:
    async with database.transaction() as connection:
        protocol = connection._con._protocol
    await database.fetchval("SELECT 1")
    protocol.data_received(_SHUT_DOWN)  # the end of the connection itself arrives later
    row = await database.write("SELECT 1 AS one")
    assert row is not None
    assert row["one"] == 1


async def test_an_unknown_failure_of_the_client_leaves_the_outcome_of_a_write_unknown(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise asyncpg.InternalClientError("got result for unknown protocol state 3")

    monkeypatch.setattr(asyncpg.Connection, "fetchrow", fail)
    with pytest.raises(OutcomeUnknown):
        await database.write("SELECT 1")
    with pytest.raises(DatabaseUnavailable):
        await database.fetchrow("SELECT 1")


async def test_closing_a_connection_with_a_broken_pipe_leaves_no_task_that_failed(database: Database) -> None:
    with _complaints() as failures:
        async with database.transaction() as connection:
            transport = connection._con._transport
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as wire:
            wire.shutdown(socket.SHUT_WR)
        assert database._pool is not None
        await database._pool.expire_connections()
        await _usable(database)
        await asyncio.sleep(0.05)
        gc.collect()
        assert failures == []


async def test_a_probe_that_fails_late_is_not_logged(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    late = asyncio.Event()
    monkeypatch.setattr(store, "_PROBE_SECONDS", 0)

    async def fails(_sql: str) -> None:
        await late.wait()
        raise DatabaseUnavailable

    with _complaints() as lost:
        monkeypatch.setattr(database, "fetchval", fails)
        await database.watch()
        late.set()
        await asyncio.sleep(0)
        monkeypatch.undo()
        await database.watch()
        gc.collect()
        assert lost == []
