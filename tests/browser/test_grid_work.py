"""Work at the grid in a browser: book and move there, undo, and go on through outages and the end of a session."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import Office, Window, command, sign_in, type_in
from tests.browser.callers import CHEN, Agent, Slot
from tests.browser.test_front_desk import calendar, entry, panel

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]
_NIGHT_CLINIC = """
practice: {slug: night, name: Night Clinic, timeZone: America/New_York, sandbox: true}
locations: [{id: 1, name: Main Street}]
providers: [{id: 10, name: Dr. Ines Faria, hours: [{location: 1, days: [sun], from: "00:00", to: "04:00"}]}]
visitTypes: [{id: 20, name: Visit, procedures: [{id: 100, name: Consultation, durationMinutes: 30}]}]
"""


@pytest.fixture
def agent(place: Office) -> Agent:
    return place.agent


def chosen(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Chosen time")


def free_times(agent: Agent) -> list[Slot]:
    """Of the day with the most of them among the next ones."""
    by_day: dict[str, list[Slot]] = {}
    for slot in agent.slots(limit=50):
        by_day.setdefault(slot.day, []).append(slot)
    return max(by_day.values(), key=len)


def free_time(agent: Agent) -> Slot:
    return free_times(agent)[-1]


def point(page: Page, slot: Slot) -> tuple[float, float]:
    """Where the slot is in the provider's column."""
    body = page.locator(f'.cal-body[data-provider="{CHEN}"]')
    opens = int(page.locator("[data-cal]").get_attribute("data-first-minute") or 0)
    row = (slot.start.hour * 60 + slot.start.minute - opens) / 5
    body.evaluate(
        """(body, row) => {
          const rows = Number(getComputedStyle(body).getPropertyValue("--rows"));
          const scroll = body.closest(".cal-scroll");
          scroll.scrollTop = body.offsetHeight * row / rows - 150;
        }""",
        row,
    )
    box = body.bounding_box()
    assert box is not None
    rows = int(body.evaluate("(body) => getComputedStyle(body).getPropertyValue('--rows')"))
    return box["x"] + box["width"] / 2, box["y"] + box["height"] * (row + 0.5) / rows


def note_toasts(page: Page) -> None:
    """Keeps what toasts say, since they leave by themselves."""
    page.evaluate(
        """() => {
          window.toasts = [];
          new MutationObserver((changes) => {
            for (const { addedNodes } of changes) for (const node of addedNodes) window.toasts.push(node.textContent);
          }).observe(document.querySelector("body > [data-toasts]"), { childList: true });
        }"""
    )


def test_a_free_time_is_booked_with_a_press_a_name_and_enter(place: Office, agent: Agent) -> None:
    slot = free_time(agent)
    agent.patient("Popover")
    window = open_with_axe(place, "staff")
    page = calendar(window, slot, provider=str(CHEN))
    page.wait_for_load_state()
    page.mouse.click(*point(page, slot))
    expect(chosen(page).get_by_label("Time")).to_have_value(slot.time)
    expect(chosen(page).get_by_label("Patient")).to_be_focused()
    page.keyboard.type("popov")
    expect(chosen(page).get_by_role("radio", name=re.compile("Popover, Mina"))).to_be_checked()
    require_accessible(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    chosen(page).get_by_label("Visit").select_option(label="Introductory consultation, 30 min")
    chosen(page).get_by_label("Patient").press("Enter")
    expect(chosen(page)).to_be_hidden()
    expect(entry(page, "Popover")).to_be_visible()
    expect(entry(page, "Popover")).to_contain_text(slot.time)
    window.context.close()
    window.errors.check()


def test_a_press_finds_the_row_of_a_day_that_is_an_hour_longer(place: Office, window: Open, tmp_path: Path) -> None:
    path = tmp_path / "night.yaml"
    path.write_text(_NIGHT_CLINIC)
    command(place.desk, "practice", "import", str(path))
    opened = window(None)
    sign_in(opened.page, place.new_link("staff", "Ines Faria", "night"))
    november = date(datetime.now(UTC).year + 1, 11, 1)
    longer = november + timedelta(days=(6 - november.weekday()) % 7)
    page = opened.go(f"/calendar?date={longer}&location=1")
    page.wait_for_load_state()
    body = page.locator(".cal-body").first
    rows = int(body.evaluate("(body) => getComputedStyle(body).getPropertyValue('--rows')"))
    for row, time, zone in ((18, "01:30", "EDT"), (30, "01:30", "EST"), (42, "02:30", None)):
        box = body.bounding_box()
        assert box is not None
        body.click(position={"x": box["width"] / 2, "y": box["height"] * (row + 0.5) / rows})
        expect(chosen(page).get_by_label("Time", exact=True)).to_have_value(time)
        expect(chosen(page).get_by_text(f"Main Street, {zone or 'EST'}")).to_be_visible()
        if zone is not None:
            expect(chosen(page).get_by_label("Time zone").locator("option:checked")).to_have_text(zone)
        page.keyboard.press("Escape")
        expect(chosen(page)).to_be_hidden()


def test_an_appointment_is_moved_by_drag_and_by_keys(window: Open, agent: Agent) -> None:
    target, *_, slot = free_times(agent)
    appointment = agent.book(agent.patient("Dragged"), slot)
    page = calendar(window("staff"), slot, provider=str(CHEN))
    page.wait_for_load_state()
    entry(page, "Dragged").scroll_into_view_if_needed()
    entry(page, "Dragged").hover(position={"x": 20, "y": 4})
    page.mouse.down()
    page.mouse.move(*point(page, target), steps=5)
    page.mouse.up()
    expect(chosen(page).get_by_text("Until now")).to_be_visible()
    assert agent.api.get_appointment(appointment_id=appointment).start == slot.start, "not before it is confirmed"
    chosen(page).get_by_role("button", name="Move appointment").click()
    expect(chosen(page)).to_be_hidden()
    expect(entry(page, "Dragged")).to_contain_text(target.time)
    entry(page, "Dragged").focus()
    page.keyboard.press("m")
    expect(chosen(page).get_by_label("Time")).to_have_value(target.time)
    type_in(chosen(page).get_by_label("Time"), slot.time)
    page.keyboard.press("Enter")
    chosen(page).get_by_role("button", name="Move appointment").press("Enter")
    expect(entry(page, "Dragged")).to_contain_text(slot.time)


def test_a_cancellation_is_undone_from_the_toast(window: Open, agent: Agent) -> None:
    slot = free_time(agent)
    appointment = agent.book(agent.patient("Restored"), slot)
    opened = window("staff")
    opened.page.clock.install()
    page = calendar(opened, slot, provider=str(CHEN))
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))  # the toast stays until the test has seen it
    entry(page, "Restored").click()
    panel(page).get_by_text("Cancel appointment").click()
    panel(page).get_by_role("button", name="Cancel it").click()
    expect(panel(page).locator("h1 + .badge")).to_have_text("Cancelled")
    panel(page).locator(".toast").get_by_role("button", name="Undo").click()
    expect(panel(page).locator("h1 + .badge")).to_have_text("Booked")
    assert agent.status(appointment) == "booked"


def test_the_schedule_stays_while_the_service_is_away(window: Open, agent: Agent) -> None:
    earlier, *_, slot = free_times(agent)
    agent.book(agent.patient("Staying"), slot)
    opened = window("staff")
    opened.errors.expected.append("Failed to load resource|ERR_")
    page = calendar(opened, slot, provider=str(CHEN))
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.route("**/console/**", lambda route: route.abort())
    agent.book(agent.patient("Meanwhile"), earlier)
    expect(page.get_by_text(re.compile(r"As of \d\d:\d\d, reconnecting"))).to_be_visible()
    expect(entry(page, "Staying")).to_be_visible()
    note_toasts(page)
    page.get_by_role("link", name="Next day").click()
    page.wait_for_function("window.toasts.some((words) => words.startsWith('The service cannot be reached'))")
    expect(entry(page, "Staying")).to_be_visible()
    page.unroute("**/console/**")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(entry(page, "Meanwhile")).to_be_visible()


def test_a_typed_form_outlives_its_session(place: Office, window: Open) -> None:
    opened = window("staff")
    opened.errors.expected.append("status of 401")
    page = new_patient(opened, "Kept", "Typing", "+1 555 020 9999")
    kept = opened.context.cookies()
    opened.context.clear_cookies()
    page.get_by_role("button", name=re.compile("Add|Save")).click()
    expect(page.get_by_role("dialog", name="You are signed out")).to_be_visible()
    expect(page.get_by_label("First name")).to_be_hidden()
    opened.context.add_cookies(kept)  # as the sign-in in another tab does
    expect(page.get_by_role("heading", name="Kept Typing")).to_be_visible()


def test_a_refused_form_outlives_its_session(window: Open, agent: Agent) -> None:
    opened = window("staff")
    opened.errors.expected.append("status of (401|409|422)")
    page = new_patient(opened, "Still", "There", "1")
    save = page.get_by_role("button", name=re.compile("Add|Save"))
    save.click()
    expect(page.locator(".error")).to_be_visible()
    page.wait_for_load_state()
    sign_out_and_in(opened, save)
    expect(page.locator(".error")).to_be_visible()
    expect(page.get_by_label("First name")).to_have_value("Still")

    slot = free_time(agent)
    agent.patient("Refused")
    calendar(opened, slot, provider=str(CHEN))
    page.wait_for_load_state()
    page.mouse.click(*point(page, slot))
    chosen(page).get_by_label("Patient").fill("refus")
    expect(chosen(page).get_by_role("radio", name=re.compile("Refused, Mina"))).to_be_checked()
    type_in(chosen(page).get_by_label("Time"), "23:30")
    book = chosen(page).get_by_role("button", name="Book", exact=True)
    book.click()
    expect(chosen(page).get_by_role("heading", name="Book it anyway?")).to_be_visible()
    sign_out_and_in(opened, book)
    expect(chosen(page).get_by_role("radio", name=re.compile("Refused, Mina"))).to_be_checked()


def new_patient(opened: Window, first: str, last: str, phone: str) -> Page:
    """The form of a new patient, filled in."""
    page = opened.go("/patients/new")
    page.wait_for_load_state()
    page.get_by_label("First name").fill(first)
    page.get_by_label("Last name").fill(last)
    type_in(page.get_by_label("Date of birth"), "1990-05-17")
    page.get_by_label("Phone").fill(phone)
    return page


def sign_out_and_in(opened: Window, button: Locator) -> None:
    """Presses the button after the session has ended, and signs in again as in another tab."""
    kept = opened.context.cookies()
    opened.context.clear_cookies()
    button.click()
    signed_out = opened.page.get_by_role("dialog", name="You are signed out")
    expect(signed_out).to_be_visible()
    opened.context.add_cookies(kept)
    expect(signed_out).to_be_hidden()
