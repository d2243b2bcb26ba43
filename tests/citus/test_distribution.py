"""A database on a Citus cluster: distributed in place, upgraded, with shards that move and workers that are lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from frontdesk.practice_file import parse
from frontdesk.store.database import SERVICE_ROLE, DatabaseUnavailable
from frontdesk.store.distribution import plan_modes
from frontdesk.store.migrate import Migration, MigrationError, distribute, migrate, readiness, this_release
from frontdesk.store.practices import import_practice
from tests.citus.cluster import CitusCluster, named_address
from tests.support.shared_database import address, as_owner, opened
from tests.support.world import MONDAY, NOW, PRACTICE, World, book, build_world, patient_id
from tests.webhooks.conftest import desk, receiver
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver

__all__ = ["desk", "receiver"]
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(named_address() is None, reason="make citus-test DATABASE=... names a cluster"),
]
_OF_PRACTICE = """
SELECT s.shardid, n.nodeid, n.nodename, n.nodeport FROM pg_dist_shard s
JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
WHERE s.shardid = get_shard_id_for_distribution_column('frontdesk.location', $1::bigint)
"""
_OTHER_WORKER = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND nodeid <> $1"

WANTED = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101}


@pytest.fixture
async def empty_dsn(cluster: CitusCluster) -> AsyncIterator[str]:
    """A database on every node of the cluster, without tables; its address, as the owner."""
    await cluster.create_empty("undistributed")
    yield as_owner(address_of(cluster, "undistributed"))
    await cluster.drop("undistributed")


def address_of(cluster: CitusCluster, name: str) -> str:
    return address(cluster, SERVICE_ROLE, name)


async def test_an_interrupted_distribution_is_refused_by_nodes_and_can_be_continued(
    empty_dsn: str, tmp_path: Path
) -> None:
    service_dsn = empty_dsn.replace("frontdesk_owner@", f"{SERVICE_ROLE}@")
    await migrate(empty_dsn)
    async with opened(service_dsn) as database:
        world = await build_world(database, tmp_path)
        booked = await book(await world.client())
        await world.close()
        with pytest.raises(MigrationError, match="Stop all nodes"):
            await distribute(empty_dsn, lambda _step, _steps: None)

    def interrupt(step: int, steps: int) -> None:
        if step == steps // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await distribute(empty_dsn, interrupt)
    async with opened(service_dsn) as database:
        assert (await readiness(database)).unready == "distribution interrupted"
    with pytest.raises(MigrationError, match="run frontdesk db distribute"):
        await migrate(empty_dsn)

    steps = []
    state = await distribute(empty_dsn, lambda step, _steps: steps.append(step))
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert steps[0] == state.distribution.steps // 2 + 1
    assert (state.distribution.unfinished, state.pending) == (0, 0)
    assert len(state.distribution.workers) > 0
    owner = await asyncpg.connect(empty_dsn, server_settings={"search_path": "frontdesk, public"})
    assert await owner.fetchval("SELECT appointment_id FROM appointment") == booked
    await owner.close()
    async with opened(service_dsn) as database:
        assert (await readiness(database)).unready is None
        world = await build_world(database, tmp_path)
        assert await book(await world.client()) != booked
        await world.close()


async def test_a_migration_with_several_statements_and_a_new_table_is_applied(empty_dsn: str) -> None:
    await migrate(empty_dsn)
    await distribute(empty_dsn, lambda _step, _steps: None)
    release = this_release()
    migration = Migration(
        999,
        "later",
        """
        CREATE TABLE later (practice_id bigint NOT NULL REFERENCES practice, PRIMARY KEY (practice_id));
        ALTER TABLE later ENABLE ROW LEVEL SECURITY;
        ALTER TABLE later FORCE ROW LEVEL SECURITY;
        ALTER TABLE patient ADD COLUMN later text; ALTER TABLE patient ADD COLUMN latest text DEFAULT ';';
        """,
    )
    await migrate(empty_dsn, replace(release, version="99.0.0", migrations=(*release.migrations, migration)))
    owner = await asyncpg.connect(empty_dsn, server_settings={"search_path": "frontdesk, public"})
    try:
        beside = (
            "SELECT count(DISTINCT colocation_id) FROM citus_tables WHERE table_name::text IN ('later', 'location')"
        )
        assert await owner.fetchval(beside) == 1
        await owner.fetch("SELECT later, latest FROM patient")
    finally:
        await owner.close()


async def test_workers_keep_no_plans_of_calls(empty_dsn: str) -> None:
    """Citus 13.2.1 and 13.2.2 keep a plan of every call if they may reuse plans."""
    await migrate(empty_dsn)
    await distribute(empty_dsn, lambda _step, _steps: None)
    owner = await asyncpg.connect(empty_dsn, server_settings={"search_path": "frontdesk, public"})
    try:
        await owner.execute("""
            CREATE FUNCTION bytes_at_worker(p_practice bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS
            $$ BEGIN RETURN (SELECT sum(used_bytes) FROM pg_backend_memory_contexts); END $$
        """)
        await owner.execute(
            "SELECT create_distributed_function('bytes_at_worker(bigint)', '$1', colocate_with := 'frontdesk.location')"
        )
    finally:
        await owner.close()
    service = await asyncpg.connect(
        empty_dsn.replace("frontdesk_owner@", f"{SERVICE_ROLE}@"), server_settings={"search_path": "frontdesk, public"}
    )

    async def bytes_after(calls: int) -> int:
        for _ in range(calls):
            await service.fetch("SELECT * FROM find_intent(1, '')")
        used: int = await service.fetchval("SELECT bytes_at_worker(1)")
        return used

    try:
        wanted, current = await plan_modes(service)
        assert wanted == current
        first = await bytes_after(20)
        assert await bytes_after(50) < first + 50 * 1024
    finally:
        await service.close()


async def test_a_migration_sets_what_another_version_of_citus_needs(empty_dsn: str) -> None:
    await migrate(empty_dsn)
    await distribute(empty_dsn, lambda _step, _steps: None)
    owner = await asyncpg.connect(empty_dsn)
    try:
        wanted, current = await plan_modes(owner)
        assert wanted == current
        other = "force_custom_plan" if wanted == "auto" else "auto"
        await owner.execute(f"ALTER ROLE {SERVICE_ROLE} IN DATABASE undistributed SET plan_cache_mode = {other}")
        assert await plan_modes(owner) == (wanted, other)
        await migrate(empty_dsn)
        assert await plan_modes(owner) == (wanted, wanted)
    finally:
        await owner.close()


async def test_events_are_delivered_in_order_after_a_shard_has_moved(
    desk: Desk, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    await desk.endpoint(receiver.url())
    expected = []
    for turn in range(3):
        expected += [await desk.happen("apt_1"), await desk.happen(f"apt_{turn + 2}")]
        await move_shard(owner, desk.practice_id)
    expected.append(await desk.happen("apt_1"))
    await desk.deliver()
    assert sorted(message.id for message in receiver.received) == sorted(expected)
    assert expected == sorted(expected, key=lambda event: int(event.removeprefix("evt_")))


async def test_bookings_and_their_webhooks_survive_moves_of_their_shard(
    world: World, desk: Desk, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    await desk.endpoint(receiver.url())
    agent, node, over = await world.client(), desk.node(), asyncio.Event()
    patient, booked = await patient_id(agent), list[str]()

    async def served(method: str, path: str, **request: Any) -> Any:
        while (answer := await agent.request(method, path, **request)).status_code == 502:
            pass  # not executed: the shard is locked while it moves
        return answer.json()

    async def bookings() -> None:
        while not over.is_set():
            day = (MONDAY + timedelta(weeks=len(booked) // 8)).isoformat()
            slot = (await served("GET", "/api/slots", params={**WANTED, "from": day, "to": day}))["items"][0]
            body = {"patientId": patient, "slotId": slot["id"]}
            body["confirmationToken"] = (await served("POST", "/api/appointments", json=body))["confirmationToken"]
            booked.append((await served("POST", "/api/appointments", json=body))["appointmentId"])

    async def deliveries() -> None:
        while not over.is_set():
            with suppress(DatabaseUnavailable):  # as above
                await desk.deliver(node)

    load = [asyncio.create_task(bookings()), asyncio.create_task(deliveries())]
    for _ in range(4):
        before = len(booked)
        await move_shard(owner, desk.practice_id)
        while len(booked) < before + 3 and not load[0].done():
            await asyncio.sleep(0.05)
    over.set()
    await asyncio.gather(*load)
    desk.clock.advance(minutes=2)  # beyond the lease of a delivery that was given up
    await desk.deliver(node)
    assert sorted(message.subject for message in receiver.received) == sorted(booked)


async def move_shard(owner: asyncpg.Connection, practice_id: int) -> None:
    """Moves the practice's rows to another worker."""
    shard, node, host, port = await owner.fetchrow(_OF_PRACTICE, practice_id)
    other = (await owner.fetch(_OTHER_WORKER, node))[0]
    for attempt in range(60):
        try:
            await owner.execute(
                "SELECT citus_move_shard_placement($1, $2, $3, $4, $5, shard_transfer_mode := 'block_writes')",
                shard, host, port, other["nodename"], other["nodeport"],
            )  # fmt: skip
            return
        except asyncpg.InternalServerError:  # Citus has yet to drop what the last move left there
            if attempt == 59:
                raise
            await asyncio.sleep(1)


async def test_a_lost_worker_concerns_its_practices_only(world: World, owner: asyncpg.Connection) -> None:
    practices = await practices_at_two_workers(world, owner)
    clients = {slug: await world.client(slug) for slug in practices}
    anonymous = world.anonymous()
    async with lost_worker_of(owner, next(iter(practices.values()))) as (node, name):
        for slug, client in clients.items():
            at_lost = (await owner.fetchrow(_OF_PRACTICE, practices[slug]))["nodeid"] == node
            answer = await search(client)
            assert answer.status_code == (502 if at_lost else 200), answer.text
        readiness = await anonymous.get("/readyz")
        assert (readiness.status_code, readiness.json()["lostWorkers"]) == (200, [name])
    for client in clients.values():
        assert (await search(client)).status_code == 200
    assert (await anonymous.get("/readyz")).json() == {"status": "ready"}


async def test_webhooks_go_out_from_other_workers_while_one_is_lost(
    world: World, desk: Desk, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    practices = await practices_at_two_workers(world, owner)
    desks = [Desk(desk.database, practice_id, desk.clock) for practice_id in practices.values()]
    for each in desks:
        await each.endpoint(receiver.url())
        await each.happen(f"apt_{each.practice_id}")
    async with lost_worker_of(owner, desks[0].practice_id) as (node, _):
        await desk.deliver()
        reached = [id_ for id_ in practices.values() if (await owner.fetchrow(_OF_PRACTICE, id_))["nodeid"] != node]
        assert sorted(message.subject for message in receiver.received) == sorted(f"apt_{id_}" for id_ in reached)
    await desk.deliver()
    assert len(receiver.received) == len(desks)


@asynccontextmanager
async def lost_worker_of(owner: asyncpg.Connection, practice_id: int) -> AsyncIterator[tuple[int, str]]:
    """The id and name of the practice's worker, at whose address nobody answers meanwhile."""
    _, node, host, port = await owner.fetchrow(_OF_PRACTICE, practice_id)
    await owner.execute("SELECT citus_update_node($1, $2, 1)", node, host)
    try:
        yield node, f"{host}:1"
    finally:
        await owner.execute("SELECT citus_update_node($1, $2, $3)", node, host, port)
        while not await owner.fetchval("SELECT bool_and(metadatasynced) FROM pg_dist_node"):
            await asyncio.sleep(1)  # a new address, which a worker that only comes back does not have


async def practices_at_two_workers(world: World, owner: asyncpg.Connection) -> dict[str, int]:
    """The ids of some practices by slug, which are not all at one worker."""
    found: dict[str, int] = {}
    for number in range(20):
        slug = f"practice-{number}"
        found[slug] = await import_practice(world.database, parse(PRACTICE.replace("SLUG", slug)), NOW)
        if len({(await owner.fetchrow(_OF_PRACTICE, id_))["nodeid"] for id_ in found.values()}) > 1:
            return found
    raise AssertionError("all practices are at one worker")


async def search(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get("/api/slots", params={**WANTED, "from": "2026-11-16", "to": "2026-11-16"})
