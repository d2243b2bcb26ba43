"""Sessions in which row-level security could be lost are refused."""

import asyncpg
import pytest

from frontdesk.store.database import SERVICE_ROLE, Database, DatabaseUnavailable, session_settings
from frontdesk.store.sessions import SessionRefused, check_session
from tests.support.shared_database import as_owner, as_superuser

EXPECTED = session_settings(SERVICE_ROLE)


async def refusal(dsn: str, settings: dict[str, str], *, pooled: bool = False) -> str | None:
    connection = await asyncpg.connect(dsn, server_settings=settings)
    try:
        await check_session(connection, EXPECTED, pooled=pooled)
    except SessionRefused as refused:
        return str(refused)
    finally:
        await connection.close()
    return None


async def test_only_sessions_with_the_role_and_the_settings_of_the_service_are_used(database_dsn: str) -> None:
    assert await refusal(database_dsn, EXPECTED) is None
    assert await refusal(database_dsn, EXPECTED, pooled=True) is None
    assert await refusal(as_superuser(database_dsn), EXPECTED) is None, "it has given up its rights"
    dropped = await refusal(database_dsn, {}) or ""
    assert "ALTER ROLE frontdesk_service SET search_path = frontdesk, public;" in dropped
    assert "SET statement_timeout = '10s';" in dropped
    for login in (as_owner(database_dsn), as_superuser(database_dsn)):
        own_role = {**EXPECTED, "role": "none"}
        assert "SET role = 'frontdesk_service';" in (await refusal(login, own_role) or "")
        assert "too powerful" in (await refusal(login, EXPECTED, pooled=True) or "")


async def test_a_role_that_bypasses_the_policies_is_refused(
    database: Database, database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    superuser = await asyncpg.connect(as_superuser(database_dsn))
    await superuser.execute(f"ALTER ROLE {SERVICE_ROLE} BYPASSRLS")
    try:
        assert "Row-level security does not apply" in (await refusal(database_dsn, EXPECTED) or "")
        await database.close()
        with pytest.raises(SessionRefused):
            await database.open()
    finally:
        await superuser.execute(f"ALTER ROLE {SERVICE_ROLE} NOBYPASSRLS")
        await superuser.close()
    await database.open()
    monkeypatch.setattr("frontdesk.store.database.session_settings", lambda _role: {**EXPECTED, "jit": "on"})
    await database.fetchval("SELECT 1")
    async with database.transaction():
        with pytest.raises(DatabaseUnavailable):  # a new connection, whose settings are checked again
            await database.fetchval("SELECT 1")
