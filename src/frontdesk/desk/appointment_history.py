"""Who changed appointments, and where they were before they were moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk.domain.local_time import minute_of
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

_CHANGES = "SELECT * FROM appointment_changes($1, $2, NULL)"
_MOVES = """
SELECT appointment_id, starts_at, place FROM appointment_move
WHERE practice_id = $1 AND appointment_id = ANY ($2) ORDER BY appointment_id, move
"""


@dataclass(frozen=True, slots=True)
class AppointmentChange:
    """An executed change, as the audit trail has it."""

    appointment_id: str
    record_id: int
    at: datetime
    actor: str
    operation: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when an appointment is."""

    provider_id: int
    location_id: int
    visit_type_id: int
    procedure_id: int
    starts_at: datetime
    ends_at: datetime

    @property
    def slot(self) -> SlotRef:
        start, end = minute_of(self.starts_at), minute_of(self.ends_at)
        return SlotRef(self.provider_id, self.location_id, self.visit_type_id, self.procedure_id, start, end - start)


async def changes_of(
    database: Database, practice_id: int, appointment_ids: Sequence[str]
) -> dict[str, list[AppointmentChange]]:
    """The executed changes of each appointment, the oldest first."""
    found: dict[str, list[AppointmentChange]] = {each: [] for each in appointment_ids}
    for row in await database.fetch(_CHANGES, practice_id, list(appointment_ids)):
        if row["outcome"] == "executed":
            found[row["appointment_id"]].append(from_row(AppointmentChange, row))
    return found


async def places_before_moves(
    database: Database, practice_id: int, appointment_ids: Sequence[str]
) -> dict[str, list[Place | None]]:
    """Where each appointment was before each of its moves, the first move first; None where that is not known."""
    found: dict[str, list[Place | None]] = {each: [] for each in appointment_ids}
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_MOVES, practice_id, list(appointment_ids))
    for row in rows:
        kept = None if row["place"] is None else orjson.loads(row["place"])
        found[row["appointment_id"]].append(
            None
            if kept is None
            else Place(
                kept["providerId"],
                kept["locationId"],
                kept["visitTypeId"],
                kept["procedureId"],
                row["starts_at"],
                datetime.fromisoformat(kept["endsAt"]),
            )
        )
    return found
