"""Bookings against the rules."""

import pytest

from frontdesk.domain.errors import Problem
from tests.desk.acting import acting
from tests.support.world import World, book, confirmed, slots


async def test_a_move_of_a_cancelled_appointment_is_refused_after_an_unknown_slot(world: World) -> None:
    context, agent = await acting(world), await world.client()
    cancelled = await book(agent)
    await confirmed(agent, "POST", f"/api/appointments/{cancelled}/cancel", {})
    free = (await slots(agent))[0]["id"]
    overrides, given = world.service.desk.overrides, {"appointment_id": cancelled, "rules": [], "reason": "Asked to"}
    for slot_id, code in (("slt_unknown", "not_found"), (free, "conflict")):
        with pytest.raises(Problem) as refused:
            await overrides.move(context, slot_id=slot_id, key="k1", **given)
        assert refused.value.code == code
