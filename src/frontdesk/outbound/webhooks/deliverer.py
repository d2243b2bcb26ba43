"""Sends due webhook deliveries from any number of nodes, at least once and in order per subject.

A delivery is leased before it is sent and finished afterwards; the lease of a node that dies expires. An endpoint that
hangs holds a few places for a few seconds and is then retried later, so it does not delay others.
"""

import asyncio
import logging
import random
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson
from asyncpg import Record

from frontdesk import tracing
from frontdesk.access.keys.encryption import KeyCipher, SecretKeyError
from frontdesk.background import Step
from frontdesk.cache import BoundedCache
from frontdesk.outbound.webhooks.endpoints import decrypt_secrets, is_public_only
from frontdesk.outbound.webhooks.events import Event, event_document, event_name
from frontdesk.outbound.webhooks.outcomes import Outcome, Outcomes
from frontdesk.outbound.webhooks.sender import Sender, Sent
from frontdesk.outbound.webhooks.signing import signed_headers
from frontdesk.store.database import Database, DatabaseUnavailable, PartUnavailable
from frontdesk.store.practice_work import for_each_practice
from frontdesk.store.rows import from_row

LEASE = timedelta(seconds=30)
RESULTS = ("delivered", "failed", "dead")
MAX_ATTEMPTS = 15
MAX_CONCURRENT = 32
MAX_PER_ENDPOINT = 4
_POLL_INTERVAL_SECONDS = 1.0
_CACHED = 10_000
_PAUSE_SECONDS = 0.02  # deliveries that end together are followed up together
_MAX_PRACTICES_PER_LOOK = 1000  # practices; more take turns, so that looking for work stays cheap
_FIRST_WAIT = timedelta(seconds=5)
_MAX_WAIT = timedelta(hours=12)

_DUE_PRACTICES = "SELECT * FROM practices_with_webhooks($1, $2, $3)"
# While a worker is lost: any practice with webhooks may have due ones, and those of the lost worker fail one by one.
_DUE_WITHOUT_WORKER = """
SELECT practice_id, true AS due FROM practice WHERE has_webhooks AND practice_id > $1 ORDER BY practice_id LIMIT $2
"""
_LEASE = "SELECT * FROM lease_webhook_deliveries($1, $2, $3, $4, $5, $6)"
_TRACE = "SELECT traceparent FROM event_trace WHERE practice_id = $1 AND event_id = $2"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeasedDelivery(Event):
    endpoint_id: str
    url: str
    secrets: Sequence[bytes]
    attempts: int


def wait_after(attempts: int, jitter: float) -> timedelta | None:
    """The delay after a number of failed attempts, about three days in total, then None. `jitter` is in 0..1."""
    if attempts >= MAX_ATTEMPTS:
        return None
    wait: timedelta = min(_FIRST_WAIT * 3 ** (attempts - 1), _MAX_WAIT)
    return wait * (0.9 + 0.2 * jitter)


class Deliverer:
    """Delivers webhooks on one node. `on_paused` is called with the practice of a paused endpoint.

    A `clock` is for tests: leases use the database's, because the clocks of nodes differ.
    """

    def __init__(
        self,
        database: Database,
        cipher: KeyCipher,
        sender: Sender,
        on_paused: Callable[[int], None],
        clock: Callable[[], datetime] | None = None,
        lease: timedelta = LEASE,
    ) -> None:
        self._database = database
        self._cipher = cipher
        self._sender = sender
        self._clock = clock
        self._lease = lease
        self._holder = secrets.token_hex(8)
        self._outcomes = Outcomes(database, self._holder, on_paused, clock)
        self._public_only = BoundedCache[str, bool](_CACHED)  # by endpoint; it never changes
        self._sending: dict[asyncio.Task[None], int] = {}  # with the practice of each
        self._ended = asyncio.Event()
        self._checked_until = 0
        self.attempts: Counter[str] = Counter()  # by result
        self.step = Step(
            "webhooks",
            self.start_due,
            every=_POLL_INTERVAL_SECONDS,
            wake=self._ended,
            pause=_PAUSE_SECONDS,
            close=self.close,
        )

    async def close(self) -> None:
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self._outcomes.close()
        await self._sender.close()

    async def start_due(self) -> list[asyncio.Task[None]]:
        """Starts to send due deliveries, as many as there are places for."""
        looked_at = await self._due_practices()
        self._checked_until = looked_at[-1]["practice_id"] if len(looked_at) == _MAX_PRACTICES_PER_LOOK else 0
        started: list[asyncio.Task[None]] = []

        async def start(practice_id: int) -> None:
            # A practice leaves as many places free as it takes: receivers that are slow to answer delay no others.
            free, taken = MAX_CONCURRENT - len(self._sending), list(self._sending.values()).count(practice_id)
            places = (free - taken + 1) // 2
            if places <= 0:
                return
            # May be repeated: a delivery that was leased and never sent is leased again when its lease has expired.
            leased = await self._database.fetch(
                _LEASE, practice_id, self._now(), self._holder, self._lease, places, MAX_PER_ENDPOINT
            )
            for row in leased:
                task = asyncio.create_task(self._deliver(practice_id, from_row(LeasedDelivery, row)), name="webhook")
                self._sending[task] = practice_id
                task.add_done_callback(self._end)
                started.append(task)

        await for_each_practice("webhooks", [row["practice_id"] for row in looked_at if row["due"]], start)
        return started

    async def _due_practices(self) -> list[Record]:
        """The next practices with webhooks, and whether they may have due ones."""
        try:
            return await self._database.fetch(_DUE_PRACTICES, self._checked_until, _MAX_PRACTICES_PER_LOOK, self._now())
        except PartUnavailable:
            return await self._database.fetch(_DUE_WITHOUT_WORKER, self._checked_until, _MAX_PRACTICES_PER_LOOK)

    def _now(self) -> datetime | None:
        return None if self._clock is None else self._clock()

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._ended.set()
        if not task.cancelled() and task.exception() is not None:
            _log.error("a webhook delivery ended unexpectedly: it will be sent again", exc_info=task.exception())

    async def _deliver(self, practice_id: int, delivery: LeasedDelivery) -> None:
        attributes = {"frontdesk.endpoint": delivery.endpoint_id, "frontdesk.event": event_name(delivery.event_id)}
        of_write = await self._traceparent(practice_id, delivery.event_id) if tracing.tracer.records else None
        with tracing.tracer.request_to(f"webhook {delivery.type}", attributes, of_write) as span:
            sent = await self._attempt(practice_id, delivery)
            if sent.status is not None:
                span.set_attribute("http.response.status_code", sent.status)
            if sent.failure is not None:
                span.set_attribute("error.type", sent.failure)

    async def _traceparent(self, practice_id: int, event_id: int) -> str | None:
        """The span of the write that caused the event, to continue its trace."""
        try:
            async with self._database.transaction(practice_id) as connection:
                found: str | None = await connection.fetchval(_TRACE, practice_id, event_id)
        except DatabaseUnavailable:
            return None  # the webhook is sent all the same
        return found

    async def _attempt(self, practice_id: int, delivery: LeasedDelivery) -> Sent:
        sent = await self._send(practice_id, delivery)
        wait = None if sent.failure is None else wait_after(delivery.attempts + 1, random.random())  # noqa: S311
        outcome = Outcome(delivery.endpoint_id, delivery.event_id, sent.status, sent.milliseconds, sent.failure, wait)
        if await self._outcomes.record(practice_id, outcome):
            dead = sent.failure is not None and wait is None
            self.attempts["delivered" if sent.failure is None else "dead" if dead else "failed"] += 1
            self._report(practice_id, delivery, sent, dead=dead)
        return sent

    async def _send(self, practice_id: int, delivery: LeasedDelivery) -> Sent:
        body = orjson.dumps(event_document(delivery))
        try:
            keys = decrypt_secrets(self._cipher, delivery.endpoint_id, delivery.secrets)
        except SecretKeyError:
            return Sent(None, 0, "secret cannot be opened")
        headers = signed_headers(keys, event_name(delivery.event_id), self._now() or datetime.now(UTC), body)
        headers |= tracing.tracer.headers()
        public_only = await self._is_public_only(practice_id, delivery.endpoint_id)
        return await self._sender.send(delivery.url, headers, body, public_only=public_only)

    async def _is_public_only(self, practice_id: int, endpoint_id: str) -> bool:
        if not self._sender.allow_private:
            return True
        known = self._public_only.get(endpoint_id)
        if known is None:
            try:
                known = await is_public_only(self._database, practice_id, endpoint_id)
            except DatabaseUnavailable:
                return True  # the attempt cannot be recorded either, and is repeated
            self._public_only.put(endpoint_id, known)
        return known

    def _report(self, practice_id: int, delivery: LeasedDelivery, sent: Sent, *, dead: bool) -> None:
        level = logging.WARNING if dead else logging.INFO
        _log.log(
            level,
            "webhook dead letter" if dead else "webhook",
            extra={
                "practiceId": practice_id,
                "endpoint": delivery.endpoint_id,
                "event": event_name(delivery.event_id),
                "status": sent.status,
                "milliseconds": sent.milliseconds,
                "failure": sent.failure,
            },
        )
