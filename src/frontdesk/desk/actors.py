"""Finds the names behind the ids of clients and staff members."""

from collections.abc import Iterable

from frontdesk.audit.trail import COMMAND_LINE
from frontdesk.desk.names import Actor
from frontdesk.feature import features
from frontdesk.store.database import Database
from frontdesk.texts import N_

_NAMES = """
SELECT c.client_id AS id, c.name, c.grant_kind AS kind, s.name AS connected_by
FROM client c LEFT JOIN staff s ON s.staff_id = c.staff_id WHERE c.practice_id = $1 AND c.client_id = ANY ($2)
UNION ALL
SELECT staff_id, name, 'staff', NULL FROM staff WHERE practice_id = $1 AND staff_id = ANY ($2)
"""

_UNNAMED = {COMMAND_LINE: N_("Command line"), "demo": N_("Demo data"), "sign-in-page": N_("Sign-in page")}


async def actors_of(database: Database, practice_id: int, ids: Iterable[str]) -> dict[str, Actor]:
    """An actor for every id. An id without a known name is shown as it is."""
    wanted = set(ids)
    if not wanted:
        return {}
    rows = await database.fetch(_NAMES, practice_id, list(wanted))
    named = {row["id"]: Actor(row["id"], row["name"], row["kind"], row["connected_by"]) for row in rows}
    return {each: named.get(each) or Actor(each, _unnamed(each), "other") for each in wanted}


def _unnamed(actor_id: str) -> str:
    of_features = (named for feature in features() for named in feature.parts.actors.items())
    found = next((name for prefix, name in of_features if actor_id.startswith(prefix)), None)
    return found or _UNNAMED.get(actor_id, actor_id)
