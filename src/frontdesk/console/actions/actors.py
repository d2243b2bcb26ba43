"""Finds the names behind the ids of clients and staff members."""

from collections.abc import Iterable

from frontdesk.audit.trail import COMMAND_LINE
from frontdesk.console.names import Actor
from frontdesk.store.database import Database

_NAMES = """
SELECT c.client_id AS id, c.name || coalesce(' for ' || s.name, '') AS name, c.grant_kind AS kind
FROM client c LEFT JOIN staff s ON s.staff_id = c.staff_id WHERE c.practice_id = $1 AND c.client_id = ANY ($2)
UNION ALL
SELECT staff_id, name, 'staff' FROM staff WHERE practice_id = $1 AND staff_id = ANY ($2)
"""

_UNNAMED = {COMMAND_LINE: "Command line", "demo": "Demo data", "sign-in-page": "Sign-in page"}


async def actors_of(database: Database, practice_id: int, ids: Iterable[str]) -> dict[str, Actor]:
    """An actor for every id. An id without a known name is shown as it is."""
    wanted = set(ids)
    if not wanted:
        return {}
    rows = await database.fetch(_NAMES, practice_id, list(wanted))
    named = {row["id"]: Actor(row["id"], row["name"], row["kind"]) for row in rows}
    return {each: named.get(each) or Actor(each, _UNNAMED.get(each, each), "other") for each in wanted}
