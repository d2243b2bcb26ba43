"""A practice that things happen at, and a node that tells its endpoints."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.endpoints import Endpoint, add_endpoint, show_endpoint
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from tests.support.world import PRACTICE, Clock

SECRET_KEY = "a secret key of the tests that is long enough"


@dataclass
class Desk:
    database: Database
    practice_id: int
    clock: Clock
    cipher: KeyCipher = field(default_factory=lambda: KeyCipher([SECRET_KEY]))
    paused: list[int] = field(default_factory=list)
    deliverers: list[Deliverer] = field(default_factory=list)
    senders: list[Sender] = field(default_factory=list)

    async def another_practice(self, slug: str = "other") -> "Desk":
        return Desk(self.database, await _practice(self.database, slug, self.clock), self.clock)

    async def endpoint(self, url: str, *events: str, public_only: bool = False) -> tuple[str, str]:
        """The id of a new endpoint, and its secret."""
        added, secret = await add_endpoint(
            self.database, self.cipher, self.practice_id, url, events, self.clock.now, public_only=public_only
        )
        return added.endpoint_id, secret

    async def shown(self, endpoint_id: str) -> Endpoint:
        return await show_endpoint(self.database, endpoint_id)

    async def happen(self, subject: str, type: str = "appointment.booked", **more: str) -> str:
        """An event in the outbox, as a write leaves it there; returns its id as receivers know it."""
        document = orjson.dumps({"appointmentId": subject, "patientId": "pat_1", **more}).decode()
        async with self.database.transaction(self.practice_id) as connection:
            number = await connection.fetchval(
                """INSERT INTO outbox (practice_id, type, subject, occurred_at) VALUES ($1, $2, $3::jsonb, $4)
                   RETURNING event_id""",
                self.practice_id,
                type,
                document,
                self.clock.now,
            )
        return f"evt_{number}"

    def node(self, *, allow_private: bool = True, timeout: float = 30.0, lease: timedelta | None = None) -> Deliverer:
        sender = Sender(allow_private=allow_private, timeout_seconds=timeout)
        self.senders.append(sender)
        return Deliverer(
            self.database, self.cipher, sender, self.paused.append, self.clock, lease or timedelta(seconds=30)
        )

    async def deliver(self, node: Deliverer | None = None) -> int:
        """Everything that is due now, to its end; returns how many attempts it took."""
        node = node or self.node()
        attempts = 0
        while started := await node.start_due():
            attempts += len(started)
            await asyncio.gather(*started)
        return attempts

    async def rows(self, sql: str, *args: Any) -> list[Any]:
        async with self.database.transaction(self.practice_id) as connection:
            found: list[Any] = await connection.fetch(sql, *args)
        return found

    async def close(self) -> None:
        for sender in self.senders:
            await sender.close()


async def _practice(database: Database, slug: str, clock: Clock) -> int:
    return await import_practice(database, parse(PRACTICE.replace("SLUG", slug)), clock.now)


async def build_desk(database: Database) -> Desk:
    clock = Clock(datetime.now(UTC))
    return Desk(database, await _practice(database, "harbor", clock), clock)
