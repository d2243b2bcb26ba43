"""Measures what waits to be done over all practices: audit records to seal, events and deliveries, writes to settle."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frontdesk.store.database import Database, DatabaseUnavailable, within

MAX_COUNTED = 10_000  # counted per practice and kind
_MEASURE_SECONDS = 2.0
_EVERY_SECONDS = 5.0
_SHARE = 20  # measuring takes at most this part of the time
_MEASURE = """
SELECT metric, state, CASE WHEN metric LIKE '%_seconds' THEN max(value) ELSE sum(value) END AS value
FROM measure_queues($1) GROUP BY metric, state
"""


@dataclass(frozen=True, slots=True)
class Queue:
    about: str
    states: tuple[str, ...] = ("",)


QUEUES: Mapping[str, Queue] = {
    "audit_unsealed_records": Queue("Audit records that are not sealed yet."),
    "audit_unsealed_seconds": Queue("Age of the oldest audit record that is not sealed yet."),
    "outbox_events": Queue("Events not yet handed to webhook endpoints."),
    "outbox_seconds": Queue("Age of the oldest event not yet handed to webhook endpoints."),
    "webhook_deliveries": Queue(
        "Webhook deliveries that have not ended: due, leased by a worker, to be retried later, or held by a pause.",
        ("due", "leased", "retrying", "paused"),
    ),
    "webhook_overdue_seconds": Queue("How long the next delivery to an endpoint that may receive has been due."),
    "webhook_endpoints": Queue(
        "Webhook endpoints: paused by failures, stopped by an operator.", ("working", "failing", "paused", "stopped")
    ),
    "upstream_writes": Queue("Writes to FHIR servers that are not settled.", ("leased", "waiting")),
    "upstream_write_seconds": Queue("Age of the oldest write to a FHIR server that is not settled."),
    "upstream_misconfigured_practices": Queue("Practices whose FHIR server or its settings have to be corrected."),
}

Measured = Mapping[tuple[str, str], float]  # by name and state


async def measure_queues(database: Database) -> Measured:
    """Measures every queue and state."""
    rows = await database.fetch(_MEASURE, MAX_COUNTED)
    found = {(row["metric"], row["state"]): row["value"] for row in rows}
    return {(name, state): found.get((name, state), 0.0) for name, queue in QUEUES.items() for state in queue.states}


class QueueMeter:
    """Measures again when the last measurement is old, the later the longer it took."""

    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._measured: Measured = {}
        self._next_at = 0.0

    async def read(self) -> Measured:
        """The latest measurements; nothing if the database does not answer soon."""
        began = self._monotonic()
        if began >= self._next_at:
            try:
                self._measured = await within(_MEASURE_SECONDS, measure_queues(self._database))
            except DatabaseUnavailable:
                self._measured = {}
            ended = self._monotonic()
            self._next_at = ended + max(_EVERY_SECONDS, _SHARE * (ended - began))
        return self._measured
