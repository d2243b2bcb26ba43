"""The people of the console: who may sign in, for which practice, in which role.

Every change is recorded in the practice's audit trail in the same transaction, by ids: names and addresses are not.
Disabling or removing a person ends their sessions and links at once. Nobody becomes an operator by signing in.
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
SELECT o.operator_id, o.practice_id, p.slug, o.name, o.role, o.email, o.oidc_subject IS NOT NULL AS linked, o.disabled,
       o.created_at, o.signed_in_at
FROM operator o JOIN practice p USING (practice_id)
"""


class OperatorError(Exception):
    """One sentence about what was asked for and cannot be done."""


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    operator_id: str
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


async def add_operator(
    database: Database,
    *,
    practice: str,
    name: str,
    role: str,
    email: str | None = None,
    actor: str = COMMAND_LINE,
    clock: Clock = utc_now,
) -> OperatorRecord:
    name, checked_role, email = _checked_name(name), _checked_role(role), _checked_email(email)
    operator_id = "op_" + "".join(secrets.choice(_ALPHABET) for _ in range(20))
    async with database.transaction() as connection:
        practice_id = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
        if practice_id is None:
            slugs = [row["slug"] for row in await connection.fetch("SELECT slug FROM practice")]
            raise OperatorError(f"There is no practice {practice!r}{_closest(practice, slugs)}.")
        added = await connection.fetchval(
            """INSERT INTO operator (operator_id, practice_id, name, role, email, created_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (email) DO NOTHING RETURNING 1""",
            operator_id,
            practice_id,
            name,
            checked_role,
            email,
            clock(),
        )
        if added is None:
            raise OperatorError("Another person signs in with this e-mail address.")
        await record(connection, practice_id, clock(), actor, "console.add_operator", "executed", operator_id)
    return await show_operator(database, operator_id)


async def list_operators(database: Database, *, practice: str | None = None) -> list[OperatorRecord]:
    rows = await database.fetch(
        _SELECT + "WHERE $1::text IS NULL OR p.slug = $1 ORDER BY p.slug, o.created_at, o.operator_id", practice
    )
    return [OperatorRecord(*row.values()) for row in rows]


async def show_operator(database: Database, operator_id: str) -> OperatorRecord:
    row = await database.fetchrow(_SELECT + "WHERE o.operator_id = $1", operator_id)
    if row is None:
        raise OperatorError(f"There is no operator {operator_id!r}.")
    return OperatorRecord(*row.values())


async def disable_operator(
    database: Database, operator_id: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> OperatorRecord:
    """Nobody signs in as this person, and whoever is signed in as them is out."""
    async with database.transaction() as connection:
        await _change(connection, operator_id, "disabled = true", actor, "console.disable_operator", clock())
        await end_everything(connection, operator_id)
    return await show_operator(database, operator_id)


async def enable_operator(
    database: Database, operator_id: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> OperatorRecord:
    async with database.transaction() as connection:
        await _change(connection, operator_id, "disabled = false", actor, "console.enable_operator", clock())
    return await show_operator(database, operator_id)


async def set_role(
    database: Database, operator_id: str, role: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> OperatorRecord:
    """Holds from the next request on, also for whoever is signed in."""
    checked = _checked_role(role)
    async with database.transaction() as connection:
        await _change(connection, operator_id, "role = $2", actor, "console.set_operator_role", clock(), checked)
    return await show_operator(database, operator_id)


async def remove_operator(
    database: Database, operator_id: str, *, actor: str = COMMAND_LINE, clock: Clock = utc_now
) -> OperatorRecord:
    """Forgets name and address. What the person did stays in the audit trail under their id."""
    removed = await show_operator(database, operator_id)
    async with database.transaction() as connection:
        if await hold(connection, operator_id) is None:
            raise OperatorError(f"There is no operator {operator_id!r}.")
        await end_everything(connection, operator_id)
        await connection.execute("DELETE FROM operator WHERE operator_id = $1", operator_id)
        await record(
            connection, removed.practice_id, clock(), actor, "console.remove_operator", "executed", operator_id
        )
    return removed


async def hold(connection: Any, operator_id: str) -> Any:
    """The person's row, locked. Whoever changes a person, their links and sessions takes this lock first, so that
    nobody waits in a circle."""
    return await connection.fetchrow(
        """SELECT o.practice_id, o.disabled, p.suspended FROM operator o JOIN practice p USING (practice_id)
           WHERE o.operator_id = $1 FOR UPDATE OF o""",
        operator_id,
    )


async def end_everything(connection: Any, operator_id: str) -> None:
    """No session of this person lives on, and no link of theirs can be used."""
    await connection.execute("DELETE FROM operator_session WHERE operator_id = $1", operator_id)
    await connection.execute("DELETE FROM operator_link WHERE operator_id = $1", operator_id)


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
    connection: Any, operator_id: str, assignments: str, actor: str, operation: str, now: datetime, *values: Any
) -> None:
    """`assignments` is text of this module, never of a caller."""
    practice_id = await connection.fetchval(
        f"UPDATE operator SET {assignments} WHERE operator_id = $1 RETURNING practice_id",  # noqa: S608
        operator_id,
        *values,
    )
    if practice_id is None:
        raise OperatorError(f"There is no operator {operator_id!r}.")
    await record(connection, practice_id, now, actor, operation, "executed", operator_id)


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise OperatorError(f"A person's name is one line of 1 to {_LONGEST_NAME} characters.")
    return name


def _checked_role(role: str) -> Role:
    if role not in get_args(Role):
        raise OperatorError(f"A person's role is {' or '.join(get_args(Role))}.")
    return cast(Role, role)


def _checked_email(email: str | None) -> str | None:
    if email is None or not email.strip():
        return None
    email = email.strip().lower()
    if not _EMAIL.match(email) or not email.isprintable():
        raise OperatorError("An e-mail address looks like name@example.com.")
    return email


def _closest(word: str, known: Collection[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.0)
    return f"; the closest is {found[0]!r}" if found else ""
