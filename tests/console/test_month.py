"""The month view: counts, how full a day is, and closed days; the zoom of the others."""

from datetime import date

import httpx

from frontdesk.console.calendar.month import lay_out_month
from frontdesk.desk.calendar import CalendarQuery
from frontdesk.desk.month import DayCount, MonthCounts
from frontdesk.practice_file import parse
from tests.console.desk import Document, calendar, words
from tests.support.world import PRACTICE, World, book

HARBOR = PRACTICE.replace("SLUG", "harbor")


def days(html: str) -> dict[str, str]:
    return {each.attributes["data-date"]: words(each.text) for each in Document(html).having("data-date")}


async def test_a_month_counts_the_visits_of_each_day(world: World, staff: httpx.AsyncClient) -> None:
    agent, integration = await world.client(), await world.client(grant="integration")
    await book(agent)
    await book(agent, "Alan", **{"from": "2026-11-20", "to": "2026-11-20"})
    cancelled = await book(agent, "José", **{"from": "2026-11-20", "to": "2026-11-20"})
    await integration.post(f"/api/appointments/{cancelled}/cancel", json={"reason": "patient_request"})
    html = await calendar(staff, view="month")
    shown = days(html)
    assert next(iter(shown)) == "2026-10-26"
    assert len(shown) == 42
    assert "November 2026" in html
    assert words(shown["2026-11-16"]).startswith("16, Monday, 16 November 2026: 1 visit, ")
    assert "1 visit, " in shown["2026-11-20"], "without the cancelled one"
    assert "0 visits, 0% full" in shown["2026-11-19"]
    assert shown["2026-11-15"].endswith("Nobody in")
    assert "0 visits" in days(await calendar(staff, view="month", provider=12))["2026-11-16"]
    [link] = Document(html).having("data-date", "2026-11-20")
    assert link.attributes["href"] == "/console/calendar?date=2026-11-20"


async def test_only_a_changed_month_is_sent_again(world: World, staff: httpx.AsyncClient) -> None:
    path = "/console/calendar/month?date=2026-11-16&view=week"
    first = await staff.get(path)
    assert 'href="/console/calendar?date=2026-11-20&amp;view=week"' in first.text
    known = {"If-None-Match": first.headers["ETag"]}
    assert (await staff.get(path, headers=known)).status_code == 304
    await book(await world.client())
    assert "1 visit<" not in first.text
    assert (await staff.get(path, headers=known)).status_code == 200


async def test_the_zoom_is_kept_for_the_person(staff: httpx.AsyncClient) -> None:
    html = await calendar(staff)
    assert "zoom-100" in html
    [csrf] = {each.attributes["value"] for each in Document(html).having("name", "csrf")}
    for asked, kept in (("150", 150), ("151", 100), ("x", 100)):
        await staff.post("/console/calendar/preferences", data={"csrf": csrf, "zoom": asked})
        assert f"zoom-{kept}" in await calendar(staff)


def test_a_day_is_as_full_as_its_opening_hours_are_booked() -> None:
    directory = parse(HARBOR).directory
    downtown = [directory.locations[1]]
    counts = {date(2026, 11, 16): DayCount(3, 90), date(2026, 11, 15): DayCount(1, 15)}
    query, day, today = CalendarQuery(providers=(10,)), date(2026, 11, 9), date(2026, 11, 16)
    month = lay_out_month(MonthCounts(query, directory, downtown, day, today, counts, counted=True))
    by_day = {day.date: day for week in month.weeks for day in week}
    monday, sunday = by_day[date(2026, 11, 16)], by_day[date(2026, 11, 15)]
    assert (monday.appointments, monday.closed) == (3, None)
    assert 0 < monday.percent < 100
    assert (sunday.percent, sunday.closed) == (100, "Nobody in"), "a visit outside the hours is all there is"
    assert not by_day[date(2026, 12, 1)].in_month
