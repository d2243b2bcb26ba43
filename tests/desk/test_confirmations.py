"""Confirmations: who proposed what, and how it stands."""

from typing import Any

from frontdesk.desk.context import ActionContext
from tests.desk.acting import action_context
from tests.support.world import World, book, patient_id, slots


async def states(world: World, context: ActionContext, **wanted: Any) -> list[str]:
    return [each.state for each in await world.service.desk.confirmations.recent(context, **wanted)]


async def test_states_and_clients_can_be_looked_at_alone(world: World) -> None:
    agent = await world.client()
    await book(agent)
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[3]["id"]}
    assert (await agent.post("/api/appointments", json=body)).status_code == 428
    context = await action_context(world)
    assert sorted(await states(world, context)) == ["executed", "pending"]
    for state in ("pending", "executed"):
        assert await states(world, context, state=state) == [state]
    for state in ("expired", "executing"):
        assert await states(world, context, state=state) == []
    world.clock.advance(minutes=11)
    assert await states(world, await action_context(world), state="expired") == ["expired"]
    assert len(await states(world, context, client_id=agent.headers["X-Test-Client"])) == 2
    assert await states(world, context, client_id="fd_nobody") == []


async def test_another_practices_are_not_found(world: World) -> None:
    await book(await world.client("other"))
    assert await states(world, await action_context(world)) == []
