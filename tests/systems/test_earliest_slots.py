"""The earliest slots against an exhaustive search, in calendars that are nearly full and change all the time."""

import pytest

from frontdesk.systems.native.calendar_cache import CalendarCache
from tests.support.world import World
from tests.systems.nearly_full import NearlyFull


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.heavy) for seed in range(2, 12))])
async def test_the_earliest_slots_are_the_first_of_an_exhaustive_search(world: World, seed: int) -> None:
    practice = NearlyFull(world, seed)
    await practice.imported()
    await practice.check()
    await practice.filled(0.97)
    await practice.check()
    await practice.cancelled(4)
    await practice.check()
    world.clock.advance(days=1, minutes=77)
    await practice.check()
    await practice.filled(1.0)
    await practice.check()
    await practice.imported()  # other hours, capacities and absences, under the same appointments
    await practice.check()


async def test_what_is_remembered_of_calendars_stays_bounded_and_right(world: World) -> None:
    practice = NearlyFull(world, 99)
    await practice.imported()
    await practice.filled(0.9)
    world.service.native.calendars = small = CalendarCache(max_bytes=5000)
    await practice.check()
    assert small._cached.weight == sum(calendar.size for calendar in small._cached.values())
    assert small._cached.weight <= 5000
    await practice.cancelled(3)
    await practice.check()
    assert small._cached.weight == sum(calendar.size for calendar in small._cached.values()) <= 5000
