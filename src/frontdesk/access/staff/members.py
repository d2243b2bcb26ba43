"""The people of the console: who may sign in, for which practice, in which role.

Every change is recorded in the practice's audit trail in the same transaction, by ids: names and addresses are not.
Disabling or removing a person ends their sessions and links at once. Signing in never makes anyone staff.
"""

import difflib
import re
import secrets
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from frontdesk.store.database import Database

Role = Literal["staff", "admin"]
Clock = Callable[[], datetime]
OPERATOR_ID = re.compile(r"op_[0-9A-Za-z]{20}\Z")
COMMAND_LINE = "command-line"
"""The actor of what is done from the command line, where nobody has signed in."""

_ALPHABET = string.digits + string.ascii_letters
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}\Z")
_LONGEST_NAME = 100
_SELECT = """
SELECT o.staff_id, o.practice_id, p.slug, o.name, o.role, o.email, o.oidc_subject IS NOT NULL AS linked, o.disabled,
       o.created_at, o.signed_in_at
FROM staff o JOIN practice p USING (practice_id)
"""


class StaffError(Exception):
    """One sentence about what was asked for and cannot be done."""


@dataclass(frozen=True, slots=True)
class StaffRecord:
    staff_id: str
    practice_id: int
    practice_slug: str
    name: str
    role: Role
    email: str | None
    linked: bool  # an identity elsewhere has signed in as this person
    disabled: bool
    created_at: datetime
    signed_in_at: datetime | None


def utc_now() -> datetime:
    return datetime.now(UTC)


async def add_staff(
    database: Database,
    *,
    practice: str,
    name: str,
    role: str,
    email: str | None = None,
    actor: str = COMMAND_LINE,
    clock: Clock = utc_now,
) -> StaffRecord:
    name, checked_role, email = _checked_name(name), _checked_role(role), _checked_email(email)
    staff_id = "op_" + "".join(secrets.choice(_ALPHABET) for _ in range(20))
    async with database.transaction() as connection:
        practice_id = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
        if practice_id is None:
            slugs = [row["slug"] for row in await connection.fetch("SELECT slug FROM practice")]
            raise StaffError(f"There is no practice {practice!r}{_closest(practice, slugs)}.")
        added = await connection.fetchval(
            """INSERT INTO staff (staff_id, practice_id, name, role, email, created_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (email) DO NOTHING RETURNING 1""",
            staff_id,
            practice_id,
            name,
            checked_role,
            email,
            clock(),
        )
        if added is None:
            raise StaffError("Another person signs in with this e-mail address.")
        await record(connection, practice_id, clock(), actor, "console.add_staff", "executed", staff_id)
    return await show_staff(database, staff_id)


async def list_staff(database: Database, *, practice: str | None = None) -> list[StaffRecord]:
    rows = await database.fetch(
        _SELECT + "WHERE $1::text IS NULL OR p.slug = $1 ORDER BY p.slug, o.created_at, o.staff_id", practice
    )
    return [StaffRecord(*row.values()) for row in rows]


async def show_staff(database: Database, staff_id: str) -> StaffRecord:
    row = await database.fetchrow(_SELECT + "WHERE o.staff_id = $1", staff_id)
    if row is None:
        raise StaffError(f"There is no staff member {staff_id!r}.")
    return StaffRecord(*row.values())


async def disable_staff(
    database: Database, staff_id: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> StaffRecord:
    """Nobody signs in as this person, and whoever is signed in as them is out."""
    async with database.transaction() as connection:
        await _change(connection, staff_id, "disabled = true", actor, "console.disable_staff", clock())
        await end_everything(connection, staff_id)
    return await show_staff(database, staff_id)


async def enable_staff(
    database: Database, staff_id: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> StaffRecord:
    async with database.transaction() as connection:
        await _change(connection, staff_id, "disabled = false", actor, "console.enable_staff", clock())
    return await show_staff(database, staff_id)


async def set_role(
    database: Database, staff_id: str, role: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> StaffRecord:
    """Holds from the next request on, also for whoever is signed in."""
    checked = _checked_role(role)
    async with database.transaction() as connection:
        await _change(connection, staff_id, "role = $2", actor, "console.set_staff_role", clock(), checked)
    return await show_staff(database, staff_id)


async def remove_staff(
    database: Database, staff_id: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> StaffRecord:
    """Forgets name and address. What the person did stays in the audit trail under their id."""
    removed = await show_staff(database, staff_id)
    async with database.transaction() as connection:
        if await hold(connection, staff_id) is None:
            raise StaffError(f"There is no staff member {staff_id!r}.")
        await end_everything(connection, staff_id)
        await connection.execute("DELETE FROM staff WHERE staff_id = $1", staff_id)
        await record(connection, removed.practice_id, clock(), actor, "console.remove_staff", "executed", staff_id)
    return removed


async def hold(connection: Any, staff_id: str) -> Any:
    """The person's row, locked. Whoever changes a person, their links and sessions takes this lock first, so that
    nobody waits in a circle."""
    return await connection.fetchrow(
        """SELECT o.practice_id, o.disabled, p.suspended FROM staff o JOIN practice p USING (practice_id)
           WHERE o.staff_id = $1 FOR UPDATE OF o""",
        staff_id,
    )


async def end_everything(connection: Any, staff_id: str) -> None:
    """No session of this person lives on, and no link of theirs can be used."""
    await connection.execute("DELETE FROM staff_session WHERE staff_id = $1", staff_id)
    await connection.execute("DELETE FROM staff_link WHERE staff_id = $1", staff_id)


async def record(
    connection: Any, practice_id: int, now: datetime, actor: str, operation: str, outcome: str, *subjects: str
) -> None:
    """An audit record that commits with the change it is about."""
    await connection.execute(
        "SELECT append_audit($1, $2, $3, $4, $5, $6, $7)",
        practice_id,
        now,
        actor,
        operation,
        outcome,
        list(subjects),
        secrets.token_hex(16),
    )


async def _change(
    connection: Any, staff_id: str, assignments: str, actor: str, operation: str, now: datetime, *values: Any
) -> None:
    """`assignments` is text of this module, never of a caller."""
    practice_id = await connection.fetchval(
        f"UPDATE staff SET {assignments} WHERE staff_id = $1 RETURNING practice_id",  # noqa: S608
        staff_id,
        *values,
    )
    if practice_id is None:
        raise StaffError(f"There is no staff member {staff_id!r}.")
    await record(connection, practice_id, now, actor, operation, "executed", staff_id)


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise StaffError(f"A person's name is one line of 1 to {_LONGEST_NAME} characters.")
    return name


def _checked_role(role: str) -> Role:
    if role not in get_args(Role):
        raise StaffError(f"A person's role is {' or '.join(get_args(Role))}.")
    return cast(Role, role)


def _checked_email(email: str | None) -> str | None:
    if email is None or not email.strip():
        return None
    email = email.strip().lower()
    if not _EMAIL.match(email) or not email.isprintable():
        raise StaffError("An e-mail address looks like name@example.com.")
    return email


def _closest(word: str, known: Collection[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.0)
    return f"; the closest is {found[0]!r}" if found else ""
