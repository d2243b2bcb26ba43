"""The practice by forms in a browser: by mouse, by keyboard alone on a phone, and without scripts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Office, Window, arrive, tab_to, type_in

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def admins(place: Office, forms_admin: str) -> Iterator[Window]:
    opened = place.open(forms_admin)
    yield opened
    opened.context.close()
    opened.errors.check()


def test_hours_are_changed_by_mouse_and_a_second_editor_is_refused(admins: Window) -> None:
    admins.errors.expected += ["status of 422", "status of 409"]
    page = admins.go("/practice/rules")
    page.get_by_role("link", name="Providers", exact=True).click()
    page.get_by_role("link", name="Dr. Ines Faria").click()
    arrive(page.get_by_role("heading", name="Dr. Ines Faria"))
    second = admins.context.new_page()
    second.goto(page.url)
    page.bring_to_front()
    type_in(page.get_by_label("Main Street, Wednesday, first time, from"), "09:00")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("alert")).to_contain_text("Wednesday, first time: to is required.")
    expect(page.get_by_label("Main Street, Wednesday, first time, from")).to_have_value("09:00")
    type_in(page.get_by_label("Main Street, Wednesday, first time, to"), "12:30")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("row", name="Wednesday at Main Street")).to_contain_text("09:00–12:30")
    page.get_by_role("button", name="Back to the form").click()
    expect(page.get_by_label("Main Street, Wednesday, first time, to")).to_have_value("12:30")
    page.get_by_role("button", name="Show what changes").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The practice has been changed.")).to_be_visible()
    expect(page.get_by_text("09:00–12:30")).to_be_visible()

    second.bring_to_front()
    arrive(second.get_by_label("Specialty"))
    second.get_by_label("Specialty").fill("Surgery")
    second.get_by_role("button", name="Show what changes").click()
    expect(second.get_by_role("alert")).to_contain_text("The practice has changed since you opened this form.")
    expect(second.get_by_label("Specialty")).to_have_value("Surgery")
    second.close()


def test_a_provider_is_added_by_keyboard_on_a_phone(admins: Window) -> None:
    page = admins.page
    page.set_viewport_size({"width": 390, "height": 800})
    admins.go("/practice/providers/edit")
    name = page.get_by_role("textbox", name="Name", exact=True)
    arrive(name)
    tab_to(page, name)
    page.keyboard.type("Dr. Typed")
    page.keyboard.press("Enter")
    apply = page.get_by_role("button", name="Apply")
    arrive(apply)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tab_to(page, apply)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Dr. Typed")).to_be_visible()


def test_rules_are_changed_without_scripts(place: Office, forms_admin: str) -> None:
    opened = place.open(forms_admin, scripts=False)
    page = opened.go("/practice/rules")
    page.get_by_label("Minimum notice in minutes").fill("45")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("row", name="Minimum notice")).to_contain_text("45 minutes")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Minimum notice in minutes")).to_have_value("45")
    opened.context.close()
    opened.errors.check()
