"""Hosts of assistants that a practice trusts to ask people: what they report counts as consent.

A host is where an assistant's codes are sent, which says who runs it.
"""

from frontdesk.access.assistants.redirects import names_operator
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database
from frontdesk.store.notifications import notify

_CHANGE = """
UPDATE practice SET trusted_hosts = array_remove(trusted_hosts, $2) || CASE WHEN $3 THEN ARRAY[$2] ELSE '{}'::text[] END
WHERE practice_id = $1 RETURNING slug
"""
_IS_CONNECTED = (
    "SELECT EXISTS (SELECT FROM client WHERE practice_id = $1 AND callback_host = $2 AND revoked_at IS NULL)"
)


async def trusted_hosts(database: Database, practice_id: int) -> list[str]:
    select = "SELECT trusted_hosts FROM practice WHERE practice_id = $1"
    return sorted(await database.fetchval(select, practice_id))


async def change_trust(database: Database, practice_id: int, host: str, audit: AuditContext, *, trusted: bool) -> None:
    """Trusts a host, also for assistants that staff connect later, or ends it. Takes effect within seconds."""
    async with database.transaction() as connection:
        if trusted and not (names_operator(host) and await connection.fetchval(_IS_CONNECTED, practice_id, host)):
            raise Problem("not_found", "No assistant of this host is connected.")
        slug = await connection.fetchval(_CHANGE, practice_id, host, trusted)
        name = "console.trust_assistants" if trusted else "console.distrust_assistants"
        await append_audit(connection, audit.entry(practice_id, name, [host]))
        await notify(connection, "practice", slug)
