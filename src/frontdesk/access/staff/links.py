"""One-time sign-in links for staff."""

from dataclasses import dataclass
from datetime import timedelta

from frontdesk.access.assistants.connections import disconnect_all
from frontdesk.access.opaque_tokens import digest_of, new_token
from frontdesk.access.staff.members import (
    Check,
    StaffError,
    StaffRecord,
    changing,
    delete_sessions_and_links,
    forget_credentials,
    member_for_update,
    show_staff,
)
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.store.database import Database
from frontdesk.texts import Text

LINK_LIFETIME = timedelta(minutes=15)
MAX_UNUSED_LINKS = 5
_ADD = "INSERT INTO staff_link VALUES ($1, $2, $3, $4)"
_UNUSED = "SELECT count(*) FROM staff_link WHERE staff_id = $1 AND used_at IS NULL AND expires_at > $2"
_BY_EMAIL = """
SELECT m.staff_id, m.practice_id, m.email, p.slug FROM staff m JOIN practice p USING (practice_id)
WHERE m.email = $1 AND NOT (m.disabled OR p.suspended) ORDER BY p.slug FOR UPDATE OF m
"""


async def new_link(
    database: Database, staff_id: str, *, audit: AuditContext, reset: bool = False, check: Check | None = None
) -> tuple[StaffRecord, str]:
    """The staff member and the token of a new link. Their unused links stop working.

    `reset` also ends their sessions, removes their passkeys and PIN and disconnects their assistants, for somebody who
    has lost a device: it may hold an assistant's tokens, and its finder may have connected one.
    """
    member = await show_staff(database, staff_id)
    token = new_token()
    async with changing(database, check) as connection:
        held = await member_for_update(connection, staff_id)
        if held is None or held["disabled"]:
            raise StaffError(Text("The staff member '%(staff)s' is disabled: enable them first.", staff=staff_id))
        await connection.execute("DELETE FROM staff_link WHERE staff_id = $1 AND used_at IS NULL", member.staff_id)
        if reset:
            await delete_sessions_and_links(connection, staff_id)
            await forget_credentials(connection, staff_id)
            await disconnect_all(connection, staff_id, audit.now)
            await append_audit(connection, audit.entry(member.practice_id, "console.reset_sign_in", [member.staff_id]))
        await connection.execute(_ADD, digest_of(token), member.staff_id, audit.now, audit.now + LINK_LIFETIME)
        await append_audit(connection, audit.entry(member.practice_id, "console.new_link", [member.staff_id]))
    return member, token


@dataclass(frozen=True, slots=True)
class MailedLink:
    practice_id: int
    practice_slug: str
    email: str
    token: str


async def links_for_email(database: Database, email: str, *, audit: AuditContext) -> list[MailedLink]:
    """A new link for each staff member with this address who may sign in. Earlier links stay valid, because anybody can
    ask for new ones; who has as many as `MAX_UNUSED_LINKS` gets no more until they expire."""
    made = []
    async with database.transaction() as connection:
        for row in await connection.fetch(_BY_EMAIL, email.strip().lower()):
            staff_id, practice_id = row["staff_id"], row["practice_id"]
            if await connection.fetchval(_UNUSED, staff_id, audit.now) >= MAX_UNUSED_LINKS:
                continue
            token = new_token()
            await connection.execute(_ADD, digest_of(token), staff_id, audit.now, audit.now + LINK_LIFETIME)
            await append_audit(connection, audit.entry(practice_id, "console.mail_link", [staff_id]))
            made.append(MailedLink(practice_id, row["slug"], row["email"], token))
    return made


def link_address(public_url: str, token: str) -> str:
    """The token is in the fragment: browsers do not send it, so no server or proxy logs it."""
    return f"{public_url}/console/sign-in#{token}"
