"""Deliverers of several nodes and a receiver that fails: every event arrives, in order per subject, then no more."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any
from unittest import mock

from frontdesk.outbound.webhooks import deliverer
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.sender import Sent
from tests.proof.simulation.loop import BEGAN, Link, SimulatedLoop

SECONDS_OF_TROUBLE = 100.0


@dataclass
class Delivery:
    event: int
    subject: int
    state: str = "pending"
    attempts: int = 0
    holder: str = ""
    due: datetime = BEGAN


@dataclass
class Deliveries:
    """What the statements that find, lease and finish deliveries do to one endpoint."""

    link: Link
    rows: dict[int, Delivery]
    failures: int = 0
    rest_until: datetime = BEGAN

    async def fetch(self, sql: str, *given: Any) -> list[dict[str, Any]]:
        def practices() -> list[dict[str, Any]]:
            return [{"practice_id": 1, "due": any(row.state == "pending" for row in self.rows.values())}]

        if "practices_with_webhooks" in sql:
            return await self.link.read(practices)
        return await self.link.read(lambda: (self._lease if "lease" in sql else self._finish)(*given[1:]))

    def _lease(self, now: datetime, holder: str, lease: timedelta, limit: int, each: int) -> list[dict[str, Any]]:
        if self.rest_until > now:
            return []
        pending = [row for row in self.rows.values() if row.state == "pending"]
        leased = sum(row.due > now and row.holder != "" for row in pending)
        free = min(limit, (1 if self.failures else each) - leased)
        first: dict[int, Delivery] = {}
        for row in pending:
            first.setdefault(row.subject, row)
        due = sorted((row for row in first.values() if row.due <= now), key=lambda row: (row.attempts, row.due))
        for row in due[: max(0, free)]:
            row.holder, row.due = holder, now + lease
        return [
            {
                "event_id": row.event,
                "type": "appointment.booked",
                "subject": "{}",
                "occurred_at": BEGAN,
                "endpoint_id": "whk_1",
                "url": "https://receiver.example",
                "secrets": [],
                "attempts": row.attempts,
            }
            for row in due[: max(0, free)]
        ]

    def _finish(self, now: datetime, holder: str, _endpoints: list[str], *given: Any) -> list[dict[str, Any]]:
        events, _statuses, _milliseconds, failures, waits, *_ = given
        for event, failure, wait in zip(events, failures, waits, strict=True):
            row = self.rows[event]
            if row.state == "pending" and (failure is None or row.holder == holder):
                row.state = "delivered" if failure is None else "dead" if wait is None else "pending"
                row.attempts, row.holder, row.due = row.attempts + 1, "", now + (wait or timedelta())
                self.failures = 0 if failure is None else self.failures + 1
                self.rest_until = BEGAN if failure is None else now + timedelta(seconds=5)
        return []


@dataclass
class Receiver:
    """Loses requests and answers while there is trouble, and then takes everything."""

    chance: Random
    trouble: float
    received: list[int] = field(default_factory=list)
    acknowledged: dict[int, float] = field(default_factory=dict)

    async def receive(self, event: int) -> Sent:
        clock: Callable[[], float] = asyncio.get_running_loop().time
        await asyncio.sleep(self.chance.uniform(0, 3))
        if self.chance.random() < self.trouble:
            return Sent(None, 1, "lost")
        self.received.append(event)
        await asyncio.sleep(self.chance.uniform(0, 3))
        if self.chance.random() < self.trouble:
            return Sent(None, 1, "timeout")
        self.acknowledged.setdefault(event, clock())
        return Sent(200, 1, None)


async def webhook_deliveries(chance: Random) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    link, events = Link(chance), chance.randrange(1, 25)
    subjects = chance.randrange(1, 6)
    rows = {number: Delivery(number, chance.randrange(subjects)) for number in range(events)}
    database, receiver = Deliveries(link, rows), Receiver(chance, chance.choice((0.0, 0.2, 0.6)))
    link.broken = chance.choice((0.0, 0.0, 0.2))

    async def send(_deliverer: Deliverer, _practice_id: int, delivery: deliverer.LeasedDelivery) -> Sent:
        return await receiver.receive(delivery.event_id)

    async def node() -> None:
        """Takes and sends until it is killed, and is then replaced."""
        while True:
            running = Deliverer(database, None, mock.AsyncMock(), lambda _: None, loop.wall)  # type: ignore[arg-type]
            lives_until = loop.time() + chance.choice((5.0, 40.0, 1e9))
            while loop.time() < lives_until or not receiver.trouble:
                await asyncio.gather(running.start_due(), return_exceptions=True)
                await asyncio.sleep(chance.choice((0.02, 1.0)) if receiver.trouble or link.broken else 20.0)
            await running.close()

    with (
        mock.patch.object(deliverer.Deliverer, "_send", send),
        mock.patch.object(deliverer.random, "random", chance.random),
    ):
        nodes = [asyncio.create_task(node()) for _ in range(chance.randrange(1, 4))]
        await asyncio.sleep(SECONDS_OF_TROUBLE)
        receiver.trouble = link.broken = 0.0
        async with asyncio.timeout(3 * 24 * 3600):  # the waits between attempts add up to three days
            while any(row.state == "pending" for row in rows.values()):
                await asyncio.sleep(60)
        sent = len(receiver.received)
        await asyncio.sleep(120)
        for task in nodes:
            task.cancel()
        await asyncio.gather(*nodes, return_exceptions=True)
    assert len(receiver.received) == sent, "sent again after it was delivered"
    assert all(row.state in ("delivered", "dead") for row in rows.values())
    for row in rows.values():
        assert row.state == "dead" or row.event in receiver.received, f"event {row.event} never arrived"
    firsts = list(dict.fromkeys(receiver.received))
    dead = {row.event for row in rows.values() if row.state == "dead"}
    for subject in range(subjects):
        order = [event for event in firsts if rows[event].subject == subject and event not in dead]
        assert order == sorted(order), f"subject {subject} out of order: {order}"
