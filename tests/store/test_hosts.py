"""Addresses with several hosts: silent hosts and standbys are passed over, and a move to another host is noticed."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import asyncpg
import pytest
from asyncpg import exceptions as pg

from frontdesk.store import database as database_module
from frontdesk.store import hosts as hosts_module
from frontdesk.store import migrate
from frontdesk.store.database import Database
from frontdesk.store.hosts import Hosts, addresses
from tests.support.listening import listening


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://u:p@one/db?sslmode=require", ["postgresql://u:p@one/db?sslmode=require"]),
        ("postgresql://u@/db?host=/run/x&port=5433", ["postgresql://u@/db?host=/run/x&port=5433"]),
        (
            "postgresql://u:p%40@one:5433,[::1]:5434,three/db?sslmode=require",
            [
                "postgresql://u:p%40@one:5433/db?sslmode=require",
                "postgresql://u:p%40@[::1]:5434/db?sslmode=require",
                "postgresql://u:p%40@three/db?sslmode=require",
            ],
        ),
        (
            "postgresql://u@/db?host=/run/a,two&port=1,2&sslmode=disable",
            [
                "postgresql://u@/db?host=/run/a&port=1&sslmode=disable",
                "postgresql://u@/db?host=two&port=2&sslmode=disable",
            ],
        ),
        (
            "postgresql://u@/db?host=one,two&port=5433",
            ["postgresql://u@/db?host=one&port=5433", "postgresql://u@/db?host=two&port=5433"],
        ),
    ],
)
def test_an_address_is_split_into_its_hosts(dsn: str, expected: list[str]) -> None:
    assert [address.replace("%2F", "/") for address in addresses(dsn)] == expected


@pytest.fixture
def silent() -> Iterator[str]:
    """A host that takes connections and never says a word, as a stopped PostgreSQL does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
async def wire(database_dsn: str) -> AsyncIterator["Wire"]:
    """The test's database on a TCP port of its own."""
    async with Wire(database_dsn).running() as running:
        yield running


class Wire:
    """Passes bytes between TCP clients and the socket of a PostgreSQL, until it hangs."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.hung = asyncio.Event()
        self.host = ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Wire"]:
        async with listening(self._pass) as port:
            self.host = f"127.0.0.1:{port}"
            yield self

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        query = dict(part.split("=") for part in self._dsn.partition("?")[2].split("&"))
        path = f"{query['host'].replace('%2F', '/')}/.s.PGSQL.{query['port']}"
        there, back = await asyncio.open_unix_connection(path)
        with contextlib.closing(back):
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.hung.is_set():
                    await asyncio.Event().wait()
                writer.write(data)
            writer.close()


def at(dsn: str, *hosts: str) -> str:
    """The address of the same database through these hosts."""
    login, _, rest = dsn.partition("@")
    return f"{login}@{','.join(hosts)}{rest.partition('?')[0]}?sslmode=disable"


def waiting_longer_for_all_but(monkeypatch: pytest.MonkeyPatch, is_silent: Callable[[str], bool]) -> list[str]:
    """Gives up hosts that never answer soon, and no other one, however busy the machine is. Those who are asked."""
    asked, connect = [], hosts_module._connect

    async def recorded(dsn: str, seconds: float, options: dict[str, Any]) -> Any:
        assert seconds == hosts_module.HOST_SECONDS
        asked.append(dsn)
        return await connect(dsn, 0.5 if is_silent(dsn) else 30.0, options)

    monkeypatch.setattr(hosts_module, "_connect", recorded)
    return asked


async def test_silent_hosts_and_standbys_are_passed_over_and_the_good_host_is_remembered(
    database_dsn: str, owner_dsn: str, silent: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = Hosts(at(database_dsn, silent, wire.host))
    silent_dsn, good_dsn = at(database_dsn, silent), at(database_dsn, wire.host)
    asked = waiting_longer_for_all_but(monkeypatch, lambda dsn: dsn == silent_dsn)
    await (await hosts.connect(timeout=30)).close()
    assert asked == [silent_dsn, good_dsn]
    connection = await hosts.connect(timeout=30)
    assert asked == [silent_dsn, good_dsn, good_dsn], "the silent host is not asked again"
    peer = connection._transport.get_extra_info("socket")
    assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 6000
    await connection.close()
    owner = await asyncpg.connect(owner_dsn)
    await owner.execute(
        f"ALTER DATABASE {await owner.fetchval('SELECT current_database()')} SET default_transaction_read_only = on"
    )
    await owner.close()
    with pytest.raises(pg.TargetServerAttributeNotMatched):
        await hosts.connect(timeout=30)


async def test_statements_stuck_at_a_hung_host_are_given_up_when_another_accepts_writes(
    database_dsn: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_PROBE_SECONDS", 0.3)
    waiting_longer_for_all_but(monkeypatch, lambda dsn: wire.hung.is_set() and dsn == at(database_dsn, wire.host))
    async with Wire(database_dsn).running() as other:
        database = Database(at(database_dsn, wire.host, other.host), pool_size=2)
        await database.open()
        try:
            await database.watch()
            slow = [asyncio.create_task(database.fetchval("SELECT pg_sleep(0.7)")) for _ in range(2)]
            await asyncio.sleep(0)
            await database.watch()  # no connection is free for its probe
            assert database._probe is not None
            await asyncio.gather(*slow, database._probe)
            assert database.statements == 4, "a host that is only busy keeps its statements"
            wire.hung.set()
            (await database.hosts.connect(timeout=5)).terminate()  # another caller has moved already
            stuck = [asyncio.create_task(database.fetchval("SELECT 1")) for _ in range(4)]
            await asyncio.sleep(0)
            async with asyncio.timeout(30):
                await database.watch()
                assert await asyncio.gather(*stuck) == [1] * 4
        finally:
            await database.close()


async def test_idle_connections_to_a_hung_host_are_dropped_at_once(
    database_dsn: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting_longer_for_all_but(monkeypatch, lambda dsn: wire.hung.is_set() and dsn == at(database_dsn, wire.host))
    async with Wire(database_dsn).running() as other:
        database = Database(at(database_dsn, wire.host, other.host), pool_size=4)
        await database.open()
        try:
            await asyncio.gather(*(database.fetchval("SELECT pg_sleep(0.3)") for _ in range(4)))
            idle = [connection for connection, _ in database._ready]
            assert len(idle) == 4
            wire.hung.set()
            async with asyncio.timeout(database_module.ACQUIRE_SECONDS):  # closing one would take as long
                await database._expire_idle()
                assert await database.fetchval("SELECT 1") == 1
        finally:
            await database.close()


async def test_a_hung_database_is_reported_soon(database_dsn: str, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(at(database_dsn, wire.host), pool_size=2)
    await database.open()
    assert (await migrate.readiness(database)).unready is None
    wire.hung.set()
    monkeypatch.setattr(migrate, "_READINESS_SECONDS", 0.3)
    async with asyncio.timeout(30):
        assert (await migrate.readiness(database)).unready == "database unavailable"
    wire.hung.clear()
    monkeypatch.setattr(database_module, "_CLOSE_SECONDS", 0.1)
    await database.close()


async def test_a_server_that_no_longer_accepts_writes_is_left(database: Database) -> None:
    """As after a switch-over that keeps connections."""
    await database.fetchval("SELECT set_config('default_transaction_read_only', 'on', false)")
    await database.write("UPDATE practice SET name = name")
    assert await database.fetchval("SHOW default_transaction_read_only") == "off"
