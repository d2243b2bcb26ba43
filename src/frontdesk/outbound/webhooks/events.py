"""Events as sent to receivers: a type, a time, ids and the consent, nothing personal."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

import orjson

from frontdesk.domain.local_time import iso_utc
from frontdesk.feature import features
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

_EVENT_TYPES = (
    "appointment.booked",
    "appointment.rescheduled",
    "appointment.confirmed",
    "appointment.cancelled",
    "appointment.arrived",
    "appointment.completed",
    "appointment.noShow",
    "patient.created",
    "patient.updated",
    "client.patientBudgetExceeded",
    "client.matchingLocked",
    "client.writeLimitReached",
)
_ADD = "INSERT INTO outbox (practice_id, type, subject, occurred_at) VALUES ($1, $2, $3, $4)"
_SENT = ("Id", "At", "budget", "limit", "consent")  # the budget is "hour" or "day", the limit one on writes
_AFTER = "SELECT * FROM outbox WHERE practice_id = $1 AND event_id > $2 ORDER BY event_id LIMIT $3"
_NEWEST = "SELECT * FROM outbox WHERE practice_id = $1 ORDER BY event_id DESC LIMIT $2"


@dataclass(frozen=True, slots=True)
class Event:
    event_id: int
    type: str
    subject: str  # JSON
    occurred_at: datetime


class EventDocument(TypedDict):
    type: str
    timestamp: str
    data: dict[str, object]


def event_types() -> tuple[str, ...]:
    return (*_EVENT_TYPES, *(event for feature in features() for event in feature.events))


async def add_event(
    connection: Connection, practice_id: int, event: str, subject: Mapping[str, str], occurred_at: datetime
) -> None:
    """Adds the event to the transaction of what it tells of. Its subject holds ids and times only."""
    await connection.execute(_ADD, practice_id, event, orjson.dumps(subject).decode(), occurred_at)


def event_name(event_id: int) -> str:
    return f"evt_{event_id}"


def event_document(event: Event) -> EventDocument:
    """The message to a receiver, with ids, times, the consent of a write and names of budgets only."""
    subject: dict[str, object] = orjson.loads(event.subject)
    return {
        "type": event.type,
        "timestamp": iso_utc(event.occurred_at),
        "data": {name: value for name, value in subject.items() if name.endswith(_SENT)},
    }


def event_subjects(event: Event) -> list[str]:
    """The appointment and the patient of an event."""
    subject = orjson.loads(event.subject)
    return [subject[name] for name in ("appointmentId", "patientId") if name in subject]


async def events_after(database: Database, practice_id: int, event_id: int, limit: int) -> list[Event]:
    """The oldest events with a higher id. An event that commits late may appear below ids seen before."""
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_AFTER, practice_id, event_id, limit)
    return [from_row(Event, row) for row in rows]


async def count_events(database: Database, practice_id: int) -> int:
    async with database.transaction(practice_id) as connection:
        count: int = await connection.fetchval("SELECT count(*) FROM outbox WHERE practice_id = $1", practice_id)
    return count


async def newest_events(database: Database, practice_id: int, limit: int) -> list[Event]:
    """The newest events, oldest first."""
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_NEWEST, practice_id, limit)
    return [from_row(Event, row) for row in reversed(rows)]
