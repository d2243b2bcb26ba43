"""Checks that a session has the service's role and settings: without them, rows of other practices could be seen.

A pooler such as PgBouncer drops the settings that a connection asks for, and gives each transaction another session.
"""

from collections.abc import Mapping

from asyncpg import exceptions as pg

from frontdesk.store.connection import Connection

_NOT_COMPARED = ("application_name",)
# The arrays make asyncpg look their types up now, not during the first request.
_STATE = """
SELECT '{}'::integer[], '{}'::timestamptz[], session_user AS login,
       ARRAY(
           SELECT CASE WHEN name = 'role' THEN current_user ELSE current_setting(name) END
           FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, i) ORDER BY i
       ) AS settings,
       coalesce(row_security_active(to_regclass($2)), true) AS is_isolated,
       EXISTS (
           SELECT FROM pg_roles login LEFT JOIN pg_class ON pg_class.oid = to_regclass($2)
           WHERE login.rolname = session_user
           AND (rolsuper OR rolbypassrls OR coalesce(pg_has_role(login.oid, relowner, 'MEMBER'), false))
       ) AS may_see_everything
"""
_A_TABLE_OF_PRACTICES = "frontdesk.patient"
_PROBE = "SELECT $1::integer + 1"
_SESSION = "SELECT pg_backend_pid()"
_MAX_SESSIONS = 20
_NO_PREPARED_STATEMENTS = (
    "The pooler does not support prepared statements: use PgBouncer 1.21 or newer with max_prepared_statements above "
    "0, or session mode."
)


class SessionRefused(Exception):
    """Why sessions of this database must not be used, in one sentence for the operator."""


async def check_session(connection: Connection, settings: Mapping[str, str], *, pooled: bool) -> None:
    """Checks role, settings and row-level security of a session. Raises SessionRefused.

    Behind a pooler the login itself must not be able to see the rows of every practice.
    """
    names = [name for name in settings if name not in _NOT_COMPARED]
    row = await connection.fetchrow(_STATE, names, _A_TABLE_OF_PRACTICES)
    assert row is not None
    present = dict(zip(names, row["settings"], strict=True))
    missing = [name for name in names if present[name] != settings[name]]
    if missing:
        commands = " ".join(f"ALTER ROLE {row['login']} SET {name} = {_quoted(settings[name])};" for name in missing)
        raise SessionRefused(
            f"The database ignores the settings of connections, as a pooler does. Run in the database: {commands}"
        )
    if not row["is_isolated"]:
        raise SessionRefused("Row-level security does not apply to the login of FRONTDESK_DATABASE_URL.")
    if pooled and row["may_see_everything"]:
        raise SessionRefused(
            f"The login {row['login']} is too powerful to be used through a pooler: it must not own the tables, be a "
            "superuser or have BYPASSRLS."
        )


async def check_pooler(first: Connection, second: Connection) -> None:
    """Raises SessionRefused if a statement that one connection has prepared is unknown in another session."""
    async with first.transaction():
        statement = await first.prepare(_PROBE)
        session = await first.fetchval(_SESSION)
    for _ in range(_MAX_SESSIONS):
        async with second.transaction():
            if await second.fetchval(_SESSION) != session:
                continue
            try:  # the session in which it was prepared is taken
                await statement.fetchval(1)
            except (pg.InvalidSQLStatementNameError, pg.DuplicatePreparedStatementError):
                raise SessionRefused(_NO_PREPARED_STATEMENTS) from None


def _quoted(value: str) -> str:
    """The search path is a list of names, anything else a string."""
    return value if "," in value else f"'{value}'"
