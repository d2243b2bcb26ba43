"""Bookings against the rules in storage: lanes of their own, each of which still takes a place."""

import asyncio
from collections import Counter

import asyncpg
import pytest

from frontdesk.domain.availability import OVERRIDE_LANE
from frontdesk.domain.ids import new_appointment_id
from frontdesk.domain.patients import Patient
from frontdesk.operations._booking import booking_of
from frontdesk.systems.changes import Book, ChangeStatus, Override, Reschedule
from frontdesk.systems.port import Outcome
from tests.support.world import World
from tests.systems.desk import NINE, Desk, intent, ref, with_reason

SEVEN = NINE - 120


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world, 1)


async def override(desk: Desk, patient: Patient, start: int = NINE, *rules: str, key: str | None = None) -> Outcome:
    system, slot = await desk.system(), ref(start)
    checked = await system.bookings.check_booking(slot, patient.id, desk.now)
    assert checked is not None
    booking = booking_of(slot, checked.slot)
    given = Override(rules or ("full",), "Emergency")
    change = Book(checked.slot.version, new_appointment_id(), patient.id, booking, override=given)
    return with_reason(await system.changes.perform(change, desk.record(None if key is None else intent(key))))


async def lanes(desk: Desk) -> list[int]:
    """Of the live appointments, as sorted numbers."""
    async with desk.world.database.transaction(1) as connection:
        sql = "SELECT lane FROM appointment WHERE practice_id = 1 AND status <> 'cancelled' ORDER BY lane"
        return [row["lane"] for row in await connection.fetch(sql)]


async def applied(desk: Desk) -> list[tuple[list[str], str, bool]]:
    async with desk.world.database.transaction(1) as connection:
        ids = [row[0] for row in await connection.fetch("SELECT appointment_id FROM appointment WHERE practice_id = 1")]
    rows = await desk.world.database.fetch("SELECT * FROM list_overrides(1, $1)", ids)
    return [(row["rules"], row["reason"], row["stands"]) for row in sorted(rows, key=lambda row: row["at"])]


async def restore(desk: Desk, appointment_id: str) -> str:
    change = ChangeStatus(appointment_id, "booked", ("cancelled",), only_upcoming=False)
    return (await (await desk.system()).changes.perform(change, desk.record())).kind


async def move(desk: Desk, appointment_id: str, start: int, *rules: str) -> str:
    system, slot = await desk.system(), ref(start)
    found = await system.appointments.get_appointment(appointment_id)
    assert found is not None
    checked = await system.bookings.check_booking(slot, found.patient_id, desk.now, found)
    assert checked is not None
    booking = booking_of(slot, checked.slot)
    given = Override(rules, "Again") if rules else None
    change = Reschedule(
        checked.slot.version, found.id, found.patient_id, 10, ("booked", "confirmed"), booking, override=given
    )
    return (await system.changes.perform(change, desk.record())).kind


async def test_overrides_and_a_booking_of_one_time_at_once_get_a_lane_each(desk: Desk) -> None:
    ada, alan, jose = [await desk.person(name) for name in ("Ada", "Alan", "José")]
    done = await asyncio.gather(
        override(desk, ada, NINE, "notice", "full"), override(desk, alan, NINE, "notice", "full"), desk.book(jose)
    )
    kinds = Counter(each.kind for each in done)
    # The overrides always get a lane each; the booking gets its place only if it came first.
    assert kinds in (Counter(executed=3), Counter(executed=2, slot_unavailable=1))
    overbooked = [lane for lane in await lanes(desk) if lane >= OVERRIDE_LANE]
    assert overbooked == [OVERRIDE_LANE, OVERRIDE_LANE + 1]
    assert [lane for lane in await lanes(desk) if lane < OVERRIDE_LANE] == [1] * (kinds["executed"] - 2)
    assert NINE not in await desk.open_starts()
    async with desk.world.database.transaction(1) as connection:
        with pytest.raises(asyncpg.ExclusionViolationError):
            await connection.execute("UPDATE appointment SET lane = $1 WHERE practice_id = 1", OVERRIDE_LANE)


async def test_an_override_takes_a_place_until_it_is_cancelled(desk: Desk) -> None:
    ada, alan, jose = [await desk.person(name) for name in ("Ada", "Alan", "José")]
    plain = await override(desk, ada, NINE)
    assert plain.result is not None, "nothing is full: an ordinary booking"
    ordinary = plain.result["appointmentId"]
    assert (await lanes(desk), await applied(desk)) == ([1], [])
    over = await override(desk, alan, NINE, key="one")
    assert over.result is not None
    assert (await override(desk, alan, NINE, key="one")).kind == "replayed"
    assert await lanes(desk) == [1, OVERRIDE_LANE]
    assert await applied(desk) == [(["full"], "Emergency", True)]
    await desk.set_status(ordinary, "cancelled")
    assert NINE not in await desk.open_starts(), "the override has the place"
    assert (await desk.book(jose)).kind == "slot_unavailable"
    await desk.set_status(over.result["appointmentId"], "cancelled")
    assert NINE in await desk.open_starts()
    assert (await desk.book(jose)).kind == "executed"
    assert await restore(desk, ordinary) == "slot_unavailable"
    assert await restore(desk, over.result["appointmentId"]) == "executed", "it was overbooked before"
    assert await lanes(desk) == [1, OVERRIDE_LANE]


async def test_an_override_of_another_rule_does_not_overbook(desk: Desk) -> None:
    ada, alan, jose = [await desk.person(name) for name in ("Ada", "Alan", "José")]
    offered = await desk.open_starts()
    early = await override(desk, ada, SEVEN, "hours")
    assert early.result is not None
    assert await desk.open_starts() == offered, "a time outside hours is not offered, taken or not"
    assert (await override(desk, alan, SEVEN, "hours")).kind == "slot_unavailable", "nobody was told that it is full"
    assert (await override(desk, alan, NINE, "notice")).kind == "executed"
    assert await desk.open_starts() == offered[1:], "and its place is taken"
    await desk.set_status(early.result["appointmentId"], "cancelled")
    assert (await override(desk, jose, SEVEN, "hours")).kind == "executed"
    assert await restore(desk, early.result["appointmentId"]) == "slot_unavailable"
    assert (await override(desk, jose, SEVEN + 5, "hours", "full")).kind == "declined", "one patient, one place"


async def test_a_move_to_an_open_time_ends_the_override_and_to_a_full_one_needs_another(desk: Desk) -> None:
    ada, alan = [await desk.person(name) for name in ("Ada", "Alan")]
    await desk.booked(ada)
    over = await override(desk, alan)
    assert over.result is not None
    moved = over.result["appointmentId"]
    assert await move(desk, moved, NINE + 60) == "executed"
    assert await lanes(desk) == [1, 1]
    assert await applied(desk) == [(["full"], "Emergency", False)]
    desk.world.clock.advance(minutes=1)
    assert await move(desk, moved, NINE) == "slot_unavailable"
    assert await move(desk, moved, NINE, "full") == "executed"
    assert await lanes(desk) == [1, OVERRIDE_LANE]
    assert await applied(desk) == [(["full"], "Emergency", False), (["full"], "Again", True)]
