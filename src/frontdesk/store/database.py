"""The connection pool, and what may go wrong with a database told apart by what a caller needs to know.

A statement either certainly did nothing (`DatabaseUnavailable`) or may have committed (`OutcomeUnknown`). Nothing
waits longer than a fixed time. Statements run as the service's role, which sees only the practice that was named.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
from asyncpg import exceptions as pg

SCHEMA = "frontdesk"
SERVICE_ROLE = "frontdesk_service"

ACQUIRE_SECONDS = 5.0
STATEMENT_SECONDS = 10
_ATTEMPTS = 3
_MEASURE_SECONDS = 2.0
_MEASURE = """
SELECT pg_database_size(current_database()) AS bytes,
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) AS sessions
"""

# The transaction was rolled back and the same statement may well succeed now.
_WORTH_REPEATING = (pg.DeadlockDetectedError, pg.SerializationError)
# The transaction was rolled back: nothing was executed.
_NOT_EXECUTED = (
    pg.QueryCanceledError,
    pg.LockNotAvailableError,
    pg.InsufficientResourcesError,
    pg.CannotConnectNowError,
    pg.ReadOnlySQLTransactionError,
)
# The connection had died while it was idle: the statement never left.
_NOT_SENT = (pg.InterfaceError, pg.InternalClientError)
# The connection broke while the statement ran.
_LOST = (pg.PostgresConnectionError, pg.AdminShutdownError, pg.CrashShutdownError, OSError)

T = TypeVar("T")


class DatabaseUnavailable(Exception):  # noqa: N818 - a state of the world
    """The database could not do it now; nothing was executed."""


class OutcomeUnknown(Exception):  # noqa: N818
    """The connection was lost while a write ran; it may or may not have committed."""


class Database:
    """The service's way to PostgreSQL. `statements` counts round trips, for tests that hold operations to a number."""

    def __init__(self, dsn: str, *, pool_size: int = 16, on_unreachable: Callable[[], None] | None = None) -> None:
        self._dsn = dsn
        self._pool_size = pool_size
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._on_unreachable = on_unreachable
        self._at_hand: list[Any] = []  # taken from the pool and kept: its own bookkeeping costs as much as a statement
        self._waiting = 0
        self.statements = 0

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(
            self._dsn,
            min_size=1,
            max_size=self._pool_size,
            command_timeout=STATEMENT_SECONDS + 5,
            timeout=ACQUIRE_SECONDS,
            max_inactive_connection_lifetime=300,
            server_settings=session_settings(SERVICE_ROLE),
            init=_learn_types,
            reset=_keep_session,
        )

    async def close(self) -> None:
        if self._pool is not None:
            try:
                await self._return_all()
                await asyncio.wait_for(self._pool.close(), 5)
            except TimeoutError:
                self._pool.terminate()
            self._pool = None

    @property
    def connections(self) -> tuple[int, int]:
        """How many are open, and how many of these are idle."""
        if self._pool is None:
            return 0, 0
        return self._pool.get_size(), self._pool.get_idle_size() + len(self._at_hand)

    async def measure(self) -> dict[str, float]:
        """Its size and sessions for operators; where it does not answer soon, only that it is not up."""
        try:
            async with asyncio.timeout(_MEASURE_SECONDS):
                row = await self.fetchrow(_MEASURE)
        except (DatabaseUnavailable, TimeoutError):
            return {"up": 0}
        assert row is not None
        return {"up": 1, "bytes": row["bytes"], "sessions": row["sessions"]}

    async def fetch(self, sql: str, *args: Any) -> list[asyncpg.Record]:
        """Rows of a statement that may be repeated: a read, or one that is idempotent."""
        return await self._repeatable(lambda connection: connection.fetch(sql, *args))

    async def fetchrow(self, sql: str, *args: Any) -> asyncpg.Record | None:
        return await self._repeatable(lambda connection: connection.fetchrow(sql, *args))

    async def fetchval(self, sql: str, *args: Any) -> Any:
        return await self._repeatable(lambda connection: connection.fetchval(sql, *args))

    async def write(self, sql: str, *args: Any) -> asyncpg.Record | None:
        """One statement that must not be repeated once it may have committed."""
        for attempt in range(1, _ATTEMPTS + 1):
            connection, whole = await self._acquire(), False
            try:
                self.statements += 1
                row: asyncpg.Record | None = await connection.fetchrow(sql, *args)
                whole = True
                return row
            except (*_WORTH_REPEATING, *_NOT_SENT) as error:
                await self._discard(connection, error)
                if attempt == _ATTEMPTS:
                    raise DatabaseUnavailable from error
            except _NOT_EXECUTED as error:
                raise DatabaseUnavailable from error
            except (*_LOST, TimeoutError) as error:
                await self._discard(connection, error)
                raise OutcomeUnknown from error
            finally:
                await self._release(connection, whole=whole)
        raise AssertionError("unreachable")

    @contextlib.asynccontextmanager
    async def transaction(self, practice_id: int | None = None) -> AsyncIterator[Any]:
        """Several statements in one transaction, on one practice's rows. For commands; never on a hot path."""
        connection = await self._acquire()
        try:
            async with connection.transaction():
                if practice_id is not None:
                    await connection.execute("SELECT set_config('frontdesk.practice_id', $1, true)", str(practice_id))
                yield connection
        except (*_NOT_SENT, *_LOST) as error:
            await self._discard(connection, error)
            raise OutcomeUnknown from error
        finally:
            await self._release(connection, whole=False)

    async def _repeatable(self, run: Callable[[Any], Awaitable[T]]) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            connection, whole = await self._acquire(), False
            try:
                self.statements += 1
                answer = await run(connection)
                whole = True
                return answer
            except (*_WORTH_REPEATING, *_NOT_SENT, *_LOST) as error:
                await self._discard(connection, error)
                if attempt == _ATTEMPTS:
                    raise DatabaseUnavailable from error
            except (*_NOT_EXECUTED, TimeoutError) as error:
                raise DatabaseUnavailable from error
            finally:
                await self._release(connection, whole=whole)
        raise AssertionError("unreachable")

    async def _acquire(self) -> Any:
        if self._at_hand:
            return self._at_hand.pop()
        if self._pool is None:
            raise DatabaseUnavailable
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        except (TimeoutError, pg.PostgresError, pg.InterfaceError, OSError) as error:
            self._note_unreachable()
            raise DatabaseUnavailable from error
        finally:
            self._waiting -= 1

    async def _release(self, connection: Any, *, whole: bool) -> None:
        """A connection whose statement ended well goes to the next caller, any other through the pool, which mends it.
        Whoever waits, waits at the pool."""
        if whole and self._waiting == 0:
            self._at_hand.append(connection)
        elif self._pool is not None:
            with contextlib.suppress(pg.PostgresError, pg.InterfaceError, OSError, TimeoutError):
                await self._pool.release(connection)

    async def _return_all(self) -> None:
        while self._at_hand and self._pool is not None:
            with contextlib.suppress(pg.PostgresError, pg.InterfaceError, OSError, TimeoutError):
                await self._pool.release(self._at_hand.pop())

    async def _discard(self, connection: Any, error: Exception) -> None:
        """A dead connection is dropped, and its fellows, which died with it, are not trusted any longer."""
        if not isinstance(error, _WORTH_REPEATING):
            with contextlib.suppress(pg.InterfaceError):  # the pool may have noticed first
                connection.terminate()
            if self._pool is not None:
                await self._pool.expire_connections()
                await self._return_all()
            self._note_unreachable()

    def _note_unreachable(self) -> None:
        if self._on_unreachable is not None:
            self._on_unreachable()


def session_settings(role: str | None) -> dict[str, str]:
    """What every connection starts with. `role` drops the privileges of the login for good."""
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


async def _learn_types(connection: Any) -> None:
    """asyncpg looks array types up on first use; do it before the first request rather than during it."""
    await connection.fetchrow("SELECT '{}'::integer[], '{}'::timestamptz[]")


async def _keep_session(_connection: Any) -> None:
    """Nothing to reset: settings are local to a transaction. The pool's own reset would cost a round trip a call."""
