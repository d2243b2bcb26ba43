"""Reads the notes that staff have marked for agents."""

from dataclasses import dataclass

from frontdesk.domain.notes import SharedNote
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

_FOR_AGENTS = """
SELECT kind, text, appointment_id, written_at FROM desk_note
WHERE practice_id = $1 AND patient_id = $2 AND for_agents ORDER BY written_at, note_id
"""


@dataclass(frozen=True, slots=True)
class SharedNotes:
    database: Database

    async def on_patient(self, practice_id: int, patient_id: str) -> list[SharedNote]:
        async with self.database.transaction(practice_id) as connection:
            rows = await connection.fetch(_FOR_AGENTS, practice_id, patient_id)
        return [from_row(SharedNote, row) for row in rows]
