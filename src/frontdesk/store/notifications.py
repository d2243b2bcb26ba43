"""Notifies other processes of changes over PostgreSQL's LISTEN and NOTIFY.

A notification may be lost, so caches must also expire without one. Kinds in use: `client` (a client id), `practice` (a
slug) and `calendar` (a practice's id).
"""

import asyncio
import logging
from collections.abc import Callable

from frontdesk.background import Step
from frontdesk.store.connection import Connection, Reader
from frontdesk.store.database import SERVICE_ROLE, session_settings
from frontdesk.store.hosts import Hosts

_CHANNEL = "frontdesk_change"
_NOTIFY = f"SELECT pg_notify('{_CHANNEL}', word) FROM unnest($1::text[]) word"  # noqa: S608 - a name of ours

_PROBE_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_PAUSE_SECONDS = 0.5  # between attempts, if each connection is closed at once

_log = logging.getLogger(__name__)


async def notify(session: Reader, kind: str, *ids: str) -> None:
    """Notifies every listener; on a connection inside a transaction, when that commits."""
    await session.fetch(_NOTIFY, [f"{kind} {id_}" for id_ in ids])


class NotificationListener:
    """Listens on a connection of its own, and connects again when that is lost.

    `on_change(kind, id)` and `on_listening()` are called in the event loop and must not block. Changes before
    `on_listening()` may have been missed.
    """

    def __init__(
        self, hosts: Hosts, on_change: Callable[[str, str], None], on_listening: Callable[[], None] = lambda: None
    ) -> None:
        self._hosts = hosts
        self._on_change = on_change
        self._on_listening = on_listening
        self._connection: Connection | None = None
        self._wake = asyncio.Event()
        self._wake.set()
        self.listening = asyncio.Event()
        self.step = Step(
            "change listener",
            self.listen,
            every=_PROBE_SECONDS,
            wake=self._wake,
            pause=_PAUSE_SECONDS,
            close=self.close,
        )

    async def listen(self) -> None:
        """Connects, or checks the connection: some networks drop one without a sign."""
        try:
            if self._connection is None:
                await self._connect()
            else:
                await self._connection.execute("SELECT 1")
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self.listening.clear()
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _connect(self) -> None:
        self._connection = connection = await self._hosts.connect(
            timeout=_CONNECT_SECONDS,
            command_timeout=_CONNECT_SECONDS,
            server_settings=session_settings(SERVICE_ROLE),
        )
        connection.add_termination_listener(self._ended)
        await connection.add_listener(_CHANNEL, self._receive)
        self.listening.set()
        self._on_listening()

    def _ended(self, connection: Connection) -> None:
        if connection is self._connection:
            self._connection = None
            self.listening.clear()
            self._wake.set()

    def _receive(self, _connection: Connection, _process: int, _channel: str, message: object) -> None:
        kind, _, id_ = str(message).partition(" ")
        try:
            self._on_change(kind, id_)
        except Exception:
            _log.exception("a change of kind %s could not be handled", kind)
