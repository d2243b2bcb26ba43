"""What every scheduling system must do: say which times are open."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.domain.local_time import minute_of
from frontdesk.systems.port import Capability
from tests.support.world import MONDAY
from tests.systems.desk import FLU_SHOT, LONG_FOLLOW_UP, NINE, Desk, query, ref


async def test_it_says_what_it_is_and_can_do(desk: Desk) -> None:
    system = await desk.system()
    assert system.kind in ("native", "fhir")
    assert {Capability.FIND_SLOTS, Capability.BOOK, Capability.UPDATE_PATIENTS} <= system.capabilities
    for capability, part in (
        (Capability.SEARCH_PATIENTS, system.searching),
        (Capability.OVERRIDE, system.overrides),
        (Capability.HOLD, system.holds),
    ):
        assert (capability in system.capabilities) == (part is not None)
    directory = await system.directory()
    assert [location.name for location in directory.locations.values()] == ["Downtown", "Westside"]


async def test_open_slots_come_in_order_of_start(desk: Desk) -> None:
    starts = await desk.open_starts()
    assert starts[0] == NINE
    assert starts == sorted(set(starts))
    assert len(starts) == 28  # three hours and four, a quarter each


async def test_a_procedure_takes_as_long_as_it_takes(desk: Desk) -> None:
    starts = await desk.open_starts(LONG_FOLLOW_UP)
    noon = NINE + 180
    assert max(start for start in starts if start < noon) == noon - 45
    assert noon + 60 in starts


async def test_search_goes_on_after_a_position(desk: Desk) -> None:
    system = await desk.system()
    starts = await desk.open_starts()
    found = await system.calendar.find_slots(query(), desk.now, limit=3, after=(starts[4], 10, 1))
    assert [start for slots in found.by_provider for start in slots.starts] == starts[5:8]


async def test_search_over_everybody_is_ordered_by_start_provider_and_location(desk: Desk) -> None:
    system = await desk.system()
    asked = query(FLU_SHOT, provider_id=None, location_id=None, first=None, last=None)
    found = await system.calendar.find_slots(asked, desk.now, limit=50, after=None)
    positions = [(start, each.provider_id, each.location_id) for each in found.by_provider for start in each.starts]
    assert positions == sorted(positions)
    assert len(positions) == 50
    assert positions[:2] == [(NINE, 10, 1), (NINE, 11, 1)]
    again = await system.calendar.find_slots(asked, desk.now, limit=200, after=positions[-1])
    assert all(
        (start, each.provider_id, each.location_id) > positions[-1]
        for each in again.by_provider
        for start in each.starts
    )


async def test_slots_are_found_at_the_location_that_was_asked_for(desk: Desk) -> None:
    wednesday = MONDAY + timedelta(days=2)
    starts = await desk.open_starts(provider_id=11, location_id=2, first=wednesday, last=wednesday)
    nine_in_los_angeles = minute_of(datetime(2026, 11, 18, 17, tzinfo=UTC))
    assert starts[0] == nine_in_los_angeles
    assert await desk.open_starts(provider_id=11, location_id=1, first=wednesday, last=wednesday) == []


@pytest.mark.parametrize(
    "wanted",
    [
        {"provider_id": 99},
        {"location_id": 2},
        {"visit_type_id": 22},
        {"procedure_id": 999},
        {"provider_id": 12, "visit_type_id": 20, "procedure_id": 100},
        {"first": MONDAY - timedelta(days=9), "last": MONDAY - timedelta(days=8)},
        {"first": MONDAY + timedelta(days=200), "last": MONDAY + timedelta(days=201)},
    ],
)
async def test_what_does_not_fit_together_finds_nothing(desk: Desk, wanted: dict[str, Any]) -> None:
    assert await desk.open_starts(**wanted) == []


async def test_slots_that_have_begun_are_not_offered(desk: Desk) -> None:
    desk.world.clock.now = datetime(2026, 11, 16, 14, 15, tzinfo=UTC)
    assert (await desk.open_starts())[0] == NINE + 30


async def test_search_live_read_and_booking_agree(desk: Desk) -> None:
    system = await desk.system()
    patient = await desk.person()
    for start in (NINE - 15, NINE, NINE + 5, NINE + 165, NINE + 180):
        offered = start in await desk.open_starts()
        state = await system.calendar.slot_state(ref(start), desk.now)
        checked = await system.bookings.check_booking(ref(start), patient.id, desk.now, None)
        assert state is not None
        assert checked is not None
        assert state.available == checked.slot.available == offered


async def test_a_slot_of_something_that_does_not_exist_is_none(desk: Desk) -> None:
    system = await desk.system()
    for slot in (ref(NINE, provider=99), ref(NINE, location=9), replace(ref(NINE), procedure_id=100)):
        assert await system.calendar.slot_state(slot, desk.now) is None
        assert await system.bookings.check_booking(slot, "pat_x", desk.now, None) is None
    changed = replace(ref(NINE), duration_minutes=30)
    state = await system.calendar.slot_state(changed, desk.now)
    assert state is not None
    assert not state.available
