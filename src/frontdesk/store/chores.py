"""Which practices have something left over that is to be tidied up. One statement for all of them."""

from datetime import datetime
from typing import Literal

from frontdesk.store.database import Database

Chore = Literal[
    "unsealed records", "old intents", "old events", "ended deliveries", "old fine counts", "old coarse counts"
]


async def practices_with(database: Database, chore: Chore, before: datetime) -> list[int]:
    rows = await database.fetch("SELECT * FROM practices_with($1, $2) AS practice_id", chore, before)
    return [row["practice_id"] for row in rows]
