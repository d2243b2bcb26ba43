"""Paging through appointments while others move, book and cancel them."""

from datetime import datetime
from random import Random

from frontdesk.domain.local_time import instant_at
from frontdesk.systems.port import AppointmentFilter
from tests.support.world import MONDAY
from tests.systems.desk import NINE, Desk

DAY = 24 * 60
STARTS = [NINE + day * DAY + quarter * 15 for day in range(5) for quarter in range(12)]


def _moment(minutes: int) -> datetime:
    return instant_at(minutes)


async def test_an_appointment_that_existed_throughout_is_listed_exactly_once(desk: Desk) -> None:
    choose = Random(22)
    people = [await desk.person(name) for name in ("Ada", "José", "Alan")]
    alive = [await desk.booked(choose.choice(people), start) for start in choose.sample(STARTS, 8)]
    everything, moves = set(alive), 0
    for wanted in (AppointmentFilter(), AppointmentFilter(provider_id=10, first=MONDAY)) * 3:
        existed, listed, after = set(everything), list[str](), None
        while True:
            page = await (await desk.system()).appointments.list_appointments(
                wanted, limit=choose.randint(1, 3), after=after
            )
            listed += [each.id for each in page.appointments]
            if (after := page.last) is None:
                break
            for _ in range(choose.randint(0, 3)):
                moves += (await desk.move(choose.choice(alive), choose.choice(STARTS))).kind == "executed"
        assert len(listed) == len(set(listed)), "repeated"
        assert existed <= set(listed), "skipped"
        cancelled = alive.pop(choose.randrange(len(alive)))
        await desk.set_status(cancelled, "cancelled")
        booked = await desk.book(choose.choice(people), choose.choice(STARTS))
        if booked.result is not None:
            alive.append(booked.result["appointmentId"])
            everything.add(alive[-1])
    assert moves > 9


async def test_moves_bookings_and_cancellations_between_two_pages(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    a, b, c, d = [await desk.booked(ada, NINE + 45 * number) for number in range(4)]
    system = await desk.system()
    first = await system.appointments.list_appointments(AppointmentFilter(), limit=2, after=None)
    assert [each.id for each in first.appointments] == [a, b]
    assert (await desk.move(a, NINE + DAY)).kind == "executed"  # listed, and now behind the position
    assert (await desk.move(d, NINE)).kind == "executed"  # not listed, and now before it
    assert (await desk.move(d, NINE + 15)).kind == "executed"
    assert (await desk.set_status(c, "cancelled")).kind == "executed"
    new = await desk.booked(alan, NINE + 2 * DAY)
    middle = await (await desk.system()).appointments.list_appointments(AppointmentFilter(), limit=1, after=first.last)
    rest = await (await desk.system()).appointments.list_appointments(AppointmentFilter(), limit=9, after=middle.last)
    assert [each.id for each in (*middle.appointments, *rest.appointments)] == [c, d, new]
    assert rest.appointments[0].starts_at.minute == 15, "as it is now, in the place where it was"
    fresh = await (await desk.system()).appointments.list_appointments(AppointmentFilter(), limit=9, after=None)
    assert [each.id for each in fresh.appointments] == [d, b, c, a, new], "a new listing has the new order"


async def test_a_move_that_commits_after_the_first_page_began_earlier(desk: Desk) -> None:
    """The first page cannot see a transaction that is still open, however early it started."""
    if (await desk.system()).kind != "native":
        return
    ada = await desk.person("Ada")
    a, b, c = [await desk.booked(ada, NINE + 60 * hour) for hour in range(3)]
    async with desk.world.database.transaction(desk.practice_id) as connection:
        await connection.execute(
            "SELECT record_appointment_move($1, $2, $3, NULL)", desk.practice_id, c, _moment(NINE + 120)
        )
        await connection.execute(
            "UPDATE appointment SET starts_at = $3, ends_at = $4, busy_until = $4 "
            "WHERE practice_id = $1 AND appointment_id = $2",
            desk.practice_id, c, _moment(NINE - 60), _moment(NINE - 45),
        )  # fmt: skip
        await desk.world.database.fetchval("SELECT pg_current_xact_id()")  # a later transaction, committed before it
        first = await (await desk.system()).appointments.list_appointments(AppointmentFilter(), limit=2, after=None)
    rest = await (await desk.system()).appointments.list_appointments(AppointmentFilter(), limit=9, after=first.last)
    assert [each.id for each in first.appointments] == [a, b]
    assert [each.id for each in rest.appointments] == [c]
