"""Usage of a practice's clients over time."""

from datetime import timedelta
from zoneinfo import ZoneInfo

from frontdesk.desk.usage import SPANS, _steps
from tests.desk.acting import action_context
from tests.support.world import NOW, World, slots

ZONE = ZoneInfo("America/New_York")


async def requests_of(world: World, span: str) -> list[int]:
    """In each step."""
    report = await world.service.desk.usage.over_time(await action_context(world, "admin"), SPANS[span], ZONE)
    return [moment.requests.total() for moment in report.moments]


async def test_requests_are_counted_at_their_own_time_and_then_gone(world: World) -> None:
    agent = await world.client()
    await slots(agent)
    await agent.get("/api/slots/nothing")
    await world.service.usage.flush()
    world.clock.advance(minutes=20)
    in_steps = await requests_of(world, "3h")
    assert in_steps[-5] == sum(in_steps) == 2
    world.clock.advance(days=6)
    assert sum(await requests_of(world, "7d")) == 2
    world.clock.advance(days=2)
    assert sum(await requests_of(world, "7d")) == 0


async def test_clients_of_another_practice_are_not_counted(world: World) -> None:
    await slots(await world.client())
    await world.service.usage.flush()
    stranger = await action_context(world, "admin", practice="other")
    assert (await world.service.desk.usage.over_time(stranger, SPANS["3h"], ZONE)).requests.total() == 0
    assert await world.service.desk.usage.of_clients(stranger) == []


def test_days_begin_at_midnight_of_the_practice() -> None:
    days = _steps(NOW, SPANS["30d"], ZONE)
    assert {moment.astimezone(ZONE).hour for moment in days} == {0}
    assert len({moment.astimezone(ZONE).date() for moment in days}) == 30
    assert days[-1] <= NOW < days[-1] + timedelta(days=1)
    for span in SPANS.values():
        steps = _steps(NOW, span, ZONE)
        assert steps == sorted(set(steps))
        assert steps[-1] <= NOW < steps[-1] + span.step
