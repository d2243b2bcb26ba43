"""Expired challenges and old results go, a bounded number at a time; what is still good stays."""

import asyncio

from frontdesk.engine.housekeeping import forget_old_intents
from tests.world import World, patient_id, slots


async def _challenges(world: World, count: int) -> list[dict[str, str]]:
    agent = await world.client()
    ada, found = await patient_id(agent), await slots(agent)
    bodies = []
    for number in range(count):
        body = {"patientId": ada, "slotId": found[number]["id"]}
        body["confirmationToken"] = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
        bodies.append(body)
    await agent.post("/api/appointments", json=bodies[0])
    return bodies


async def _left(world: World) -> int:
    async with world.database.transaction(1) as connection:
        return await connection.fetchval("SELECT count(*) FROM intent WHERE practice_id = 1")  # type: ignore[no-any-return]


async def test_live_challenges_and_results_stay(world: World) -> None:
    await _challenges(world, 4)
    assert await forget_old_intents(world.database, world.clock.now) == 0
    assert await _left(world) == 4


async def test_expired_challenges_go_and_results_stay_for_a_day(world: World) -> None:
    await _challenges(world, 4)
    world.clock.advance(minutes=11)
    assert await forget_old_intents(world.database, world.clock.now) == 3
    world.clock.advance(hours=24)
    assert await forget_old_intents(world.database, world.clock.now) == 1
    assert await _left(world) == 0


async def test_a_run_removes_at_most_so_many(world: World) -> None:
    await _challenges(world, 6)
    world.clock.advance(minutes=11)
    assert await forget_old_intents(world.database, world.clock.now, most=2) == 2
    assert await _left(world) == 4


async def test_several_nodes_keep_house_together(world: World) -> None:
    await _challenges(world, 8)
    world.clock.advance(minutes=11)
    removed = await asyncio.gather(*(forget_old_intents(world.database, world.clock.now) for _ in range(4)))
    assert sum(removed) == 7
