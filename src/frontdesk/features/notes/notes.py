"""Notes of the desk on patients and appointments."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from frontdesk.desk.actors import actors_of
from frontdesk.desk.arrivals import VisitMark
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.text import character_error
from frontdesk.feature import Services
from frontdesk.features.notes.actions import ADD, REMOVE
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row
from frontdesk.texts import N_, Text

NoteKind = Literal["interpreter", "mobility", "reason", "other"]

KINDS: Mapping[NoteKind, str] = {
    "interpreter": N_("Interpreter"),
    "mobility": N_("Mobility"),
    "reason": N_("Reason for the visit"),
    "other": N_("Other"),
}
_MAX_LENGTH = 500
_MAX_NOTES = 50  # on a patient, with those on appointments
_ON_PATIENTS = """
SELECT patient_id, note_id AS id, appointment_id, kind, text, written_by, written_at, for_agents FROM desk_note
WHERE practice_id = $1 AND patient_id = ANY ($2) ORDER BY written_at, note_id
"""
_FOR_AGENTS = """
SELECT kind, text, appointment_id, written_at FROM desk_note
WHERE practice_id = $1 AND patient_id = $2 AND for_agents ORDER BY written_at, note_id
"""
_COUNT = "SELECT count(*) FROM desk_note WHERE practice_id = $1 AND patient_id = $2"
_ADD = """
INSERT INTO desk_note (practice_id, patient_id, note_id, appointment_id, kind, text, written_by, written_at, for_agents)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING note_id
"""
_REMOVE = """
DELETE FROM desk_note WHERE practice_id = $1 AND patient_id = $2 AND note_id = $3 RETURNING appointment_id
"""


@dataclass(frozen=True, slots=True)
class Note:
    id: str
    patient_id: str
    appointment_id: str | None  # None: about the patient
    kind: NoteKind
    text: str
    written_by: str
    written_at: datetime
    for_agents: bool  # clients with the scope notes:read may read it


@dataclass(frozen=True, slots=True)
class NoteForAgents:
    kind: NoteKind
    text: str
    appointment_id: str | None
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Notes:
    """The caller has checked that the patient and the appointment exist, and records that notes are shown."""

    database: Database

    async def add(
        self,
        context: ActionContext,
        patient_id: str,
        appointment_id: str | None,
        kind: str,
        text: str,
        key: str,
        *,
        for_agents: bool,
    ) -> None:
        """The same key adds one note."""
        text = text.strip()
        errors = []
        if kind not in KINDS:
            errors.append(FieldError("kind", "required", Text("%(field)s must be chosen")))
        if not text:
            errors.append(FieldError("text", "notBlank", Text("%(field)s must not be blank")))
        elif len(text) > _MAX_LENGTH:
            too_long = Text("%(field)s must be at most %(maximum)s characters", maximum=_MAX_LENGTH)
            errors.append(FieldError("text", "maxLength", too_long))
        elif (error := character_error(text)) is not None:
            errors.append(FieldError("text", "characters", Text(error)))
        if errors:
            raise invalid(errors)
        note_id = hashlib.sha256(f"{context.staff.staff_id} {key}".encode()).hexdigest()[:24]
        about = [patient_id, *([] if appointment_id is None else [appointment_id])]
        async with self.database.transaction(context.practice_id) as connection:
            if await connection.fetchval(_COUNT, context.practice_id, patient_id) >= _MAX_NOTES:
                full = Text("There are %(count)s notes on this patient already. Remove one first.", count=_MAX_NOTES)
                raise Problem("conflict", full)
            added = await connection.fetchval(
                _ADD,
                context.practice_id,
                patient_id,
                note_id,
                appointment_id,
                kind,
                text,
                context.staff.staff_id,
                context.now,
                for_agents,
            )
            if added is not None:
                await context.record_in(connection, ADD.name, *about)
        context.seal_soon()

    async def remove(self, context: ActionContext, patient_id: str, note_id: str) -> None:
        async with self.database.transaction(context.practice_id) as connection:
            removed = await connection.fetchrow(_REMOVE, context.practice_id, patient_id, note_id)
            if removed is None:
                raise Problem("not_found", "There is no such note.")
            about = removed["appointment_id"]
            await context.record_in(connection, REMOVE.name, patient_id, *([] if about is None else [about]))
        context.seal_soon()

    async def on_patients(self, practice_id: int, patient_ids: Sequence[str]) -> list[Note]:
        """Also those on their appointments, oldest first."""
        if not patient_ids:
            return []
        async with self.database.transaction(practice_id) as connection:
            rows = await connection.fetch(_ON_PATIENTS, practice_id, list(patient_ids))
        return [from_row(Note, row) for row in rows]

    async def authors(self, practice_id: int, notes: Sequence[Note]) -> Mapping[str, Actor]:
        return await actors_of(self.database, practice_id, {note.written_by for note in notes})

    async def for_agents(self, practice_id: int, patient_id: str) -> list[NoteForAgents]:
        """Those that staff have marked."""
        async with self.database.transaction(practice_id) as connection:
            rows = await connection.fetch(_FOR_AGENTS, practice_id, patient_id)
        return [from_row(NoteForAgents, row) for row in rows]


async def mark_visits(
    services: Services, practice_id: int, appointments: Sequence[Appointment]
) -> Mapping[str, Sequence[VisitMark]]:
    notes = await services[Notes].on_patients(practice_id, sorted({each.patient_id for each in appointments}))
    return {
        each.id: [
            VisitMark(KINDS[note.kind], note.text)
            for note in notes
            if note.patient_id == each.patient_id and note.appointment_id in (None, each.id)
        ]
        for each in appointments
    }
