"""The arrivals board and notes in a browser: by mouse and keyboard, undo, and two desks that see the same."""

import asyncio
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.browser.browsing import PHONE, Office, Window, keep_toasts, tab_to
from tests.browser.callers import Agent

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]

LANES = itertools.count(90)
# Locations of the demo practice. At one of them midnight is at least half an hour away.
PLACES = ((1, "America/New_York"), (3, "America/Chicago"))
APPOINTMENT = """
INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id, procedure_id,
    lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
SELECT p.practice_id, $1, $2, v.provider_id, $3, c.visit_type_id, c.procedure_id, $6, $4, $5, $5, 'booked', 'demo',
    now(), now()
FROM practice p, LATERAL (SELECT min(provider_id) AS provider_id FROM provider WHERE practice_id = p.practice_id) v,
    LATERAL (SELECT visit_type_id, procedure_id FROM procedure WHERE practice_id = p.practice_id LIMIT 1) c
WHERE p.slug = 'demo'
"""


def here() -> tuple[int, datetime]:
    """A location, and the last minute of its day."""
    moments = ((location, datetime.now(ZoneInfo(zone))) for location, zone in PLACES)
    location, now = next((at, now) for at, now in moments if (now + timedelta(minutes=30)).date() == now.date())
    return location, now.replace(hour=23, minute=59, second=0, microsecond=0)


def expect_today(place: Office, agent: Agent, last_name: str) -> int:
    """A patient with an appointment today with Dr. Chen, which no open slot is needed for; returns the location."""
    patient = agent.patient(last_name)
    location, starts = here()
    found = f"apt_{last_name:0<22}"

    async def insert() -> None:
        dsn = EmbeddedPostgres(place.folder / "data" / "postgres").dsn(OWNER_ROLE)
        connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
        ends = starts + timedelta(minutes=1)
        await connection.execute(APPOINTMENT, found, patient, location, starts, ends, next(LANES))
        await connection.close()

    with ThreadPoolExecutor(1) as beside:  # the browser's loop runs in this thread
        beside.submit(asyncio.run, insert()).result()
    return location


def listed(page: Page, place: str, name: str) -> Locator:
    return page.get_by_role("region", name=place).get_by_role("listitem").filter(has_text=name)


def test_patients_are_moved_on_the_board_by_mouse_and_keyboard_and_every_desk_sees_it(
    place: Office, window: Open
) -> None:
    location = expect_today(place, place.agent, "Boarded")
    desks = [window("staff") for _ in range(2)]
    keep_toasts(desks[0])
    page, other = (desk.go(f"/arrivals?location={location}") for desk in desks)
    for each in (page, other):
        expect(each.get_by_text("Live", exact=True)).to_be_visible()
    page.bring_to_front()
    listed(page, "Expected", "Boarded").get_by_role("button", name="Arrived").click()
    expect(listed(page, "Waiting", "Boarded")).to_be_visible()
    expect(listed(other, "Waiting", "Boarded")).to_be_visible()
    expect(listed(page, "Waiting", "Boarded").get_by_role("button", name="Call in")).to_be_focused()
    page.keyboard.press("Enter")
    page.locator(".toast").filter(has_text="is with the provider").get_by_role("button", name="Undo").click()
    expect(listed(page, "Waiting", "Boarded")).to_be_visible()
    expect(listed(other, "Waiting", "Boarded")).to_be_visible()
    undo = listed(page, "Waiting", "Boarded").get_by_role("button", name="Undo")
    tab_to(page, undo)
    page.keyboard.press("Enter")
    expect(listed(page, "Expected", "Boarded")).to_be_visible()
    page.get_by_label("Find a patient on the board").fill("bóard mina")
    expect(listed(page, "Expected", "Boarded")).to_be_visible()
    page.get_by_label("Find a patient on the board").fill("nobody of this name")
    expect(listed(page, "Expected", "Boarded")).to_be_hidden()


def test_the_board_works_without_scripts(place: Office, window: Open) -> None:
    location = expect_today(place, place.agent, "Scriptless")
    page = window("staff", scripts=False).go(f"/arrivals?location={location}")
    listed(page, "Expected", "Scriptless").get_by_role("button", name="Arrived").click()
    expect(page.get_by_text("The arrival has been recorded.")).to_be_visible()
    expect(listed(page, "Waiting", "Scriptless")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Undo", exact=True).click()
    expect(listed(page, "Expected", "Scriptless")).to_be_visible()


def test_a_note_is_added_by_keyboard_and_removed(place: Office, window: Open) -> None:
    slot = place.agent.slots()[0]
    appointment = place.agent.book(place.agent.patient("Noted"), slot)
    page = window("staff", size=PHONE).go(f"/appointments/{appointment}")
    tab_to(page, page.get_by_text("Add a note"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Note", exact=True))
    page.keyboard.type("Uses a wheelchair " + 100 * "w")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The note has been added.")).to_be_visible()
    note = page.get_by_role("listitem").filter(has_text="Uses a wheelchair")
    expect(note).to_contain_text("On this appointment")
    assert note.evaluate("(row) => row.scrollWidth <= row.clientWidth"), "a long word stays in its box"
    note.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No notes.")).to_be_visible()


def test_the_board_of_the_next_day_has_its_heading(place: Office, window: Open) -> None:
    page = window("staff").go("/arrivals")
    page.wait_for_load_state()
    board = page.locator("[data-board] [data-day]")
    day = board.get_attribute("data-day") or ""
    tomorrow = (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    find = page.get_by_label("Find a patient on the board")
    find.fill("before midnight")

    def next_day(route: Route) -> None:
        answer = route.fetch(headers={**route.request.headers, "if-none-match": ""})
        route.fulfill(response=answer, body=answer.text().replace(day, tomorrow))

    page.route("**/arrivals/board*", next_day)
    place.agent.book(place.agent.patient("Waking"), place.agent.slots()[-1])  # the board looks again
    expect(find).to_have_value("")  # the page has been loaded anew
    page.unroute_all(behavior="ignoreErrors")  # also those that are being answered
    expect(board).to_have_attribute("data-day", day)
