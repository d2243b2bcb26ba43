"""Tenant isolation in the database itself: what a statement forgets, row-level security refuses, for every table."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from frontdesk.store.database import SERVICE_ROLE, session_settings, set_practice
from tests.citus.cluster import named_address
from tests.security.two_practices import attacker, victim
from tests.support.shared_database import as_owner, world_of_a_module
from tests.support.world import World

SOMETHING = {
    "text": "'something'",
    "integer": "1",
    "bigint": "1",
    "boolean": "true",
    "bytea": "'\\x00'",
    "jsonb": "'{}'",
    "date": "now()",
    "timestamp with time zone": "now()",
    "timestamp without time zone": "now()",
    "ARRAY": "'{}'",
}
# Looked up before anybody knows the practice. Every other table belongs to practices.
WITHOUT_PRACTICE = {
    "practice", "client", "client_secret", "staff", "staff_link", "staff_session", "staff_passkey", "staff_pin",
    "used_challenge", "sealed_key", "token_failure", "used_assertion", "migration", "function_file", "observation",
    "application", "authorization_code", "refresh_token",
}  # fmt: skip


NOT_BY_CITUS = (asyncpg.FeatureNotSupportedError, asyncpg.InternalServerError)  # nobody's statements of this kind

world = world_of_a_module


@pytest.fixture(scope="module")
async def owner(world: World) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(as_owner(world.database.dsn), server_settings=session_settings(None))
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
async def practices(world: World, owner: Any) -> tuple[int, int]:
    """Attacker and victim, both with rows in every table."""
    await attacker(world)
    await victim(world)
    ids = {row["slug"]: row["practice_id"] for row in await world.database.fetch("SELECT * FROM practice")}
    practices = ids["harbor"], ids["quixotic"]
    for table in await tenant_tables(owner):
        for practice in practices:
            if not await owner.fetchval(f"SELECT count(*) FROM {table} WHERE practice_id = $1", practice):
                await _invent(owner, table, practice)
    return practices


async def _invent(owner: Any, table: str, practice: int) -> None:
    """A row for a table that the calls above do not reach. What it may hold does not matter here: only who sees it."""
    for row in await owner.fetch(
        "SELECT conname FROM pg_constraint WHERE conrelid = $1::text::regclass AND contype IN ('c', 'f')", table
    ):
        await owner.execute(f"ALTER TABLE {table} DROP CONSTRAINT {row['conname']}")
    values = {"practice_id": str(practice)}
    for row in await owner.fetch(
        """SELECT column_name, data_type FROM information_schema.columns
           WHERE table_schema = 'frontdesk' AND table_name = $1 AND is_nullable = 'NO' AND is_identity = 'NO'
             AND column_default IS NULL AND column_name <> 'practice_id'""",
        table,
    ):
        values[row["column_name"]] = SOMETHING[row["data_type"]]
    names, given = ", ".join(values), ", ".join(values.values())
    await owner.execute(f"INSERT INTO {table} ({names}) VALUES ({given})")


@pytest.fixture
async def service(world: World) -> AsyncIterator[Any]:
    """A session as the service has it, in a transaction that is never committed."""
    connection = await asyncpg.connect(world.database.dsn, server_settings=session_settings(SERVICE_ROLE))
    yield connection
    await connection.close()


async def tables(owner: Any) -> list[str]:
    """Without what only a distributed database has: shards, and the steps that distributed it."""
    rows = await owner.fetch(
        """SELECT table_name FROM information_schema.tables
           WHERE table_schema = 'frontdesk' AND table_type = 'BASE TABLE'
             AND table_name !~ '_[0-9]+$' AND table_name <> 'distribution'"""
    )
    return sorted(row["table_name"] for row in rows)


async def tenant_tables(owner: Any) -> list[str]:
    return [name for name in await tables(owner) if name not in WITHOUT_PRACTICE]


@pytest.mark.one_server
async def test_every_table_of_a_practice_has_a_forced_policy_on_all_its_rows(owner: Any) -> None:
    found = await tenant_tables(owner)
    assert len(found) >= 14
    for table in found:
        column = await owner.fetchrow(
            """SELECT data_type, is_nullable FROM information_schema.columns
               WHERE table_schema = 'frontdesk' AND table_name = $1 AND column_name = 'practice_id'""",
            table,
        )
        assert column is not None, f"{table} belongs to no practice"
        assert tuple(column) == ("bigint", "NO"), table
        row = await owner.fetchrow(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = ('frontdesk.' || $1)::regclass", table
        )
        assert tuple(row) == (True, True), f"{table} lacks forced row-level security"
        policies = await owner.fetch(
            "SELECT * FROM pg_policies WHERE schemaname = 'frontdesk' AND tablename = $1", table
        )
        assert len(policies) == 1, f"{table} must have exactly one policy"
        (policy,) = policies
        assert (policy["permissive"], policy["cmd"], policy["roles"]) == ("PERMISSIVE", "ALL", ["public"]), table
        assert policy["qual"] == "(practice_id = (current_setting('frontdesk.practice_id'::text))::bigint)", table
        assert policy["with_check"] in (None, policy["qual"]), table


@pytest.mark.one_server
async def test_every_key_and_foreign_key_of_a_tenant_table_names_the_practice(owner: Any) -> None:
    rows = await owner.fetch(
        """SELECT conrelid::regclass::text AS table, conname,
                  EXISTS (SELECT FROM unnest(conkey) k JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k
                          WHERE a.attname = 'practice_id') AS named
           FROM pg_constraint WHERE connamespace = 'frontdesk'::regnamespace AND contype IN ('p', 'u', 'f', 'x')"""
    )
    forgotten = [row["conname"] for row in rows if not row["named"] and row["table"] not in WITHOUT_PRACTICE]
    assert forgotten == []


@pytest.mark.one_server
async def test_one_function_runs_with_more_than_the_rights_of_its_caller_and_takes_nothing(owner: Any) -> None:
    assert await owner.fetch("SELECT * FROM information_schema.views WHERE table_schema = 'frontdesk'") == []
    definers = await owner.fetch(
        """SELECT proname, pronargs, proconfig, has_function_privilege('public', oid, 'EXECUTE') AS is_public
           FROM pg_proc WHERE pronamespace = 'frontdesk'::regnamespace AND prosecdef"""
    )
    assert [tuple(row) for row in definers] == [("analyze_grown_tables", 0, ["search_path=pg_catalog, pg_temp"], False)]


async def test_the_service_owns_nothing_and_can_rise_to_nothing(owner: Any, service: Any) -> None:
    role = await owner.fetchrow(f"SELECT * FROM pg_roles WHERE rolname = '{SERVICE_ROLE}'")
    assert not any(
        role[right] for right in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolreplication")
    )
    for catalogue, column in (
        ("pg_class", "relowner"), ("pg_proc", "proowner"), ("pg_namespace", "nspowner"), ("pg_type", "typowner"),
        ("pg_database", "datdba"),
    ):  # fmt: skip
        owned = await owner.fetchval(f"SELECT count(*) FROM {catalogue} WHERE {column} = $1", role["oid"])
        assert owned == 0, catalogue
    memberships = await owner.fetch("SELECT roleid::regrole::text FROM pg_auth_members WHERE member = $1", role["oid"])
    assert memberships == []
    for statement in (
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "CREATE TABLE frontdesk.mine (x integer)",
        "CREATE FUNCTION frontdesk.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "ALTER TABLE patient DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE patient NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY tenant ON patient",
        "CREATE POLICY mine ON patient USING (true)",
        "TRUNCATE patient",
        "TRUNCATE audit_record CASCADE",
        "ALTER ROLE frontdesk_service BYPASSRLS",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('/etc/passwd')",
        "DELETE FROM migration",
        "DELETE FROM function_file",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await service.execute(statement)


async def test_the_service_has_only_the_rights_it_needs_on_any_table(owner: Any) -> None:
    for table in await tables(owner):
        rights = {
            row["privilege_type"]
            for row in await owner.fetch(
                """SELECT privilege_type FROM information_schema.role_table_grants
                   WHERE table_schema = 'frontdesk' AND table_name = $1 AND grantee = $2""",
                table,
                SERVICE_ROLE,
            )
        }
        assert rights <= {"SELECT", "INSERT", "UPDATE", "DELETE"}, table
        public = await owner.fetchval("SELECT has_table_privilege('public', $1, 'SELECT')", f"frontdesk.{table}")
        assert public is False, table


async def test_both_practices_have_rows_in_every_table(owner: Any, practices: tuple[int, int]) -> None:
    """Or the walks below would prove nothing."""
    for table in await tenant_tables(owner):
        for practice in practices:
            count = await owner.fetchval(f"SELECT count(*) FROM {table} WHERE practice_id = $1", practice)
            assert count > 0, f"{table} holds nothing of practice {practice}: extend two_practices.py"


async def test_a_statement_that_names_no_practice_is_refused(
    owner: Any, service: Any, practices: tuple[int, int]
) -> None:
    for spoilt in (False, True):
        if spoilt:  # a session that worked for a practice before, as those of the pool have
            async with service.transaction():
                await service.execute("SELECT set_config('frontdesk.practice_id', $1, true)", str(practices[0]))
        for table in await tenant_tables(owner):
            for statement in (
                f"SELECT * FROM {table}",
                f"SELECT count(*) FROM {table} WHERE practice_id = {practices[0]}",
                f"UPDATE {table} SET practice_id = practice_id",
                f"DELETE FROM {table}",
            ):
                with pytest.raises(
                    (
                        asyncpg.UndefinedObjectError,
                        asyncpg.InvalidTextRepresentationError,
                        asyncpg.InsufficientPrivilegeError,
                    )
                ):
                    await service.execute(statement)


async def test_a_statement_that_forgets_its_filter_sees_and_changes_only_its_own_practice(
    owner: Any, service: Any, practices: tuple[int, int]
) -> None:
    mine, theirs = practices
    for table in await tenant_tables(owner):
        before = await owner.fetchval(
            f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t WHERE practice_id = $1", theirs
        )
        transaction = service.transaction()
        await transaction.start()
        await set_practice(service, mine)
        assert {row["practice_id"] for row in await service.fetch(f"SELECT practice_id FROM {table}")} == {mine}, table
        assert await service.fetch(f"SELECT * FROM {table} WHERE practice_id = {theirs}") == []
        assert (
            await service.fetch(f"SELECT * FROM {table} WHERE practice_id = {theirs} OR true OR practice_id <> {mine}")
            != []
        )
        for statement in (
            f"UPDATE {table} SET practice_id = practice_id WHERE practice_id = {theirs}",
            f"DELETE FROM {table} WHERE practice_id = {theirs}",
        ):
            try:
                async with service.transaction():
                    assert (await service.execute(statement)).endswith(" 0"), table
            except asyncpg.InsufficientPrivilegeError:
                pass  # nobody at all may do this here
        await transaction.rollback()
        after = await owner.fetchval(
            f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t WHERE practice_id = $1", theirs
        )
        assert after == before


async def test_no_row_can_be_written_into_or_moved_to_another_practice(
    owner: Any, service: Any, practices: tuple[int, int]
) -> None:
    mine, theirs = practices
    for table in await tenant_tables(owner):
        columns = [
            row["column_name"]
            for row in await owner.fetch(
                """SELECT column_name FROM information_schema.columns
                   WHERE table_schema = 'frontdesk' AND table_name = $1
                     AND is_identity = 'NO' AND is_generated = 'NEVER'""",
                table,
            )
        ]
        copied = ", ".join(str(theirs) if column == "practice_id" else column for column in columns)
        for statement in (
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {copied} FROM {table} LIMIT 1",
            f"UPDATE {table} SET practice_id = {theirs}",
        ):
            await refused(service, mine, statement)


async def refused(service: Any, practice: int, statement: str) -> None:
    async with service.transaction():
        await set_practice(service, practice)
        with pytest.raises((asyncpg.InsufficientPrivilegeError, *(NOT_BY_CITUS if named_address() else ()))):
            async with service.transaction():
                await service.execute(statement)


@pytest.mark.parametrize("table", ["audit_record", "audit_seal"])
async def test_audit_records_can_be_neither_changed_nor_removed(
    service: Any, practices: tuple[int, int], table: str
) -> None:
    for statement in (
        f"UPDATE {table} SET practice_id = practice_id",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"MERGE INTO {table} a USING {table} b ON a.record_id = b.record_id WHEN MATCHED THEN DELETE",
        f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
        f"DROP TABLE {table}",
    ):
        await refused(service, practices[0], statement)
