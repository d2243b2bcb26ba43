"""What is undone of clients, in the database. Each start commits with its audit record."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from frontdesk.desk.appointment_history import Place
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import Problem
from frontdesk.features.client_undo.actions import START
from frontdesk.features.client_undo.plan import UndoEntry
from frontdesk.store.database import Database
from frontdesk.store.rows import Row, field_names, from_row

_START = """
INSERT INTO client_undo (practice_id, undo_id, client_id, since, started_by, started_at, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING undo_id
"""
_ADD = """
INSERT INTO client_undo_appointment (practice_id, undo_id, position, appointment_id, patient_id, operations,
    last_record, updated_at, changes, failure, provider_id, location_id, visit_type_id, procedure_id, starts_at,
    ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
_UNDO = "SELECT * FROM client_undo WHERE practice_id = $1 AND undo_id = $2"
_OF_CLIENT = """
SELECT * FROM client_undo WHERE practice_id = $1 AND client_id = $2 ORDER BY started_at DESC, undo_id LIMIT 20
"""
_ENTRIES = "SELECT * FROM client_undo_appointment WHERE practice_id = $1 AND undo_id = $2 ORDER BY position"
_PENDING = """
SELECT * FROM client_undo_appointment
WHERE practice_id = $1 AND undo_id = $2 AND failure IS NULL AND done < cardinality(changes)
ORDER BY put_off, position LIMIT 1
"""
# Of two requests that make the same change, one stores what became of it.
_FINISH = """
UPDATE client_undo_appointment SET done = $5, failure = $6, put_off = $7
WHERE practice_id = $1 AND undo_id = $2 AND appointment_id = $3 AND done = $4 AND failure IS NULL
"""


@dataclass(frozen=True, slots=True)
class ClientUndo:
    undo_id: str
    client_id: str
    since: datetime
    started_by: str
    started_at: datetime
    request_id: str


@dataclass(frozen=True, slots=True)
class ClientUndoStore:
    database: Database

    async def start(
        self, context: ActionContext, undo_id: str, client_id: str, since: datetime, entries: Sequence[UndoEntry]
    ) -> None:
        """Stores what is to be undone. The same id does so once."""
        practice_id, by = context.practice_id, (context.staff.staff_id, context.now, context.request_id)
        async with self.database.transaction(practice_id) as connection:
            await context.require_in(connection, "admin")
            if await connection.fetchval(_START, practice_id, undo_id, client_id, since, *by) is None:
                return
            await connection.executemany(
                _ADD,
                [(practice_id, undo_id, position, *_columns(each)) for position, each in enumerate(entries)],
            )
            await context.record_in(connection, START.name, client_id)
        context.seal_soon()

    async def find(self, context: ActionContext, client_id: str, undo_id: str) -> ClientUndo | None:
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(_UNDO, context.practice_id, undo_id)
        return None if row is None or row["client_id"] != client_id else from_row(ClientUndo, row)

    async def one(self, context: ActionContext, client_id: str, undo_id: str) -> tuple[ClientUndo, list[UndoEntry]]:
        """The undo with its appointments, what the client changed last first."""
        undo = await self.find(context, client_id, undo_id)
        if undo is None:
            raise Problem("not_found", "There is no such undo.")
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_ENTRIES, context.practice_id, undo_id)
        return undo, [_entry(row) for row in rows]

    async def of_client(self, context: ActionContext, client_id: str) -> list[ClientUndo]:
        """The last ones, the newest first."""
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_OF_CLIENT, context.practice_id, client_id)
        return [from_row(ClientUndo, row) for row in rows]

    async def pending(self, context: ActionContext, undo_id: str) -> UndoEntry | None:
        """The next appointment with a change to make."""
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(_PENDING, context.practice_id, undo_id)
        return None if row is None else _entry(row)

    async def finish(
        self,
        context: ActionContext,
        undo_id: str,
        entry: UndoEntry,
        *,
        done: int,
        failure: str | None = None,
        put_off: bool = False,
    ) -> None:
        """Stores what became of a change, unless another request has done so."""
        named = (context.practice_id, undo_id, entry.appointment_id, entry.done)
        async with self.database.transaction(context.practice_id) as connection:
            await connection.execute(_FINISH, *named, done, failure, put_off)


def undo_id_of(context: ActionContext, key: str) -> str:
    """The same form of the same staff member has the same id."""
    return f"undo_{hashlib.sha256(f'{context.staff.staff_id} {key}'.encode()).hexdigest()[:22]}"


def _columns(entry: UndoEntry) -> tuple[object, ...]:
    kept = (entry.appointment_id, entry.patient_id, entry.operations, entry.last_record, entry.updated_at)
    place = [None if entry.place is None else getattr(entry.place, each.name) for each in fields(Place)]
    return (*kept, entry.changes, entry.failure, *place)


def _entry(row: Row) -> UndoEntry:
    place = None if row["starts_at"] is None else Place(**{name: row[name] for name in field_names(Place)})
    return from_row(UndoEntry, row, place=place, operations=tuple(row["operations"]), changes=tuple(row["changes"]))
