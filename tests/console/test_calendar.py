"""The calendar page: who and what it shows, where, and what looking at it leaves behind."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.console.desk import Document, calendar, entries, hold_first_slot, labels, records, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.support.world import MONDAY, PRACTICE, World, book, confirmed, patient_id, slots


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


async def test_an_agents_booking_stands_in_its_providers_column_with_name_time_state_and_booker(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    html = await calendar(staff)
    [(shown, entry)] = entries(html).items()
    assert shown == booked
    assert words(entry.text) == "09:00–09:15 Ada Lovelace Follow-up Booked booked by agent of harbor"
    assert labels(html) == {booked: "09:00–09:15 Ada Lovelace, Follow-up, Booked, booked by agent of harbor"}
    assert {"is-booked", "at-1", "for-3", "lane-1"} <= entry.classes
    [column] = Document(html).having("data-provider", "10")
    assert "Ada Lovelace" in column.text


async def test_columns_are_the_providers_who_have_hours_there_that_day(staff: httpx.AsyncClient) -> None:
    def columns(html: str) -> list[str]:
        return [each.attributes["data-provider"] for each in Document(html).having("data-provider")]

    assert columns(await calendar(staff)) == ["10", "11", "12"]
    assert columns(await calendar(staff, date="2026-11-19")) == ["10", "12"]
    assert columns(await calendar(staff, date="2026-11-18", location=2)) == ["11"]
    assert columns(await calendar(staff, provider=12)) == ["12"]
    nobody = await calendar(staff, date="2026-11-15")
    assert columns(nobody) == []
    assert "No provider is in" in nobody


async def test_the_calendar_opens_on_the_next_day_on_which_somebody_works(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    async def opened(**query: Any) -> tuple[str, str]:
        page = Document((await staff.get("/console/calendar", params=query)).text)
        [day] = page.having("data-day")
        [today] = page.having("data-key", "t")
        return day.attributes["data-day"], today.attributes["href"]

    booked = await book(agent)
    today = "/console/calendar?date=2026-11-15"
    assert await opened() == ("2026-11-16", today)  # from a Sunday
    assert await opened(provider=11, location=2) == ("2026-11-18", f"{today}&location=2&provider=11")
    assert (await opened(date="2026-11-15"))[0] == "2026-11-15"
    async with world.database.transaction(1) as connection:
        await connection.execute(
            """UPDATE appointment SET starts_at = starts_at - interval '1 day', ends_at = ends_at - interval '1 day',
               busy_until = busy_until - interval '1 day' WHERE appointment_id = $1""",
            booked,
        )
    assert await opened() == ("2026-11-15", today)  # somebody comes all the same


async def test_a_day_is_the_locations_own(staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    """Nine o'clock on the west coast is shown as nine o'clock there."""
    await book(agent, "Alan", providerId=11, locationId=2, **{"from": "2026-11-18", "to": "2026-11-18"})
    html = await calendar(staff, date="2026-11-18", location=2)
    [entry] = entries(html).values()
    assert words(entry.text).startswith("09:00–09:15 Alan Turing")
    assert "times in Los Angeles (PST)" in html
    assert not entries(await calendar(staff, date="2026-11-18", location=1))


async def test_an_appointment_over_midnight_stands_on_both_days(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    async def later(minutes: int) -> None:
        async with world.database.transaction(1) as connection:
            await connection.execute(
                """UPDATE appointment SET starts_at = starts_at + $1 * interval '1 minute',
                   ends_at = ends_at + $1 * interval '1 minute', busy_until = busy_until + $1 * interval '1 minute'""",
                minutes,
            )

    booked = await book(agent, procedureId=102)  # from nine to a quarter to ten
    await later(14 * 60 + 15)
    assert not entries(await calendar(staff, date="2026-11-17")), "it ends at midnight"
    await later(30)
    for day, place in (("2026-11-16", {"at-286", "for-3"}), ("2026-11-17", {"at-1", "for-6"})):
        [entry] = entries(await calendar(staff, date=day)).values()
        assert words(entry.text).startswith("23:45–00:30 Ada Lovelace")
        assert place <= entry.classes
    week = Document(await calendar(staff, view="week")).having("data-entry", booked)
    assert len(week) == 2
    assert "Ada Lovelace" in await calendar(staff, "/day-sheet", date="2026-11-17")
    tag = (await staff.get("/console/calendar/grid?date=2026-11-17")).headers["ETag"]
    await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})
    changed = await staff.get("/console/calendar/grid?date=2026-11-17", headers={"If-None-Match": tag})
    assert (changed.status_code, entries(changed.text)) == (200, {})


async def test_a_week_shows_its_days_and_leaves_out_an_empty_weekend(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await book(agent)
    later = await book(agent, "Alan", **{"from": "2026-11-20", "to": "2026-11-20"})
    html = await calendar(staff, view="week")
    days = [each.attributes["data-day"] for each in Document(html).having("data-day")]
    assert days == [f"2026-11-{day}" for day in range(16, 21)]
    assert later in entries(html)
    assert len(entries(html)) == 2
    assert "16–22 November 2026" in html


async def test_cancelled_appointments_are_shown_only_when_asked_for(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})
    assert not entries(await calendar(staff))
    assert "is-cancelled" in entries(await calendar(staff, cancelled="yes"))[booked].classes


async def test_appointments_at_the_same_time_stand_side_by_side(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    first = await book(agent, providerId=11)
    second = await book(agent, "Alan", providerId=11)
    found = entries(await calendar(staff))
    both = (found[first].classes, found[second].classes)
    assert all("at-1" in classes for classes in both)
    assert {lane for classes in both for lane in classes & {"lane-1", "lane-2"}} == {"lane-1", "lane-2"}
    assert "lanes-2" in Document(await calendar(staff)).having("data-provider", "11")[0].classes


async def test_closed_hours_time_off_and_closures_are_marked_in_words(world: World, staff: httpx.AsyncClient) -> None:
    off = 'timeOff: [{from: "2026-11-16T10:00", to: "2026-11-16T11:30", reason: Dentist}]\n    capacity: 2\n'
    await world.import_file(PRACTICE.replace("SLUG", "harbor").replace("capacity: 2\n", off))
    document = Document(await calendar(staff))
    [away] = document.of_class("shade-off")
    assert words(away.text) == "10:00–11:30 Dentist"
    assert {"at-13", "for-18"} <= away.classes  # from ten to half past eleven
    assert document.of_class("shade-closed")
    christmas = Document(await calendar(staff, date="2026-12-25"))
    assert {words(each.text) for each in christmas.of_class("shade-closure")} == {"Christmas Day"}


async def test_the_line_of_the_hour_is_only_on_today(world: World, staff: httpx.AsyncClient) -> None:
    assert not Document(await calendar(staff)).having("data-now")
    world.clock.advance(hours=30, minutes=32)  # half past nine on Monday, in New York
    staff = await signed_in(world)
    lines = Document(await calendar(staff)).having("data-now")
    assert len(lines) == 3
    assert all("at-7" in line.classes for line in lines)
    assert not Document(await calendar(staff, date="2026-11-17")).having("data-now")


@pytest.mark.parametrize("view", ["day", "week"])
async def test_a_page_that_stays_open_over_midnight_keeps_its_days(world: World, view: str) -> None:
    def days(html: str) -> list[str]:
        return [each.attributes["data-day"] for each in Document(html).having("data-day")]

    world.clock.now = datetime(2026, 11, 20, 15, tzinfo=UTC)  # Friday
    shown = (await (await signed_in(world)).get("/console/calendar", params={"view": view})).text
    world.clock.advance(days=3)
    grid = Document(shown).having("data-grid")[0].attributes["data-grid"]
    assert days((await (await signed_in(world)).get(grid)).text) == days(shown)
    assert "2026-11-20" in days(shown)


@pytest.mark.parametrize(
    "query",
    [{"date": "yesterday"}, {"date": "9999-12-31"}, {"date": "2026-02-30"}, {"provider": "<b>"}, {"view": "year"},
     {"provider": "99999999999999999999"}, {"location": "-1"}, {"date": "2200-01-01", "view": "week"}],
)  # fmt: skip
async def test_what_cannot_be_read_in_an_address_is_as_good_as_absent(
    staff: httpx.AsyncClient, query: dict[str, str]
) -> None:
    answer = await staff.get("/console/calendar", params=query)
    assert answer.status_code == 200


async def test_an_unknown_location_is_not_found(staff: httpx.AsyncClient) -> None:
    assert (await staff.get("/console/calendar?location=77")).status_code == 404


async def test_looking_is_recorded_with_the_person_and_whose_names_were_shown(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await book(agent)
    await calendar(staff)
    await calendar(staff, "/day-sheet")
    signed_in, *looks = await records(world, actor=staff.headers[TEST_STAFF])
    assert signed_in["operation"] == "console.sign_in"
    assert [each["operation"] for each in looks] == ["console.calendar", "console.day_sheet"]
    assert all(len(each["subject_ids"]) == 1 for each in looks)
    assert looks[0]["subject_ids"][0].startswith("pat_")


async def test_a_part_that_has_not_changed_is_not_sent_and_leaves_no_record(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    first = await staff.get("/console/calendar/grid?date=2026-11-16")
    assert first.status_code == 200
    looks = len(await records(world, operation="console.calendar"))
    again = {"If-None-Match": first.headers["ETag"]}
    world.clock.advance(minutes=3)
    same = await staff.get("/console/calendar/grid?date=2026-11-16", headers=again)
    assert (same.status_code, same.content) == (304, b"")
    assert len(await records(world, operation="console.calendar")) == looks
    booked = await book(agent)
    changed = await staff.get("/console/calendar/grid?date=2026-11-16", headers=again)
    assert changed.status_code == 200
    assert booked in entries(changed.text)
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert len(await records(world, operation="console.calendar")) == looks + 1


async def test_the_page_carries_the_tag_of_what_it_shows(staff: httpx.AsyncClient) -> None:
    html = await calendar(staff)
    tag = Document(html).having("data-tag")[0].attributes["data-tag"]
    answer = await staff.get("/console/calendar/grid?date=2026-11-16", headers={"If-None-Match": f'"{tag}"'})
    assert answer.status_code == 304


async def test_a_person_sees_only_their_own_practices_calendar(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    stranger = await signed_in(world, role="admin", practice="other")
    assert not entries(await calendar(stranger))
    assert not entries(await calendar(stranger, "/day-sheet"))
    assert (await stranger.get(f"/console/appointments/{booked}")).status_code == 404


async def test_the_cost_in_round_trips_does_not_grow_with_the_appointments(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    async def cost() -> int:
        costs = []
        for _ in range(4):  # the least: what others do in the background is counted, too
            before = world.database.statements
            await calendar(staff)
            costs.append(world.database.statements - before)
        return min(costs)

    await book(agent)
    one = await cost()
    for first in ("Alan", "José"):
        await book(agent, first)
        await book(agent, first, providerId=11, **{"from": MONDAY.isoformat(), "to": MONDAY.isoformat()})
    assert await cost() == one <= 10


async def test_the_day_sheet_lists_every_provider_with_what_the_desk_needs(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await book(agent)
    html = await calendar(staff, "/day-sheet")
    document = Document(html)
    assert [words(each.text) for each in document.tagged("h1")] == [
        "Dr. Robert Chen", "Dr. María Núñez", "Dr. Amara Okafor",
    ]  # fmt: skip
    row = next(words(each.text) for each in document.tagged("tr") if "Ada" in each.text)
    for part in ("09:00–09:15", "Ada Lovelace", "10 Dec 1985", "+1 555 010 0199", "Follow-up", "Booked"):
        assert part in row


async def test_no_page_has_inline_styles_scripts_or_handlers(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    for path in ("/calendar?date=2026-11-16", f"/appointments/{booked}", "/patients", "/book", "/blocks", "/day-sheet"):
        answer = await staff.get(f"/console{path}")
        assert answer.status_code == 200
        for element in Document(answer.text).elements:
            assert "style" not in element.attributes, path
            assert not [name for name in element.attributes if name.startswith("on")], path
            assert element.tag != "style", path
            if element.tag == "script":
                assert element.attributes["src"].startswith("/console/assets/"), path
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe" not in policy


async def test_every_place_of_the_calendar_has_its_class(staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    """A row without a rule would put an appointment at the wrong time."""
    for query in ({}, {"view": "week"}, {"date": "2026-03-08"}, {"date": "2026-11-01", "view": "week"}):
        html = await calendar(staff, **query)
        sheet = next(each.attributes["href"] for each in Document(html).tagged("link") if "/grid." in str(each))
        css = (await staff.get(sheet)).text
        for element in Document(html).elements:
            for name in element.classes:
                if (
                    name.partition("-")[0] in ("at", "for", "lane", "lanes", "wide", "rows", "columns")
                    and name[-1].isdigit()
                ):
                    assert f".{name}{{" in css, name


async def test_without_a_session_the_calendar_leads_to_the_sign_in(world: World) -> None:
    nobody: Any = world.anonymous()
    for path in ("/calendar", "/calendar/grid", "/day-sheet", "/live", "/patients", "/book", "/blocks"):
        answer = await nobody.get(f"/console{path}")
        assert answer.status_code == 303, path
        assert answer.headers["Location"].startswith("/console/sign-in")


async def test_short_appointments_in_a_row_stand_below_each_other_at_their_true_height(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    file = PRACTICE.replace("SLUG", "harbor").replace(
        "timeZone: America/New_York,", "timeZone: America/New_York, slotIntervalMinutes: 5,"
    )
    await world.import_file(file.replace("name: Flu shot, durationMinutes: 15", "name: Flu shot, durationMinutes: 5"))
    wanted = {"visitTypeId": 22, "procedureId": 103}
    first = await book(agent, "Ada", **wanted)
    second = await book(agent, "Alan", **wanted)
    html = await calendar(staff, provider=10)
    found = entries(html)
    assert {"at-1", "for-1", "lane-1"} <= found[first].classes
    assert {"at-2", "for-1", "lane-1"} <= found[second].classes
    [column] = Document(html).having("data-provider", "10")
    assert "lanes-1" in column.classes
    assert "shortest-1" in Document(html).having("data-cal")[0].classes, "the rows are high enough for the shortest"


async def test_only_columns_that_changed_are_sent_and_recorded(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await book(agent)  # with provider 10
    html = await calendar(staff)
    document = Document(html)
    had = [each.attributes["data-column"] for each in document.having("data-column")]
    known = {
        "If-None-Match": f'"{document.having("data-tag")[0].attributes["data-tag"]}"',
        "X-Calendar-Columns": ",".join(had),
    }
    alans = await book(agent, "Alan", providerId=11)
    answer = await staff.get("/console/calendar/grid?date=2026-11-16", headers=known)
    assert set(entries(answer.text)) == {alans}
    sent = Document(answer.text).having("data-column")
    assert ["data-unchanged" in each.attributes for each in sent] == [True, False, True]
    assert [each.attributes["data-column"] for each in sent][::2] == had[::2]
    last = (await records(world, operation="console.calendar"))[-1]
    assert last["subject_ids"] == [await patient_id(agent, "Alan")], "nobody else's name was shown again"


async def test_the_calendar_is_sent_compressed_and_repeats_nothing_that_a_link_can_choose_freely(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    """Otherwise the size of the answer would tell, guess by guess, which names are on the page."""
    await book(agent)
    marker = "Lovelace7531902"
    for path in ("/console/calendar", "/console/calendar/grid"):
        query = {
            "date": "2026-11-16",
            "x": marker,
            "show": marker,
            "notice": marker,
            "view": marker,
            "cancelled": marker,
        }
        answer = await staff.get(path, params={**query, "provider": "753190246", "visit": "753190246"})
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "Ada" in answer.text
        assert "7531902" not in answer.text
        plain = await staff.get(path, params=query, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers


async def test_view_and_filter_are_kept_for_the_person(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    async def shown(browser: httpx.AsyncClient, **query: str) -> tuple[list[str], set[str], set[str]]:
        document = Document(html := await calendar(browser, **query))
        columns = [each.attributes["data-provider"] for each in document.having("data-provider")]
        return columns, set(entries(html)), document.having("data-cal")[0].classes & {"density-compact", "by-visit"}

    follow_up = await book(agent)
    await book(agent, "Alan", visitTypeId=22, procedureId=103)
    form = {
        "filter": "yes",
        "provider": ["10", "12", "77", "x"],
        "visit": "21",
        "density": "compact",
        "colours": "visit",
    }
    saved = await staff.post("/console/calendar/preferences", data={**form, "date": "2026-11-16", "view": "week"})
    assert saved.headers["Location"] == "/console/calendar?date=2026-11-16&view=week"
    assert await shown(staff) == (["10", "12"], {follow_up}, {"density-compact", "by-visit"})
    await staff.post("/console/calendar/preferences", data={"density": "huge", "colours": "state"})
    assert await shown(staff) == (["10", "12"], {follow_up}, set()), (
        "the filter stays; what is not valid is the default"
    )
    assert (await shown(staff, provider="11"))[0] == ["11"], "an address that names a provider shows that one"
    assert "2 of 3 providers" in await calendar(staff)
    other = await signed_in(world, role="staff")
    assert (await shown(other))[0] == ["10", "11", "12"]
    await staff.post("/console/calendar/preferences", data={"filter": "yes"})
    assert (await shown(staff))[0] == ["10", "11", "12"]


async def test_proposals_that_wait_are_shown_without_what_they_propose(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    html = await calendar(staff)
    assert "for confirmation" not in html
    document = Document(html)
    known = {
        "If-None-Match": f'"{document.having("data-tag")[0].attributes["data-tag"]}"',
        "X-Calendar-Columns": ",".join(each.attributes["data-column"] for each in document.having("data-column")),
    }
    ada, slot = await patient_id(agent, "Ada"), (await slots(agent))[0]
    asked = await agent.post("/api/appointments", json={"patientId": ada, "slotId": slot["id"]})
    assert asked.status_code == 428
    grid = await staff.get("/console/calendar/grid?date=2026-11-16", headers=known)
    [waiting] = Document(grid.text).having("data-waiting")
    proposal = "1 proposal waits for confirmation: agent of harbor: Book an appointment, until "
    assert words(waiting.text).startswith(proposal)
    assert ada not in grid.text
    assert all("data-unchanged" in each.attributes for each in Document(grid.text).having("data-column"))
    world.clock.advance(minutes=20)
    assert "for confirmation" not in await calendar(await signed_in(world))


async def test_a_held_time_is_shown_until_it_expires_and_is_no_appointment(
    world: World, staff: httpx.AsyncClient
) -> None:
    await hold_first_slot(world)
    html = await calendar(staff)
    [held] = [each for each in Document(html).of_class("is-held") if "entry" in each.classes]
    assert words(held.text) == "09:00–09:15 Held until 03:05 Follow-up Held held by integration of harbor"
    [link] = Document(html).having("data-held-until")
    assert link.attributes["aria-label"] == "09:00–09:15 Held until 03:05, Follow-up, held by integration of harbor"
    assert {"at-1", "for-3", "lane-1"} <= held.classes
    assert Document(html).having("data-entry") == []
    [column] = Document(html).having("data-provider", "10")
    assert "Held until" in column.text
    assert "Held until" not in await calendar(staff, provider="11")
    assert "Held" not in await calendar(staff, "/day-sheet")
    tag = (await staff.get("/console/calendar/grid?date=2026-11-16")).headers["ETag"]
    world.clock.advance(minutes=5)
    changed = await staff.get("/console/calendar/grid?date=2026-11-16", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert "Held until" not in changed.text
