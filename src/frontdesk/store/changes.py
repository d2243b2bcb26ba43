"""Notifies other processes of changes over PostgreSQL's LISTEN and NOTIFY.

A notification may be lost: it is only a hint, and every cache also expires. Kinds in use: `client` (a client id),
`practice` (a slug) and `calendar` (a practice's id).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg

from frontdesk.store.database import SERVICE_ROLE, Database, session_settings

_CHANNEL = "frontdesk_change"
_NOTIFY = f"SELECT pg_notify('{_CHANNEL}', $1)"
_NOTIFY_MANY = f"SELECT pg_notify('{_CHANNEL}', word) FROM unnest($1::text[]) word"  # noqa: S608 - a name of ours

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_PROBE_SECONDS = 10.0
_CONNECT_SECONDS = 5.0

_log = logging.getLogger(__name__)


async def announce(connection_or_database: Any, kind: str, id: str) -> None:  # noqa: A002
    """Notifies all listeners; inside a transaction, when that commits."""
    message = f"{kind} {id}"
    if isinstance(connection_or_database, Database):
        await connection_or_database.fetchval(_NOTIFY, message)
    else:
        await connection_or_database.execute(_NOTIFY, message)


async def announce_many(database: Database, kind: str, ids: Sequence[str]) -> None:
    """Notifies all listeners of several changes in one statement."""
    messages = [f"{kind} {id_}" for id_ in ids]
    await database.fetch(_NOTIFY_MANY, messages)


class ChangeListener:
    """Listens on a connection of its own and reconnects when it is lost.

    `on_change(kind, id)` and `on_listening()` are called in the event loop and must not block. Changes before
    `on_listening()` may have been missed.
    """

    def __init__(
        self, dsn: str, on_change: Callable[[str, str], None], on_listening: Callable[[], None] = lambda: None
    ) -> None:
        self._dsn = dsn
        self._on_change = on_change
        self._on_listening = on_listening
        self._task: asyncio.Task[None] | None = None
        self.listening = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="change-listener")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._listen()
            except Exception as error:  # reconnecting is right for any failure
                _log.warning("change notifications interrupted: %s", type(error).__name__)
            pause = _FIRST_PAUSE if self.listening.is_set() else min(pause * 2, _LONGEST_PAUSE)
            self.listening.clear()
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        connection: Any = await asyncpg.connect(
            self._dsn,
            timeout=_CONNECT_SECONDS,
            command_timeout=_CONNECT_SECONDS,
            server_settings=session_settings(SERVICE_ROLE),
        )
        try:
            ended = asyncio.Event()
            connection.add_termination_listener(lambda _connection: ended.set())
            await connection.add_listener(_CHANNEL, self._receive)
            self.listening.set()
            self._on_listening()
            while True:
                try:
                    async with asyncio.timeout(_PROBE_SECONDS):  # Python 3.11's wait_for may swallow a cancellation
                        await ended.wait()
                    return
                except TimeoutError:
                    await connection.execute("SELECT 1")  # detects a connection that was lost silently
        finally:
            connection.terminate()

    def _receive(self, _connection: Any, _process: int, _channel: str, message: object) -> None:
        kind, _, id_ = str(message).partition(" ")
        try:
            self._on_change(kind, id_)
        except Exception:
            _log.exception("a change of kind %s could not be taken in", kind)
