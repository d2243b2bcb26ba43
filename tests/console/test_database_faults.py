"""Console pages while the database misbehaves: 502 with an explanation, never 500."""

import asyncpg
import httpx

from tests.console.admin_pages import text_of, value_of

_LOSE_AT_COMMIT = """
CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON client DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION lose_connection();
"""


async def test_a_page_whose_transaction_waits_for_a_lock_is_unavailable(
    admin: httpx.AsyncClient, owner: asyncpg.Connection
) -> None:
    async with owner.transaction():
        await owner.execute("LOCK TABLE client")
        page = await admin.get("/console/setup")
    assert page.status_code == 502
    assert "retry-after" in page.headers
    assert (await admin.get("/console/setup")).status_code == 200


async def test_a_form_whose_outcome_is_unknown_says_so(admin: httpx.AsyncClient, owner: asyncpg.Connection) -> None:
    form = await admin.get("/console/clients/new")
    await owner.execute(_LOSE_AT_COMMIT)
    fields = {"name": "Agent", "grant": "agent", "scopes": ["slots:read"], "per_minute": "60", "quota": "100"}
    page = await admin.post("/console/clients", data={**fields, "once": value_of(form, "once")})
    assert page.status_code == 502
    assert "Check whether the change was saved" in text_of(page)
