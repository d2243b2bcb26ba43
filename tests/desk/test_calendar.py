"""The appointments of a calendar page: what is found, when it has changed, and whose names are recorded as shown."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime

import pytest

from frontdesk.desk.calendar import CalendarQuery, FoundAppointments
from tests.console.desk import records
from tests.desk.acting import action_context
from tests.support.world import World, book, confirmed, patient_id

MONDAY = CalendarQuery(day=date(2026, 11, 16))


@dataclass
class Shown:
    patients: Collection[str]
    found: FoundAppointments


def showing(*patients: str) -> Callable[[FoundAppointments], Awaitable[Shown | None]]:
    async def lay_out(found: FoundAppointments) -> Shown | None:
        return Shown(patients, found)

    return lay_out


async def nothing_new(_found: FoundAppointments) -> Shown | None:
    return None


async def test_the_names_that_a_page_shows_are_recorded_and_no_others(world: World) -> None:
    agent, context = await world.client(), await action_context(world)
    await book(agent)
    await book(agent, "Alan")
    alan = await patient_id(agent, "Alan")
    shown = await world.service.desk.calendar.read(context, MONDAY, showing(alan, "pat_unknown"))
    assert shown is not None
    assert len(shown.found.appointments) == len(shown.found.contacts) == 2
    [record] = await records(world, operation="console.calendar")
    assert record["subject_ids"] == [alan]


async def test_a_page_with_nothing_new_leaves_no_record(world: World) -> None:
    await book(await world.client())
    context = await action_context(world)
    assert await world.service.desk.calendar.read(context, MONDAY, nothing_new) is None
    assert await records(world, operation="console.calendar") == []


async def test_the_version_changes_with_the_appointments_of_the_page_only(world: World) -> None:
    agent, calendar = await world.client(), world.service.desk.calendar
    context = await action_context(world)
    before = await calendar.version(context, MONDAY)
    await book(agent, **{"from": "2026-11-20", "to": "2026-11-20"})
    assert await calendar.version(context, MONDAY) == before
    appointment = await book(agent)
    booked = await calendar.version(context, MONDAY)
    assert booked != before
    await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert await calendar.version(context, MONDAY) != booked


async def test_another_practices_appointments_are_not_found(world: World) -> None:
    await book(await world.client())
    stranger = await action_context(world, practice="other")
    shown = await world.service.desk.calendar.read(stranger, MONDAY, showing())
    assert shown is not None
    assert list(shown.found.appointments) == []


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        (datetime.fromisoformat("2026-11-16T12:00:00-05:00"), None),
        (datetime.fromisoformat("2026-11-15T12:00:00-05:00"), date(2026, 11, 16)),
    ],
)
async def test_a_day_on_which_nobody_works_leads_to_the_next_working_day(
    world: World, now: datetime, shown: date | None
) -> None:
    world.clock.now = now
    context = await action_context(world)
    assert await world.service.desk.calendar.next_working_day(context, CalendarQuery()) == shown


async def test_a_month_counts_appointments_that_are_not_cancelled(world: World) -> None:
    agent, context = await world.client(), await action_context(world)
    await book(agent)
    cancelled = await book(agent, "Alan")
    await confirmed(agent, "POST", f"/api/appointments/{cancelled}/cancel", {})
    month = await world.service.desk.months.read(context, MONDAY)
    assert {day: count.appointments for day, count in month.counts.items()} == {date(2026, 11, 16): 1}
    assert await records(world, operation="console.calendar") == [], "nothing about patients"
