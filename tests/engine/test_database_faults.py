"""When the database misbehaves: the documented problem within a bounded time, never a hang, and recovery by itself."""

import asyncio
import time
from collections.abc import AsyncIterator

import asyncpg
import httpx
import pytest

from frontdesk.store import database as store
from frontdesk.store.database import Database
from tests.support.shared_database import dsn_of_a_new_database, opened, patient_statements
from tests.support.world import World, patient_id, slots

database_dsn = dsn_of_a_new_database
impatient = pytest.mark.parametrize("database", [({},)], indirect=True, ids=["as served"])


@pytest.fixture
async def database(request: pytest.FixtureRequest, database_dsn: str) -> AsyncIterator[Database]:
    """Its statements wait for a lock until the test releases it, however long that takes on a busy machine."""
    with patient_statements(*getattr(request, "param", ())):
        async with opened(database_dsn, 8) as database:
            yield database


async def _booking(client: httpx.AsyncClient) -> dict[str, str]:
    return {"patientId": await patient_id(client), "slotId": (await slots(client))[0]["id"]}


async def _challenged(agent: httpx.AsyncClient) -> dict[str, str]:
    body = await _booking(agent)
    body["confirmationToken"] = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    return body


async def _waiting(owner: asyncpg.Connection) -> None:
    """Until a backend of the service waits for a lock."""
    for _ in range(1500):
        await owner.execute("SELECT pg_stat_clear_snapshot()")  # or a transaction goes on seeing the same backends
        if await owner.fetchval(
            """SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
               AND datname = current_database() AND backend_type = 'client backend'"""
        ):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("nobody waits")


async def test_a_deadlock_is_overcome(world: World, owner: asyncpg.Connection) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    rival = owner.transaction()
    await rival.start()
    await owner.execute("SELECT FROM patient WHERE practice_id = 1 AND patient_id = $1 FOR UPDATE", body["patientId"])
    booking = asyncio.create_task(agent.post("/api/appointments", json=body))
    await _waiting(owner)
    try:
        await owner.execute("SELECT FROM provider WHERE practice_id = 1 AND provider_id = 10 FOR UPDATE")
        await rival.commit()
    except asyncpg.DeadlockDetectedError:
        await rival.rollback()
    answer = await asyncio.wait_for(booking, 60)
    assert answer.status_code == 201


async def test_a_serialization_failure_that_stays_is_unavailable_and_heals(
    world: World, owner: asyncpg.Connection
) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    source = await owner.fetchval("SELECT pg_get_functiondef('change_book'::regproc)")
    await owner.execute(
        """CREATE OR REPLACE FUNCTION change_book(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
           RETURNS change_outcome LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'could not serialize' USING ERRCODE = '40001'; END $$"""
    )
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    assert int(refused.headers["retry-after"]) > 0
    await owner.execute(source)
    assert (await agent.post("/api/appointments", json=body)).status_code == 201


async def _lose_connections(owner: asyncpg.Connection) -> None:
    await owner.execute(
        """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
    )


async def test_idle_connections_that_were_lost_go_unnoticed(world: World, owner: asyncpg.Connection) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    await _lose_connections(owner)
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    await _lose_connections(owner)
    assert (await agent.get("/api/appointments")).status_code == 200


async def test_a_connection_lost_during_a_confirmed_write_still_ends_in_one_booking(
    world: World, owner: asyncpg.Connection
) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    blocker = owner.transaction()
    await blocker.start()
    await owner.execute("SELECT FROM provider WHERE practice_id = 1 AND provider_id = 10 FOR UPDATE")
    booking = asyncio.create_task(agent.post("/api/appointments", json=body))
    await _waiting(owner)
    await _lose_connections(owner)
    await blocker.rollback()
    answer = await asyncio.wait_for(booking, 60)
    assert answer.status_code == 201
    again = await agent.post("/api/appointments", json=body)
    assert again.json() == answer.json()
    assert await owner.fetchval("SELECT count(*) FROM appointment") == 1


async def test_a_connection_lost_during_a_write_without_a_key_is_an_internal_error(
    world: World, owner: asyncpg.Connection
) -> None:
    integration = await world.client(grant="integration")
    body = await _booking(integration)
    blocker = owner.transaction()
    await blocker.start()
    await owner.execute("SELECT FROM provider WHERE practice_id = 1 AND provider_id = 10 FOR UPDATE")
    booking = asyncio.create_task(integration.post("/api/appointments", json=body))
    await _waiting(owner)
    await _lose_connections(owner)
    await blocker.rollback()
    answer = await asyncio.wait_for(booking, 60)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert (await integration.post("/api/appointments", json=body)).status_code == 201


@impatient
async def test_a_lock_that_is_never_released_is_unavailable_in_bounded_time(
    world: World, owner: asyncpg.Connection
) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    blocker = owner.transaction()
    await blocker.start()
    await owner.execute("SELECT FROM provider WHERE practice_id = 1 AND provider_id = 10 FOR UPDATE")
    began = time.monotonic()
    refused = await agent.post("/api/appointments", json=body)
    assert time.monotonic() - began < 30
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    await blocker.rollback()
    assert (await agent.post("/api/appointments", json=body)).status_code == 201


async def test_an_exhausted_pool_is_unavailable_in_bounded_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    held = [world.database.transaction(1) for _ in range(8)]
    for transaction in held:
        await transaction.__aenter__()
    with monkeypatch.context() as impatient:
        impatient.setattr(store, "ACQUIRE_SECONDS", 0.5)
        began = time.monotonic()
        read = await agent.get("/api/appointments")
        write = await agent.post("/api/appointments", json=body)
        assert time.monotonic() - began < 20
    for answer in (read, write):
        assert (answer.status_code, answer.json()["code"]) == (502, "upstream_unavailable")
        assert "retry-after" in answer.headers
    for transaction in held:
        await transaction.__aexit__(None, None, None)
    assert (await agent.post("/api/appointments", json=body)).status_code == 201


async def test_a_database_that_is_down_is_unavailable_and_comes_back(
    world: World, owner: asyncpg.Connection, owner_dsn: str
) -> None:
    agent = await world.client()
    body = await _challenged(agent)
    name = await owner.fetchval("SELECT current_database()")
    elsewhere = await asyncpg.connect(owner_dsn.replace(f"/{name}?", "/postgres?"))
    await elsewhere.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await _lose_connections(owner)
    for request in (
        agent.get("/api/appointments"),
        agent.post("/api/appointments", json=body),
        agent.get("/api/slots/first-available", params={"visitTypeId": 21, "procedureId": 101}),
    ):
        answer = await asyncio.wait_for(request, 60)
        assert (answer.status_code, answer.json()["code"]) == (502, "upstream_unavailable"), answer.text
    assert (await agent.get("/readyz")).status_code == 503
    assert (await agent.get("/healthz")).status_code == 200
    await elsewhere.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    await elsewhere.close()
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert (await agent.get("/readyz")).status_code == 200
