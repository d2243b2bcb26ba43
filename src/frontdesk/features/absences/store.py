"""Absences in the database. Each change commits with its audit record."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from frontdesk.desk.context import ActionContext
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.errors import Problem
from frontdesk.features.absences.actions import REASSIGN, RECORD_CALL, START, UNDO, WITHDRAW_CALL
from frontdesk.features.absences.records import Absence, AbsenceEntry, Choice, entry_of
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

_LOCK = "SELECT FROM practice WHERE practice_id = $1 FOR NO KEY UPDATE"
_COVERING = """
SELECT * FROM provider_absence
WHERE practice_id = $1 AND provider_id = $2 AND starts <= $3 AND ends >= $4 AND ended_at IS NULL
ORDER BY started_at, absence_id LIMIT 1
"""
_CURRENT = """
SELECT * FROM provider_absence WHERE practice_id = $1 AND starts < $3 AND ends > $2 AND ended_at IS NULL
ORDER BY starts, provider_id, absence_id
"""
_START = """
INSERT INTO provider_absence (practice_id, absence_id, provider_id, starts, ends, reason, started_by, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_ABSENCE = "SELECT * FROM provider_absence WHERE practice_id = $1 AND absence_id = $2"
_ENTRIES = """
SELECT * FROM absence_appointment WHERE practice_id = $1 AND absence_id = $2 ORDER BY starts_at, appointment_id
"""
_ADD = """
INSERT INTO absence_appointment (practice_id, absence_id, appointment_id, patient_id, location_id, visit_type_id,
    procedure_id, starts_at, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING
"""
# What is being executed is not chosen again.
_CHOOSE = """
UPDATE absence_appointment SET choice = $4, slot_id = $5, request_id = $6, failure = NULL
WHERE practice_id = $1 AND absence_id = $2 AND appointment_id = $3 AND (choice IS NULL OR choice = 'leave')
"""
_TAKE_BACK = """
UPDATE absence_appointment SET choice = 'back', request_id = $4, failure = NULL
WHERE practice_id = $1 AND absence_id = $2 AND ($3::text IS NULL OR appointment_id = $3) AND outcome IS NOT NULL
  AND (choice IS NULL OR choice = 'leave')
RETURNING 1
"""
_END = """
UPDATE provider_absence SET ended_at = $3 WHERE practice_id = $1 AND absence_id = $2 AND ended_at IS NULL
"""
_PENDING = """
SELECT * FROM absence_appointment
WHERE practice_id = $1 AND absence_id = $2 AND choice IN ('move', 'cancel', 'back')
ORDER BY starts_at, appointment_id LIMIT 1
"""
_FINISH = """
UPDATE absence_appointment SET choice = $6, slot_id = NULL, failure = $7, outcome = $8,
    request_id = CASE WHEN $6 = 'back' THEN request_id END
WHERE practice_id = $1 AND absence_id = $2 AND appointment_id = $3 AND choice = $4 AND request_id = $5
"""
_CALLED = """
UPDATE absence_appointment SET announced_place = $4, called_by = $5, called_at = $6
WHERE practice_id = $1 AND absence_id = $2 AND appointment_id = $3 RETURNING patient_id
"""
_MAX_PLACE_LENGTH = 100


@dataclass(frozen=True, slots=True)
class AbsenceStore:
    database: Database

    async def start(self, context: ActionContext, away: Absence, found: Iterable[Appointment]) -> str:
        """Stores the absence with its appointments, or returns the current one of the provider that covers it."""
        practice_id = context.practice_id
        async with self.database.transaction(practice_id) as connection:
            await connection.execute(_LOCK, practice_id)  # of two requests, the second finds the absence of the first
            span = (away.provider_id, away.starts, away.ends)
            covering = await connection.fetchrow(_COVERING, practice_id, *span)
            if covering is not None:
                return str(covering["absence_id"])
            stored = (away.absence_id, *span, away.reason, away.started_by, away.started_at)
            await connection.execute(_START, practice_id, *stored)
            await _add(connection, practice_id, away.absence_id, found)
            await context.record_in(connection, START.name, f"provider {away.provider_id}")
        context.seal_soon()
        return away.absence_id

    async def covering(
        self, context: ActionContext, provider_id: int, starts: datetime, ends: datetime
    ) -> Absence | None:
        """The provider's current absence that contains this time."""
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(_COVERING, context.practice_id, provider_id, starts, ends)
        return None if row is None else from_row(Absence, row)

    async def current(self, context: ActionContext, first: date, last: date) -> list[Absence]:
        """The absences on these days that were not undone."""
        days = (datetime.combine(first, time()), datetime.combine(last + timedelta(days=1), time()))
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_CURRENT, context.practice_id, *days)
        return [from_row(Absence, row) for row in rows]

    async def find(self, context: ActionContext, absence_id: str) -> tuple[Absence, dict[str, AbsenceEntry]]:
        """The absence, and its appointments by id."""
        async with self.database.transaction(context.practice_id) as connection:
            found = await connection.fetchrow(_ABSENCE, context.practice_id, absence_id)
            rows = await connection.fetch(_ENTRIES, context.practice_id, absence_id)
        if found is None:
            raise Problem("not_found", "There is no such absence.")
        return from_row(Absence, found), {row["appointment_id"]: from_row(AbsenceEntry, row) for row in rows}

    async def choose(
        self, context: ActionContext, absence: Absence, chosen: Mapping[str, str], added: Iterable[Appointment]
    ) -> None:
        practice_id, absence_id = context.practice_id, absence.absence_id
        async with self.database.transaction(practice_id) as connection:
            await _add(connection, practice_id, absence_id, added)
            for appointment_id, value in chosen.items():
                choice, slot_id = (value, None) if value in ("cancel", "leave") else ("move", value)
                named = (practice_id, absence_id, appointment_id)
                await connection.execute(_CHOOSE, *named, choice, slot_id, context.request_id)
            await context.record_in(connection, REASSIGN.name, f"provider {absence.provider_id}")
        context.seal_soon()

    async def take_back(self, context: ActionContext, absence: Absence, appointment_id: str | None) -> None:
        """Marks a reassignment as taken back. Without an appointment id, takes back all and ends the absence."""
        practice_id, absence_id = context.practice_id, absence.absence_id
        async with self.database.transaction(practice_id) as connection:
            if appointment_id is None:
                await connection.execute(_END, practice_id, absence_id, context.now)
            found = await connection.fetch(_TAKE_BACK, practice_id, absence_id, appointment_id, context.request_id)
            if appointment_id is not None and not found:
                raise Problem("conflict", "There is nothing to undo.")
            await context.record_in(connection, UNDO.name, f"provider {absence.provider_id}")
        context.seal_soon()

    async def pending(self, context: ActionContext, absence_id: str) -> AbsenceEntry | None:
        """The first appointment whose choice is not executed yet."""
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(_PENDING, context.practice_id, absence_id)
        return None if row is None else from_row(AbsenceEntry, row)

    async def finish(
        self,
        context: ActionContext,
        absence: Absence,
        entry: AbsenceEntry,
        after: Choice | None,
        failure: str | None,
        outcome: str | None,
    ) -> None:
        """Stores what became of a choice, unless another request has done so."""
        named = (context.practice_id, absence.absence_id, entry.appointment_id, entry.choice, entry.request_id)
        async with self.database.transaction(context.practice_id) as connection:
            await connection.execute(_FINISH, *named, after, failure, outcome)

    async def record_call(
        self, context: ActionContext, absence_id: str, appointment_id: str, place: str, *, called: bool
    ) -> None:
        call = (place[:_MAX_PLACE_LENGTH], context.staff.staff_id, context.now) if called else (None, None, None)
        action = RECORD_CALL if called else WITHDRAW_CALL
        async with self.database.transaction(context.practice_id) as connection:
            patient_id = await connection.fetchval(_CALLED, context.practice_id, absence_id, appointment_id, *call)
            if patient_id is None:
                raise Problem("not_found", "There is no such appointment.")
            await context.record_in(connection, action.name, appointment_id, patient_id)
        context.seal_soon()


def new_absence_id() -> str:
    return f"abs_{secrets.token_hex(11)}"


async def _add(connection: Connection, practice_id: int, absence_id: str, found: Iterable[Appointment]) -> None:
    for entry in map(entry_of, found):
        visit = (entry.location_id, entry.visit_type_id, entry.procedure_id, entry.starts_at, entry.ends_at)
        await connection.execute(_ADD, practice_id, absence_id, entry.appointment_id, entry.patient_id, *visit)
