"""Notes of the desk on a patient or an appointment, such as "needs an interpreter". Staff may mark one for agents."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.desk.actors import actors_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.notes import NoteKind
from frontdesk.domain.text import character_fault
from frontdesk.store.database import Database
from frontdesk.texts import N_

KINDS: Mapping[NoteKind, str] = {
    "interpreter": N_("Interpreter"),
    "mobility": N_("Mobility"),
    "reason": N_("Reason for the visit"),
    "other": N_("Other"),
}
LONGEST = 500
_MOST = 50  # on a patient, with those on appointments
_OF_PATIENTS = """
SELECT patient_id, note_id, appointment_id, kind, text, written_by, written_at, for_agents FROM desk_note
WHERE practice_id = $1 AND patient_id = ANY ($2) ORDER BY written_at, note_id
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
    kind: str
    text: str
    by: Actor
    at: datetime
    for_agents: bool  # clients with the scope notes:read may read it


@dataclass(frozen=True, slots=True)
class Notes:
    """The caller has checked that the patient and the appointment exist."""

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
        faults = []
        if kind not in KINDS:
            faults.append(FieldError("kind", "required", "kind must be chosen"))
        if not text:
            faults.append(FieldError("text", "notBlank", "text must not be blank"))
        elif len(text) > LONGEST:
            faults.append(FieldError("text", "maxLength", f"text must be at most {LONGEST} characters"))
        elif (fault := character_fault(text)) is not None:
            faults.append(FieldError("text", "characters", f"text {fault}"))
        if faults:
            raise invalid(faults)
        note_id = hashlib.sha256(f"{context.staff.staff_id} {key}".encode()).hexdigest()[:24]
        about = [patient_id, *([] if appointment_id is None else [appointment_id])]
        async with self.database.transaction(context.practice_id) as connection:
            if await connection.fetchval(_COUNT, context.practice_id, patient_id) >= _MOST:
                raise Problem("conflict", f"There are {_MOST} notes on this patient already. Remove one first.")
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
                await context.record_in(connection, "console.add_note", *about)
        context.seal_soon()

    async def remove(self, context: ActionContext, patient_id: str, note_id: str) -> None:
        async with self.database.transaction(context.practice_id) as connection:
            removed = await connection.fetchrow(_REMOVE, context.practice_id, patient_id, note_id)
            if removed is None:
                raise Problem("not_found", "There is no such note.")
            about = removed["appointment_id"]
            await context.record_in(connection, "console.remove_note", patient_id, *([] if about is None else [about]))
        context.seal_soon()


async def notes_on(database: Database, practice_id: int, patient_ids: Sequence[str]) -> list[Note]:
    """The notes on patients and their appointments, oldest first. The caller records that they are shown."""
    if not patient_ids:
        return []
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_OF_PATIENTS, practice_id, list(patient_ids))
    actors = await actors_of(database, practice_id, {row["written_by"] for row in rows})
    return [
        Note(
            row["note_id"],
            row["patient_id"],
            row["appointment_id"],
            row["kind"],
            row["text"],
            actors[row["written_by"]],
            row["written_at"],
            row["for_agents"],
        )
        for row in rows
    ]
