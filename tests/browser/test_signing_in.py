"""Getting in and out: links, roles, the theme, and signing out on every device."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Office, Window, sign_in

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]


def test_a_page_asked_for_before_signing_in_is_shown_after_it(place: Office, window: Open) -> None:
    page = window(None).go("/patients")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Sign-in link").fill(place.new_link("staff", "Late Comer"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Patients")).to_be_visible()


def test_signing_out_everywhere_ends_the_other_windows_too(place: Office, window: Open) -> None:
    first, second = window(None), window(None)
    sign_in(first.page, place.new_link("staff", "Two Screens"))
    second.context.add_cookies(first.context.cookies())
    second.go("/account")
    expect(second.page.get_by_text("Two Screens").first).to_be_visible()
    first.go("/account").get_by_role("button", name="Sign out everywhere").click()
    expect(first.page.get_by_role("heading", name="Sign in")).to_be_visible()
    second.page.reload()
    expect(second.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_staff_are_offered_nothing_that_is_the_admins(window: Open) -> None:
    opened = window("staff")
    opened.errors.expected.append("status of 403")
    page = opened.go("/calendar")
    menu = page.get_by_role("navigation", name="Console")
    expect(menu.get_by_role("link", name="Calendar")).to_be_visible()
    for name in ("Clients", "Usage", "Agent's view", "Audit"):
        expect(menu.get_by_role("link", name=name)).to_have_count(0)
    opened.go("/clients")
    expect(page.get_by_text("This page requires the role admin.")).to_be_visible()


def test_nobody_connects_an_assistant_on_a_page_that_has_just_come_up(place: Office, window: Open) -> None:
    """A window that opens under a double click gets its second press, which must not agree to anything."""
    page = window("staff").page
    page.add_init_script("window.isInFront = true; document.hasFocus = () => window.isInFront;")
    page.clock.install(time=datetime(2026, 11, 16, tzinfo=UTC))
    page.clock.pause_at(datetime(2026, 11, 16, 12, tzinfo=UTC))
    page.goto(f"{place.desk.url}/console{place.agent.consent()}")
    connect = page.get_by_role("button", name="Connect", exact=True)
    page.clock.run_for(900)
    expect(connect).to_be_disabled()
    page.clock.run_for(200)
    expect(connect).to_be_enabled()
    page.evaluate("window.isInFront = false; dispatchEvent(new Event('blur'))")
    expect(connect).to_be_disabled()
    page.clock.run_for(5000)
    expect(connect).to_be_disabled()
    page.evaluate("window.isInFront = true; dispatchEvent(new Event('focus'))")
    page.clock.run_for(900)
    expect(connect).to_be_disabled()
    page.clock.run_for(200)
    expect(connect).to_be_enabled()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_chosen_theme_stays(window: Open, scripts: bool) -> None:
    page = window("staff", scripts=scripts).go("/patients")
    for theme in ("dark", "light"):
        page.get_by_role("button", name="Switch between light and dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)


def test_the_menu_of_a_phone_opens_by_keyboard(window: Open) -> None:
    page = window("staff", size=(360, 740)).go("/patients")
    menu = page.get_by_role("navigation", name="Console")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Menu").focus()
    page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    menu.get_by_role("link", name="Calendar").click()
    expect(page).to_have_url(re.compile("/console/calendar"))


def test_the_first_tab_leads_past_the_menu(window: Open) -> None:
    page = window("staff").go("/confirmations")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_the_console_cannot_be_framed(place: Office, window: Open) -> None:
    """A page of another origin that puts the console under an invisible button gets nothing to put there."""
    opened = window("staff")
    opened.errors.expected.append("frame-ancestors|X-Frame-Options|Refused to (display|frame)|ERR_BLOCKED_BY_RESPONSE")
    page = opened.page
    page.route("**/decoy", lambda route: route.fulfill(body="<iframe></iframe>", content_type="text/html"))
    page.goto(f"{place.desk.url}/decoy")
    page.evaluate("(path) => { document.querySelector('iframe').src = path; }", "/console/patients")
    # A page of the console could be read from here, which has its origin; the browser's own error cannot.
    page.wait_for_function("document.querySelector('iframe').contentDocument === null")
