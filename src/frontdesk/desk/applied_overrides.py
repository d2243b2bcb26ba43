"""The overrides that appointments were booked or moved by: which rules, who and why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.desk.actors import actors_of
from frontdesk.desk.names import Actor
from frontdesk.operations import OVERRIDE_BOOKING, OVERRIDE_MOVE
from frontdesk.store.database import Database

OVERRIDES = frozenset({OVERRIDE_BOOKING.name, OVERRIDE_MOVE.name})
_LIST = "SELECT * FROM list_overrides($1, $2)"


@dataclass(frozen=True, slots=True)
class AppliedOverride:
    """A booking or a move against the rules."""

    appointment_id: str
    at: datetime
    by: Actor
    rules: Sequence[str]
    reason: str
    stands: bool  # False: the appointment has been moved since


async def overrides_of(
    database: Database, practice_id: int, appointment_ids: Iterable[str]
) -> dict[str, list[AppliedOverride]]:
    """The overrides of each appointment, oldest first. The caller records that they are shown."""
    wanted = list(appointment_ids)
    rows = await database.fetch(_LIST, practice_id, wanted) if wanted else []
    actors = await actors_of(database, practice_id, {row["staff_id"] for row in rows}) if rows else {}
    found: dict[str, list[AppliedOverride]] = {}
    for row in rows:
        applied = AppliedOverride(
            row["appointment_id"], row["at"], actors[row["staff_id"]], row["rules"], row["reason"], row["stands"]
        )
        found.setdefault(applied.appointment_id, []).append(applied)
    return found


def current_overrides(overrides: Mapping[str, Sequence[AppliedOverride]]) -> dict[str, AppliedOverride]:
    """The ones that appointments stand by now, by appointment."""
    return {key: each for key, applied in overrides.items() for each in applied if each.stands}
