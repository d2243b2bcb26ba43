"""The console without a mouse, where the other files use one: blocked time, visits, day sheet, usage, practice file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Office, Window, choose, press, tab_to
from tests.browser.test_admin import expect_in_time, row

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]


def test_time_is_blocked_and_opened_again_by_keyboard(place: Office, window: Open) -> None:
    day = place.agent.slots(limit=50)[-1].day
    year, month, date = day.split("-")
    page = window("staff").go("/blocks")
    choose(page, page.get_by_label("Who"), "Dr. Robert Chen")
    tab_to(page, page.get_by_label("From", exact=True))
    page.keyboard.type(f"{date}{month}{year}")
    tab_to(page, page.get_by_label("From time"))
    page.keyboard.type("0300PM")
    tab_to(page, page.get_by_label("To time"))
    page.keyboard.type("0400PM")
    tab_to(page, page.get_by_label("Reason"))
    page.keyboard.type("Typed meeting")
    page.keyboard.press("Enter")
    anyway = page.get_by_role("button", name="Block the time anyway")
    expect(page.get_by_text("The time is blocked and can no longer be booked.").or_(anyway)).to_be_visible()
    if anyway.is_visible():
        press(page, anyway)
    expect(page.get_by_text("The time is blocked and can no longer be booked.")).to_be_visible()
    blocked = page.get_by_role("listitem").filter(has_text="Typed meeting")
    press(page, blocked.get_by_role("button", name="Open again"))
    expect(page.get_by_text("The time is open again.")).to_be_visible()
    expect(page.get_by_text("Typed meeting")).to_have_count(0)


def test_what_came_of_a_visit_is_recorded_by_keyboard(place: Office, window: Open) -> None:
    page = window("staff").go(f"/appointments/{place.agent.completed_visit()}")
    for text in ("Arrived", "Completed"):
        press(page, page.get_by_role("group", name="Actions").get_by_role("button", name=text, exact=True))
        expect(page.locator("h1 + .badge")).to_have_text(text)


def test_the_day_sheet_is_reached_by_keyboard(window: Open) -> None:
    page = window("staff").go("/calendar")
    press(page, page.get_by_role("link", name="Day sheet"))
    tab_to(page, page.get_by_role("button", name="Print"))
    press(page, page.get_by_role("link", name="Back to the calendar"))
    expect(page.get_by_role("link", name="New booking")).to_be_visible()


def test_usage_is_read_by_keyboard(place: Office, window: Open) -> None:
    place.agent.slots(limit=1)
    page = window("admin").go("/usage")
    expect_in_time(row(page, "Find the earliest open slots").first)
    requests = page.get_by_role("figure", name="Requests over time")
    press(page, requests.get_by_text("Show as a table"))
    expect(requests.get_by_role("table")).to_be_visible()
    press(page, page.get_by_role("navigation", name="Time").get_by_role("link", name="7 days"))
    expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")


def test_a_practice_file_is_given_by_keyboard(window: Open, tmp_path: Path) -> None:
    path = tmp_path / "practice.yaml"
    path.write_text("practice: {slug: demo}\nlocations: nowhere\n")
    opened = window("admin")
    opened.errors.expected.append("status of 422")  # a file with errors is shown again
    opened.page.on("filechooser", lambda _: None)  # from now on the browser tells of them; that takes it a moment
    page = opened.go("/practice")
    tab_to(page, page.get_by_label("File", exact=True))
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(path)
    press(page, page.get_by_role("button", name="Show what changes"))
    expect(page.get_by_role("alert")).to_contain_text("errors. Nothing was changed.")
