"""The front desk without a mouse, where the other files use one: new patients, full times, filters, the shared desk."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsing import FIREFOX, Office, Window, arrive, choose, press, tab_to, write
from tests.browser.callers import CHEN
from tests.browser.test_front_desk import calendar, entry
from tests.browser.test_grid_work import chosen, free_times

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]


def test_a_patient_is_added_while_booking(place: Office, window: Open) -> None:
    if FIREFOX:
        pytest.skip("a page that a key opened has no focus in headless Firefox, and hears of no typed date")
    page = calendar(window("staff"), place.agent.slots()[0])
    arrive(page.get_by_role("link", name="New booking"))
    page.keyboard.press("b")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("Unheardof")
    page.keyboard.press("Enter")
    arrive(page.get_by_text("No patient matches."))
    press(page, page.get_by_role("link", name="New patient"))
    write(page, {"First name": "Nadia", "Last name": "Unheardof", "Date of birth": "17 May 1990"})
    write(page, {"Phone": "+1 555 020 8801"})
    page.keyboard.press("Enter")
    arrive(page.get_by_role("heading", name="Book for Nadia Unheardof"))
    choose(page, page.get_by_label("Visit"), "Introductory consultation, 30 min")
    page.keyboard.press("Enter")
    press(page, page.locator(".slot").first)
    press(page, page.get_by_role("button", name="Book appointment"))
    expect(page.get_by_text("The appointment is booked.")).to_be_visible()
    expect(entry(page, "Unheardof")).to_be_visible()


def test_a_full_time_is_overbooked(place: Office, window: Open) -> None:
    agent = place.agent
    full = free_times(agent)[0]
    agent.book(agent.patient("Sitting"), full)
    agent.patient("Inserted")
    opened = window("staff")
    opened.errors.expected.append("Failed to load resource.*409")
    page = calendar(opened, full, provider=str(CHEN))
    arrive(entry(page, "Sitting"))
    tab_to(page, page.locator('[data-entry][tabindex="0"]'))
    for _ in page.locator("[data-entry]").all():
        if not entry(page, "Sitting").evaluate("(entry) => entry === document.activeElement"):
            page.keyboard.press("ArrowDown")
    page.keyboard.press("b")
    expect(chosen(page).get_by_label("Patient")).to_be_focused()
    page.keyboard.type("inser")
    expect(chosen(page).get_by_role("radio", name=re.compile("Inserted, Mina"))).to_be_checked()
    write(page, {"Time": full.time})
    choose(page, chosen(page).get_by_label("Visit"), "Introductory consultation, 30 min")
    press(page, chosen(page).get_by_role("button", name="Book", exact=True))
    expect(chosen(page).get_by_text("places taken at")).to_be_visible()
    write(page, {"Reason": "In pain"})
    page.keyboard.press("Enter")
    expect(chosen(page).get_by_role("button", name="Book anyway")).to_be_focused()
    page.keyboard.press("Enter")
    expect(chosen(page)).to_be_hidden()
    expect(entry(page, "Inserted")).to_have_accessible_name(re.compile("Override · "))
    expect(entry(page, "Sitting")).to_be_focused()


def test_the_calendar_is_filtered(place: Office, window: Open) -> None:
    page = calendar(window("staff"), place.agent.slots()[0])
    chen = page.get_by_role("heading", name="Dr. Robert Chen")
    options, save = page.get_by_role("button", name="View and filter"), page.get_by_role("button", name="Save")
    arrive(chen)
    press(page, options)
    expect(save).to_be_visible()
    page.keyboard.press("Escape")
    expect(save).to_be_hidden()
    expect(options).to_be_focused()
    page.keyboard.press("v")
    press(page, page.get_by_role("checkbox", name="Dr. Robert Chen"), "Space")
    press(page, save)
    expect(chen).to_have_count(0)
    press(page, page.get_by_role("button", name="Show all"))
    expect(chen).to_be_visible()


def sign_in_with(page: Page, link: str) -> None:
    tab_to(page, page.get_by_label("Sign-in link"))
    page.keyboard.insert_text(link)  # as it is pasted
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/calendar*")


def lock_with(page: Page, pin: str) -> None:
    """Sets a PIN first."""
    press(page, page.get_by_role("link", name=re.compile("Shift")))
    press(page, page.get_by_role("link", name="Set a PIN for a shared desk"))
    write(page, {"New PIN": pin, "New PIN, again": pin})
    page.keyboard.press("Enter")
    expect(page.get_by_text("The PIN has been set.")).to_be_visible()
    press(page, page.get_by_role("button", name="Lock, or switch person"))
    expect(page.get_by_role("heading", name="Locked")).to_be_visible()


def test_a_shared_desk_is_locked_unlocked_and_passed_on(place: Office, window: Open) -> None:
    opened = window(None)
    opened.errors.expected.append("status of 401")  # a wrong PIN
    page = opened.go("/sign-in")
    sign_in_with(page, place.new_link("staff", "Early Shift"))
    lock_with(page, "2468")
    press(page, page.get_by_role("link", name="Sign in as somebody else"))
    sign_in_with(page, place.new_link("staff", "Late Shift"))
    lock_with(page, "1357")

    pin, early, late = page.get_by_label("PIN"), *(page.get_by_role("radio", name=name) for name in ("Early", "Late"))
    expect(pin).to_be_focused()
    expect(late).to_be_checked()  # who locked it
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowUp")
    expect(early).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.type("1357")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The PIN is wrong.")
    expect(early).to_be_checked()
    expect(pin).to_be_focused()
    page.keyboard.type("2468")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Early Shift")).to_be_visible()
    press(page, page.get_by_role("button", name="Lock, or switch person"))
    expect(early).to_be_checked()
    page.keyboard.type("2468")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Early Shift")).to_be_visible()
