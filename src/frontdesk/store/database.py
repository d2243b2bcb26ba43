"""The PostgreSQL connection pool, and its failures told apart by whether anything was executed.

A call that fails either executed nothing (`DatabaseUnavailable`) or may have committed (`OutcomeUnknown`).
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeAlias, TypeVar, cast

import asyncpg
from asyncpg import exceptions as pg
from asyncpg.pool import PoolConnectionProxy

from frontdesk import tracing
from frontdesk.store.connection import Connection
from frontdesk.store.hosts import Hosts
from frontdesk.store.sessions import SessionRefused, check_pooler, check_session

SCHEMA = "frontdesk"
SERVICE_ROLE = "frontdesk_service"

ACQUIRE_SECONDS = 5.0
STATEMENT_SECONDS = 10
READY_SECONDS = 5.0
WATCH_SECONDS = 1.0
_POOLED_SECONDS = 60.0
_CLOSE_SECONDS = 5.0
_ATTEMPTS = 3
_MEASURE_SECONDS = 2.0
_PROBE_SECONDS = 2.0
_MEASURE = """
SELECT pg_database_size(current_database()) AS bytes,
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usesysid IS NOT NULL) AS sessions
"""

# Rolled back; the same statement may succeed now.
_RETRYABLE = (pg.DeadlockDetectedError, pg.SerializationError)
# Rolled back: nothing was executed.
_NOT_EXECUTED = (
    pg.QueryCanceledError,
    pg.LockNotAvailableError,
    pg.InsufficientResourcesError,
    pg.CannotConnectNowError,
)
# The connection was lost while idle, and the statement was never sent; or the server no longer accepts writes.
_NOT_SENT = (pg.InterfaceError, pg.ReadOnlySQLTransactionError)
# The connection was lost, or time ran out, while the statement ran.
_LOST = (pg.PostgresConnectionError, pg.AdminShutdownError, pg.CrashShutdownError, pg.InternalClientError, OSError)
# Reported by a server that could not reach another one, never by a lost connection of ours.
_PART = pg.ConnectionFailureError
# Rolled back: row-level security found no practice, because Citus is moving its shard to another worker.
_MISROUTED = pg.UndefinedObjectError
# What statements of ours are meant to meet. After others, Citus may no longer send a session's calls to workers.
_EXPECTED = (pg.IntegrityConstraintViolationError, pg.PLPGSQLError)
# asyncpg's InternalClientError if the server ended the idle connection, and the statement was never sent.
_NEVER_SENT_TEXT = "cannot switch to state"

_log = logging.getLogger(__name__)
T = TypeVar("T")
_PooledConnection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"


class DatabaseUnavailable(Exception):
    """The database cannot answer now; nothing was executed."""


class PartUnavailable(DatabaseUnavailable):
    """A server of a distributed database cannot be reached; what is on others can be asked."""


class OutcomeUnknown(Exception):
    """The connection was lost while a write ran; it may or may not have committed."""


class Database:
    """Runs statements as the service's role. For tests and metrics it counts them, and callers who had to wait for a
    connection or got none."""

    def __init__(
        self,
        dsn: str,
        *,
        pool_size: int = 16,
        pooled: bool = False,
        on_unreachable: Callable[[], None] = lambda: None,
    ) -> None:
        """`pooled`: the address is a pooler's, such as PgBouncer's."""
        self.dsn = dsn
        self._pooled = pooled
        self.hosts = Hosts(dsn)
        self._pool_size = pool_size
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._on_unreachable = on_unreachable
        # Acquired and ready for the next statement: a round through asyncpg's pool costs more CPU than the statement.
        self._ready: list[tuple[_PooledConnection, float]] = []  # with the time of last use, oldest first
        self._in_use: set[_PooledConnection] = set()
        self.waiting = 0  # for a connection
        self._closing = False
        self._probe: asyncio.Task[object] | None = None
        self.statements = self.waits = self.refused = 0

    async def open(self) -> None:
        """Raises SessionRefused if the login may not be used."""
        self._pool = await asyncpg.create_pool(
            connect=self._connect,
            min_size=1,
            max_size=self._pool_size,
            command_timeout=STATEMENT_SECONDS + 5,
            timeout=ACQUIRE_SECONDS,
            max_inactive_connection_lifetime=_POOLED_SECONDS,
            server_settings=self._settings,
            init=self._check,
            reset=_keep_session,
            connection_class=_Connection,
        )
        self._closing = False
        if self._pooled:
            try:
                async with self._pool.acquire() as first, self._pool.acquire() as second:
                    await check_pooler(first, second)
            except BaseException:
                self._pool.terminate()
                raise

    @property
    def _settings(self) -> dict[str, str]:
        """What a connection asks for; a pooler refuses most settings, and the login has to bring them."""
        settings = session_settings(SERVICE_ROLE)
        return {"application_name": settings["application_name"]} if self._pooled else settings

    async def _check(self, connection: Connection) -> None:
        await check_session(connection, session_settings(SERVICE_ROLE), pooled=self._pooled)

    async def _connect(self, dsn: str | None = None, **options: Any) -> "_Connection":  # noqa: ARG002 - `Hosts` knows it
        connection = cast("_Connection", await self.hosts.connect(**options))
        connection.host = self.hosts.last_good
        return connection

    async def close(self) -> None:
        """Waits for running statements, up to `_CLOSE_SECONDS`."""
        if self._pool is not None:
            self._closing = True
            try:
                await self._return_idle()
                await asyncio.wait_for(self._pool.close(), _CLOSE_SECONDS)
            except TimeoutError:
                self._pool.terminate()
            self._pool = None

    async def release_idle(self) -> None:
        """Gives connections unused for `READY_SECONDS` back to the pool, which closes them when they stay unused."""
        await self._return_idle(before=time.monotonic() - READY_SECONDS)

    async def watch(self) -> None:
        """Ends statements stuck at a host that accepts no writes any more, as when it hangs, while another does."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self.fetchval("SELECT 1"))
            # One that fails late is nobody's: without this, asyncio would log that.
            self._probe.add_done_callback(lambda probe: probe.cancelled() or probe.exception())
        await asyncio.wait({self._probe}, timeout=_PROBE_SECONDS)
        if self._probe.done() and self._probe.exception() is None:
            return
        accepting = await self.hosts.accepting_writes(server_settings=self._settings)
        lost = [connection for connection in self._in_use if _host(connection) not in accepting]
        if accepting and lost:
            _log.warning("A database host does not answer; another one accepts writes and is used from now on")
            for connection in lost:
                with contextlib.suppress(pg.InterfaceError):
                    connection.terminate()
            await self._expire_idle()

    @property
    def connections(self) -> tuple[int, int]:
        """The numbers of open and of idle connections."""
        if self._pool is None:
            return 0, 0
        return self._pool.get_size(), self._pool.get_idle_size() + len(self._ready)

    async def measure(self) -> dict[str, float]:
        """The database's size and sessions, or only that it is down if it does not answer soon."""
        try:
            row = await within(_MEASURE_SECONDS, self.fetchrow(_MEASURE))
        except DatabaseUnavailable:
            return {"up": 0}
        assert row is not None
        return {"up": 1, "bytes": row["bytes"], "sessions": row["sessions"]}

    async def fetch(self, sql: str, *args: object) -> list[asyncpg.Record]:
        """Runs a statement that may be repeated: a read, or an idempotent write."""
        return await self._run(sql, lambda connection: connection.fetch(sql, *args))

    async def fetchrow(self, sql: str, *args: object) -> asyncpg.Record | None:
        return await self._run(sql, lambda connection: connection.fetchrow(sql, *args))

    async def fetchval(self, sql: str, *args: object) -> Any:  # of the type that PostgreSQL gives it
        return await self._run(sql, lambda connection: connection.fetchval(sql, *args))

    async def write(self, sql: str, *args: object) -> asyncpg.Record | None:
        """Runs a statement that must not be repeated once it may have committed."""
        return await self._run(sql, lambda connection: connection.fetchrow(sql, *args), repeatable=False)

    @contextlib.asynccontextmanager
    async def transaction(self, practice_id: int | None = None) -> AsyncIterator[Connection]:
        """Runs several statements in one transaction, on one practice's rows."""
        with tracing.tracer.statement("TRANSACTION"):
            connection = await self._acquire()
            committing = False
            try:
                async with connection.transaction():
                    if practice_id is not None:
                        await set_practice(connection, practice_id)
                    yield connection
                    committing = True
            except (*_RETRYABLE, *_NOT_EXECUTED) as error:
                raise DatabaseUnavailable from error
            except (*_NOT_SENT, _MISROUTED, *_LOST) as error:
                await self._discard(connection, error)
                unknown = committing and _may_have_been_sent(error)
                raise (OutcomeUnknown if unknown else DatabaseUnavailable) from error
            except pg.PostgresError as error:
                _close_after(error, connection)
                raise
            finally:
                await self._release(connection, reusable=False)

    async def _run(self, sql: str, statement: Callable[[Connection], Awaitable[T]], *, repeatable: bool = True) -> T:
        with tracing.tracer.statement(sql):
            for attempt in range(1, _ATTEMPTS + 1):
                connection, reusable = await self._acquire(), False
                try:
                    self.statements += 1
                    answer = await statement(connection)
                    reusable = True
                    return answer
                except _NOT_EXECUTED as error:
                    raise DatabaseUnavailable from error
                except (*_RETRYABLE, *_NOT_SENT, _MISROUTED, *_LOST) as error:
                    await self._discard(connection, error)
                    if not repeatable and _may_have_been_sent(error):
                        raise OutcomeUnknown from error
                    if attempt == _ATTEMPTS:
                        raise (PartUnavailable if isinstance(error, _PART) else DatabaseUnavailable) from error
                except pg.PostgresError as error:
                    _close_after(error, connection)
                    raise
                finally:
                    await self._release(connection, reusable=reusable)
            raise AssertionError("unreachable")

    async def _acquire(self) -> _PooledConnection:
        while self._ready:
            connection, _ = self._ready.pop()
            try:
                if not connection.is_closed():
                    self._in_use.add(connection)
                    return connection
            except pg.InterfaceError:  # lost while idle: the pool has taken it back already
                continue
        if self._pool is None or self._closing:
            raise DatabaseUnavailable
        self.waiting += 1
        self.waits += self._pool.get_idle_size() == 0
        try:
            connection = await self._pool.acquire(timeout=ACQUIRE_SECONDS)
            self._in_use.add(connection)
            return connection
        except SessionRefused as error:
            self.refused += 1
            _log.error("A database connection was refused: %s", error)
            raise DatabaseUnavailable from error
        except (pg.PostgresError, pg.InterfaceError, pg.InternalClientError, OSError) as error:
            self.refused += 1
            self._on_unreachable()
            raise DatabaseUnavailable from error
        finally:
            self.waiting -= 1

    async def _release(self, connection: _PooledConnection, *, reusable: bool) -> None:
        """Keeps a `reusable` connection ready unless a caller waits at the pool; the pool repairs any other."""
        self._in_use.discard(connection)
        if reusable and self.waiting == 0 and not self._closing:
            self._ready.append((connection, time.monotonic()))
        else:
            await self._release_to_pool(connection)

    async def _return_idle(self, before: float = float("inf")) -> None:
        while self._ready and self._ready[0][1] < before:
            await self._release_to_pool(self._ready.pop(0)[0])

    async def _release_to_pool(self, connection: _PooledConnection) -> None:
        if self._pool is not None:
            with contextlib.suppress(pg.PostgresError, pg.InterfaceError, pg.InternalClientError, OSError):
                await self._pool.release(connection)

    async def _discard(self, connection: Connection, error: Exception) -> None:
        """Drops a lost connection and stops trusting the others, which are often lost with it."""
        if not isinstance(error, _RETRYABLE):
            with contextlib.suppress(pg.InterfaceError):  # the pool may have noticed first
                connection.terminate()
            if isinstance(error, _MISROUTED):
                _log.error("The database refused a statement: %s", error.message)  # a name that it does not know
            if isinstance(error, (_PART, _MISROUTED)):
                return
            await self._expire_idle()
            self._on_unreachable()

    async def _expire_idle(self) -> None:
        if self._pool is not None:
            await self._pool.expire_connections()
            ready, self._ready = self._ready, []
            for connection, _ in ready:
                with contextlib.suppress(pg.InterfaceError):  # closing would wait for a host that hangs
                    connection.terminate()
                await self._release_to_pool(connection)


class _Connection(asyncpg.Connection):
    """A connection whose loss while it is closed is no error: the pool closes some in tasks that nobody waits for."""

    host: str  # its address among those of `Hosts`

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in asyncpg
        with contextlib.suppress(pg.PostgresError, pg.InterfaceError, pg.InternalClientError, OSError):
            await super().close(timeout=timeout)


async def set_practice(connection: Connection, practice_id: int) -> None:
    """Shows this practice's rows to the rest of the transaction. SET LOCAL, because Citus sends no other setting to its
    workers."""
    await connection.execute(f"SET LOCAL frontdesk.practice_id = '{practice_id:d}'")


async def within(seconds: float, work: Coroutine[object, None, T]) -> T:
    """The result of database work. Raises DatabaseUnavailable after so many seconds, and leaves cleaning up to a task:
    a server that hangs does not confirm that a statement is cancelled."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise DatabaseUnavailable
    return task.result()


def _close_after(error: pg.PostgresError, connection: Connection) -> None:
    if not isinstance(error, _EXPECTED):
        with contextlib.suppress(pg.InterfaceError):
            connection.terminate()


def _host(connection: _PooledConnection) -> str | None:
    try:
        return cast(_Connection, connection).host
    except pg.InterfaceError:  # lost: the pool has taken it back already
        return None


def _may_have_been_sent(error: Exception) -> bool:
    if isinstance(error, pg.InternalClientError):
        return not str(error).startswith(_NEVER_SENT_TEXT)
    return isinstance(error, _LOST)


def session_settings(role: str | None) -> dict[str, str]:
    """The settings of every connection. `role` drops the login's privileges."""
    settings = {
        "application_name": "frontdesk",
        "search_path": f"{SCHEMA}, public",
        "timezone": "UTC",
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "30s",
        "jit": "off",
    }
    return settings if role is None else {**settings, "role": role}


async def _keep_session(_connection: Connection) -> None:
    """Replaces the pool's reset, which costs a round trip; our settings are local to a transaction."""
