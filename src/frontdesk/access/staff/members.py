"""Staff members: who may sign in to the console, for which practice, in which role.

Every change commits with its audit record. Disabling or removing a staff member ends their sessions, links and
assistants at once.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast, get_args

from asyncpg import Record

from frontdesk.access.assistants.connections import disconnect_all, notify_connections
from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.domain.ids import random_base62
from frontdesk.domain.text import character_error
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.practices import is_removed, why_unusable
from frontdesk.texts import N_, ExplainedError, Text

Role = Literal["staff", "admin"]
Check = Callable[[Connection], Awaitable[None]]
"""Whether somebody may make a change: given its connection before anything else, and may refuse."""

_EVERY_SCOPE = frozenset(SCOPES)
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}\Z")
_MAX_NAME_LENGTH = 100
_NAME_RULE = N_("A staff member's name is one line of 1 to %(maximum)s characters.")
_SELECT = """
SELECT s.staff_id, s.practice_id, p.slug, s.name, s.role, s.email, s.oidc_subject IS NOT NULL AS linked, s.disabled,
       s.created_at, s.signed_in_at
FROM staff s JOIN practice p USING (practice_id)
"""
_ADD = """
INSERT INTO staff (staff_id, practice_id, name, role, email, created_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (practice_id, email) DO NOTHING RETURNING 1
"""


class StaffError(ExplainedError):
    """The request cannot be carried out."""


@dataclass(frozen=True, slots=True)
class StaffMember:
    staff_id: str  # the actor in audit records and booked_by
    name: str
    role: Role
    practice_id: int
    practice_slug: str
    directory_version: int

    def may(self, role: Role) -> bool:
        """Admins may do everything that staff may."""
        return role == "staff" or self.role == "admin"

    def caller(self) -> Caller:
        """The caller of operations: like an integration's, a staff member's writes execute without confirmation."""
        return Caller(
            client_id=self.staff_id,
            practice_id=self.practice_id,
            practice_slug=self.practice_slug,
            scopes=_EVERY_SCOPE,
            grant="integration",
            directory_version=self.directory_version,
            consent="staff",
        )


@dataclass(frozen=True, slots=True)
class StaffRecord:
    staff_id: str
    practice_id: int
    practice_slug: str
    name: str
    role: Role
    email: str | None
    linked: bool  # has signed in through the identity provider
    disabled: bool
    created_at: datetime
    signed_in_at: datetime | None


async def add_staff(
    database: Database,
    *,
    practice: str,
    name: str,
    role: str,
    email: str | None = None,
    audit: AuditContext,
    check: Check | None = None,
) -> StaffRecord:
    name, checked_role, email = checked_name(name), _checked_role(role), _checked_email(email)
    staff_id = "op_" + random_base62(20)
    async with changing(database, check) as connection:
        practice_id = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
        if practice_id is None or is_removed(practice):
            slugs = [row["slug"] for row in await connection.fetch("SELECT slug FROM practice")]
            raise StaffError(why_unusable(practice, slugs))
        if await connection.fetchval(_ADD, staff_id, practice_id, name, checked_role, email, audit.now) is None:
            raise StaffError("Another staff member signs in with this e-mail address.")
        await append_audit(connection, audit.entry(practice_id, "console.add_staff", [staff_id]))
    return await show_staff(database, staff_id)


async def list_staff(database: Database, *, practice: str | None = None) -> list[StaffRecord]:
    rows = await database.fetch(
        _SELECT + "WHERE $1::text IS NULL OR p.slug = $1 ORDER BY p.slug, s.created_at, s.staff_id", practice
    )
    return [StaffRecord(*row.values()) for row in rows]


async def show_staff(database: Database, staff_id: str) -> StaffRecord:
    row = await database.fetchrow(_SELECT + "WHERE s.staff_id = $1", staff_id)
    if row is None:
        raise StaffError(f"There is no staff member {staff_id!r}.")
    return StaffRecord(*row.values())


async def disable_staff(
    database: Database, staff_id: str, *, audit: AuditContext, check: Check | None = None
) -> StaffRecord:
    """Ends the staff member's sessions, disconnects their assistants and refuses new ones."""

    async def end(connection: Connection, staff_id: str) -> None:
        await delete_sessions_and_links(connection, staff_id)
        await disconnect_all(connection, staff_id, audit.now)

    return await _change(
        database, staff_id, audit, "console.disable_staff", "disabled = true", follow_up=end, check=check
    )


async def enable_staff(
    database: Database, staff_id: str, *, audit: AuditContext, check: Check | None = None
) -> StaffRecord:
    return await _change(database, staff_id, audit, "console.enable_staff", "disabled = false", check=check)


async def set_role(
    database: Database, staff_id: str, role: str, *, audit: AuditContext, check: Check | None = None
) -> StaffRecord:
    """Takes effect with the staff member's next request, and within seconds for their assistants."""
    return await _change(
        database,
        staff_id,
        audit,
        "console.set_staff_role",
        "role = $2",
        _checked_role(role),
        follow_up=notify_connections,
        check=check,
    )


async def remove_staff(
    database: Database, staff_id: str, *, audit: AuditContext, check: Check | None = None
) -> StaffRecord:
    """Deletes name and address. The audit trail keeps the staff member's id."""
    removed = await show_staff(database, staff_id)
    async with changing(database, check) as connection:
        if await member_for_update(connection, staff_id) is None:
            raise StaffError(f"There is no staff member {staff_id!r}.")
        await delete_sessions_and_links(connection, staff_id)
        await disconnect_all(connection, staff_id, audit.now)
        await forget_credentials(connection, staff_id)
        await connection.execute("DELETE FROM staff WHERE staff_id = $1", staff_id)
        await append_audit(connection, audit.entry(removed.practice_id, "console.remove_staff", [staff_id]))
    return removed


async def member_for_update(connection: Connection, staff_id: str) -> Record | None:
    """The staff member's row, locked. Taken before the rows of links and sessions, so that changes cannot deadlock."""
    return await connection.fetchrow(
        """SELECT s.practice_id, s.disabled, p.suspended FROM staff s JOIN practice p USING (practice_id)
           WHERE s.staff_id = $1 FOR UPDATE OF s""",
        staff_id,
    )


async def delete_sessions_and_links(connection: Connection, staff_id: str) -> None:
    """Deletes the sessions and links of a staff member."""
    await connection.execute("DELETE FROM staff_session WHERE staff_id = $1", staff_id)
    await connection.execute("DELETE FROM staff_link WHERE staff_id = $1", staff_id)


async def forget_credentials(connection: Connection, staff_id: str) -> None:
    """Deletes the passkeys and the PIN of a staff member."""
    await connection.execute("DELETE FROM staff_passkey WHERE staff_id = $1", staff_id)
    await connection.execute("DELETE FROM staff_pin WHERE staff_id = $1", staff_id)


async def _change(
    database: Database,
    staff_id: str,
    audit: AuditContext,
    operation: str,
    assignments: str,
    *values: object,
    follow_up: Callable[[Connection, str], Awaitable[None]] | None = None,
    check: Check | None,
) -> StaffRecord:
    """`assignments` is SQL of this module, never a caller's text."""
    update = f"UPDATE staff SET {assignments} WHERE staff_id = $1 RETURNING practice_id"  # noqa: S608
    async with changing(database, check) as connection:
        practice_id = await connection.fetchval(update, staff_id, *values)
        if practice_id is None:
            raise StaffError(f"There is no staff member {staff_id!r}.")
        await append_audit(connection, audit.entry(practice_id, operation, [staff_id]))
        if follow_up is not None:
            await follow_up(connection, staff_id)
    return await show_staff(database, staff_id)


@asynccontextmanager
async def changing(database: Database, check: Check | None) -> AsyncIterator[Connection]:
    """The connection of a transaction that `check` has let in."""
    async with database.transaction() as connection:
        if check is not None:
            await check(connection)
        yield connection


def checked_name(name: str, rule: str = _NAME_RULE) -> str:
    name = name.strip()
    if not name or len(name) > _MAX_NAME_LENGTH or character_error(name):
        raise StaffError(Text(rule, maximum=_MAX_NAME_LENGTH))
    return name


def _checked_role(role: str) -> Role:
    if role not in get_args(Role):
        roles = " or ".join(get_args(Role))
        raise StaffError(f"A staff member's role is {roles}.")
    return cast(Role, role)


def _checked_email(email: str | None) -> str | None:
    if email is None or not email.strip():
        return None
    email = email.strip().lower()
    if not _EMAIL.match(email) or character_error(email):
        raise StaffError("An e-mail address looks like name@example.com.")
    return email
