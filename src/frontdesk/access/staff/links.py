"""One-time sign-in links for staff."""

from datetime import timedelta

from frontdesk.access.opaque_tokens import digest_of, new_token
from frontdesk.access.staff.members import StaffError, StaffRecord, delete_sessions_and_links, hold, show_staff
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.store.database import Database

LINK_LIFETIME = timedelta(minutes=15)


async def new_link(
    database: Database, staff_id: str, *, audit: AuditContext, reset: bool = False
) -> tuple[StaffRecord, str]:
    """The staff member and the token of a new link. Their unused links stop working.

    `reset` also ends their sessions and removes their passkeys, for a staff member who has lost a device.
    """
    member = await show_staff(database, staff_id)
    token = new_token()
    async with database.transaction() as connection:
        held = await hold(connection, staff_id)
        if held is None or held["disabled"]:
            raise StaffError(f"The staff member {staff_id!r} is disabled: enable them first.")
        await connection.execute("DELETE FROM staff_link WHERE staff_id = $1 AND used_at IS NULL", member.staff_id)
        if reset:
            await delete_sessions_and_links(connection, staff_id)
            await connection.execute("DELETE FROM staff_passkey WHERE staff_id = $1", staff_id)
            await append_audit(connection, audit.entry(member.practice_id, "console.reset_sign_in", [member.staff_id]))
        insert, expires_at = "INSERT INTO staff_link VALUES ($1, $2, $3, $4)", audit.now + LINK_LIFETIME
        await connection.execute(insert, digest_of(token), member.staff_id, audit.now, expires_at)
        await append_audit(connection, audit.entry(member.practice_id, "console.new_link", [member.staff_id]))
    return member, token


def link_address(public_url: str, token: str) -> str:
    """The token is in the fragment: browsers do not send it, so no server or proxy logs it."""
    return f"{public_url}/console/sign-in#{token}"
