"""One-time links: made for a person by somebody who may, used once, within a quarter of an hour."""

from collections.abc import Callable
from datetime import datetime, timedelta

from frontdesk.access.staff.members import StaffError, StaffRecord, hold, record, show_staff
from frontdesk.access.staff.sessions import digest_of, new_token
from frontdesk.store.database import Database

LINK_LIFETIME = timedelta(minutes=15)


async def new_link(
    database: Database, staff_id: str, *, actor: str, clock: Callable[[], datetime]
) -> tuple[StaffRecord, str]:
    """The person and the token of a fresh link. Links of theirs that were not used stop working."""
    member = await show_staff(database, staff_id)
    token, now = new_token(), clock()
    async with database.transaction() as connection:
        held = await hold(connection, staff_id)
        if held is None or held["disabled"]:
            raise StaffError(f"The staff member {staff_id!r} is disabled: enable them first.")
        await connection.execute("DELETE FROM staff_link WHERE staff_id = $1 AND used_at IS NULL", member.staff_id)
        await connection.execute(
            "INSERT INTO staff_link VALUES ($1, $2, $3, $4)",
            digest_of(token),
            member.staff_id,
            now,
            now + LINK_LIFETIME,
        )
        await record(connection, member.practice_id, now, actor, "console.new_link", "executed", member.staff_id)
    return member, token


def link_address(public_url: str, token: str) -> str:
    """What is behind the # stays in the browser: no server or proxy on the way sees or logs it."""
    return f"{public_url}/console/sign-in#{token}"
