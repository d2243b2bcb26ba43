"""Caps and quota where they are hard to keep: several workers, several servers, and kill -9 of all of them."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import jwt
import pytest

from frontdesk.access.clients.records import AccessLimits, change_client
from frontdesk.store.database import Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.security.real_server import RealServer, real_server
from tests.support.shared_database import as_owner, new_database, opened
from tests.support.world import patient_id, slots


async def burst(url: str, token: str, calls: int) -> Counter[int]:
    """Many calls at once, each on a connection of its own, so that every worker gets some."""
    limits = httpx.Limits(max_connections=40, max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(limits=limits, headers=headers, timeout=30) as http:
        answers = await asyncio.gather(*(http.get(f"{url}/api/capabilities") for _ in range(calls)))
    return Counter(answer.status_code for answer in answers)


def client_of(token: str) -> str:
    subject: str = jwt.decode(token, options={"verify_signature": False})["sub"]
    return subject


async def everything_returned(database: Database, client_id: str) -> None:
    """Until the workers have given back what they held and did not use, and remember no refusal."""
    await asyncio.sleep(0.6)
    async with asyncio.timeout(30):
        while await held_calls(database, client_id):
            await asyncio.sleep(0.1)


async def held_calls(database: Database, client_id: str) -> int:
    async with database.transaction(1) as connection:
        held: int = await connection.fetchval(
            "SELECT minute_leased - minute_used FROM client_usage WHERE client_id = $1", client_id
        )
    return held


async def test_the_cap_is_never_exceeded_by_the_workers_of_a_server(server: RealServer) -> None:
    token = await server.token(per_minute=50)
    first = await burst(server.url, token, 120)
    assert set(first) == {200, 429}
    assert first[200] <= 50  # some workers hold a little that they did not use
    await everything_returned(server.service.database, client_of(token))
    assert first[200] + (await burst(server.url, token, 120))[200] == 50


async def test_a_lowered_cap_reaches_every_worker_within_five_seconds(server: RealServer) -> None:
    token = await server.token(per_minute=10_000)
    assert await burst(server.url, token, 40) == {200: 40}
    await change_client(server.service.database, client_of(token), per_minute=40)
    await asyncio.sleep(5)
    assert await burst(server.url, token, 40) == {429: 40}
    await change_client(server.service.database, client_of(token), per_minute=10_000)
    await asyncio.sleep(5)
    assert await burst(server.url, token, 40) == {200: 40}


async def test_write_limits_are_exact_on_the_workers_of_a_server(server: RealServer) -> None:
    token = await server.token(access_limits=AccessLimits(writes_per_hour=3, upcoming_per_patient=0))
    apart = httpx.Limits(max_keepalive_connections=0)  # so that every worker gets some
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server.url, limits=apart, headers=headers, timeout=30) as agent:
        today = datetime.now(UTC).date()
        window = {"from": str(today + timedelta(days=1)), "to": str(today + timedelta(days=10))}
        free, patient = await slots(agent, **window), await patient_id(agent)
        bodies = []
        for slot in free[:8]:
            body = {"patientId": patient, "slotId": slot["id"]}
            challenge = await agent.post("/api/appointments", json=body)
            assert challenge.status_code == 428, challenge.text
            bodies.append({**body, "confirmationToken": challenge.json()["confirmationToken"]})
        answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for body in bodies))
    assert Counter(answer.status_code for answer in answers) == {201: 3, 429: 5}


async def charged_quota(database: Database) -> int:
    async with database.transaction(1) as connection:
        used: int = await connection.fetchval("SELECT quota_used FROM client_usage")
    return used


def processes(server: RealServer) -> list[int]:
    """The server and its workers, the server first."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    return [server.process.pid, *map(int, children)]


async def until_alone(database: Database) -> None:
    """Until the sessions of processes that were killed have ended: what those had sent may still be executed."""
    # Autovacuum has no user.
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usesysid IS NOT NULL"
    async with asyncio.timeout(30):
        while await database.fetchval(sessions) > database.connections[0]:
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
@pytest.mark.heavy
async def test_the_quota_survives_kill_9_and_charges_nothing_that_was_not_made(
    cluster: EmbeddedPostgres, template: str, tmp_path: Path
) -> None:
    async with new_database(cluster, template) as dsn, opened(dsn) as database:
        async with real_server(database, dsn, as_owner(dsn), tmp_path, workers=2) as server:
            token = await server.token(quota=60)
            made = (await burst(server.url, token, 30))[200]
            async with asyncio.timeout(30):
                while await charged_quota(database) < made:
                    await asyncio.sleep(0.1)
            late = (await burst(server.url, token, 5))[200]
            for process in processes(server):
                with suppress(ProcessLookupError):  # workers end without their supervisor
                    os.kill(process, signal.SIGKILL)
            await server.process.wait()
        await until_alone(database)
        charged = await charged_quota(database)
        assert made <= charged <= made + late
        async with database.transaction(1) as connection:
            await connection.execute("UPDATE client_usage SET minute_started_at = now() - interval '1 minute'")
        async with real_server(database, dsn, as_owner(dsn), tmp_path) as server:
            token = await server.token_of(client_of(token))
            first = await burst(server.url, token, 60)
            await asyncio.sleep(6)  # what the killed workers held is free again
            second = await burst(server.url, token, 60)
            assert first[200] + second[200] == 60 - charged
            assert second[403] > 0
