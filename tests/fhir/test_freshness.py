"""A calendar that others keep has no versions: nothing that was read from it is ever given again."""

from tests.fhir.practice import Upstream
from tests.support.world import World, slots


async def test_what_the_staff_changes_upstream_shows_in_the_next_search(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    before = await slots(agent)
    assert await slots(agent) == before
    for slot in await upstream.search("Slot"):
        if slot["status"] == "free":
            await upstream.put({**slot, "status": "busy-unavailable"})
    assert await slots(agent) == []
    await agent.get("/api/practice")
    assert not fhir.service.engine.answers._entries
