"""A provider falls ill: the day is given new times, called through and taken back, by mouse and by keyboard."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from frontdesk.features.absences.absences import BATCH_SIZE
from tests.browser.browsing import Office, Window, tab_to
from tests.browser.callers import CHEN, DOWNTOWN

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]
MORE_THAN_ONE_BATCH = BATCH_SIZE + 1


def booked_day(place: Office, weeks_ahead: int, last_names: list[str]) -> str:
    """A day of a provider with these patients, so far ahead that no other test uses it."""
    day = place.agent.slots(limit=1, weeks_ahead=weeks_ahead)[0].day
    for last_name in last_names:
        slot = place.agent.slots(limit=1, weeks_ahead=weeks_ahead)[0]
        assert slot.day == day, "the day is full"
        place.agent.book(place.agent.patient(last_name), slot)
    return day


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has_text=name)


def press(page: Page, control: Locator) -> None:
    tab_to(page, control)
    page.keyboard.press("Enter")


def test_a_day_is_reassigned_called_through_and_taken_back_by_mouse(place: Office, window: Open) -> None:
    names = [f"Moved{chr(ord('a') + number)}" for number in range(MORE_THAN_ONE_BATCH)]
    day = booked_day(place, 5, names)
    page = window("staff").go(f"/calendar?date={day}&location={DOWNTOWN}")
    page.get_by_role("link", name="Provider is away").click()
    page.get_by_label("Who is away").select_option(label="Dr. Robert Chen")
    page.get_by_role("button", name="Show the appointments").click()
    expect(page.get_by_role("link", name=names[0])).to_be_visible()
    page.get_by_role("button", name="Block the time and propose new times").click()
    expect(page.get_by_text("nobody can book into it")).to_be_visible()
    row(page, names[0]).get_by_role("combobox").select_option("cancel")
    page.get_by_role("button", name="Apply").click()
    for name in names[1:]:  # also those that the first request did not get to
        expect(row(page, name)).to_have_attribute("data-state", "moved")
    expect(row(page, names[0])).to_have_attribute("data-state", "cancelled")
    page.get_by_role("link", name="Whom to call").click()
    row(page, names[1]).get_by_role("button", name="Called").click()
    expect(row(page, names[1]).get_by_text("Called by Ana at the desk")).to_be_visible()
    page.get_by_role("link", name="Appointments").click()
    row(page, names[2]).get_by_role("button", name="Undo").click()
    expect(row(page, names[2])).to_have_attribute("data-state", "left")
    page.get_by_role("button", name="Undo everything").click()
    expect(page.get_by_text("The time is open for booking again.")).to_be_visible()
    for name in names:
        expect(row(page, name)).to_have_attribute("data-state", "left")


def test_a_day_is_reassigned_and_called_through_by_keyboard(place: Office, window: Open) -> None:
    day = booked_day(place, 6, ["Keyed", "Keyedtoo"])
    page = window("staff").go(f"/calendar?date={day}&location={DOWNTOWN}")
    press(page, page.get_by_role("link", name="Provider is away"))
    who = page.get_by_label("Who is away")
    tab_to(page, who)
    while who.evaluate("(who) => who.selectedOptions[0].text") != "Dr. Robert Chen":
        page.keyboard.press("ArrowDown")
    press(page, page.get_by_role("button", name="Block the time and propose new times"))
    choice = row(page, "Keyedtoo").get_by_role("combobox")
    tab_to(page, choice)
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    expect(choice).to_have_value("cancel")
    press(page, page.get_by_role("button", name="Apply"))
    expect(row(page, "Keyedtoo")).to_have_attribute("data-state", "cancelled")
    press(page, page.get_by_role("link", name="Whom to call"))
    press(page, row(page, "Keyedtoo").get_by_role("button", name="Called"))
    expect(row(page, "Keyedtoo").get_by_text("Called by Ana at the desk")).to_be_visible()
    press(page, page.get_by_role("link", name="Appointments"))
    press(page, row(page, "Keyedtoo").get_by_role("button", name="Undo"))
    expect(row(page, "Keyedtoo")).to_have_attribute("data-state", "left")
    press(page, page.get_by_role("button", name="Undo everything"))
    expect(page.get_by_text("The time is open for booking again.")).to_be_visible()


def test_a_day_is_reassigned_without_scripts(place: Office, window: Open) -> None:
    names = [f"Plain{chr(ord('a') + number)}" for number in range(MORE_THAN_ONE_BATCH)]
    day = booked_day(place, 7, names)
    page = window("staff", scripts=False).go(f"/away?provider={CHEN}&date={day}")
    page.get_by_role("button", name="Block the time and propose new times").click()
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("button", name="Continue").click()
    for name in names:
        expect(row(page, name)).to_have_attribute("data-state", "moved")
    page.get_by_role("button", name="Undo everything").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("The time is open for booking again.")).to_be_visible()
