"""Signing in with a passkey, at an address where browsers have them, with the browser's virtual authenticator."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import AUTHENTICATOR, Office, Window, arrive, press, tab_to, write
from tests.clients.running_desk import running_desk

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def named(place: Office, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office at localhost: there are no passkeys at an IP address."""
    folder = tmp_path_factory.mktemp("named")
    with running_desk(folder, host_name="localhost") as desk:
        yield replace(place, desk=desk, folder=folder)


@pytest.fixture
def window(named: Office) -> Iterator[Window]:
    opened = open_with_axe(named, None)
    yield opened
    opened.context.close()
    opened.errors.check()


@pytest.fixture
def verify_users(place: Office, window: Window) -> Iterator[Callable[[bool], Any]]:
    """A virtual authenticator in the window; whether it knows its user can be changed."""
    if (send := place.webdriver) is not None:
        held = {"authenticatorId": send("WebAuthn:AddVirtualAuthenticator", AUTHENTICATOR)["value"]}
        yield lambda verified: send("WebAuthn:SetUserVerified", {**held, "isUserVerified": verified})
        send("WebAuthn:RemoveVirtualAuthenticator", held)
    else:
        session = window.context.new_cdp_session(window.page)
        session.send("WebAuthn.enable")
        held = session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        yield lambda verified: session.send("WebAuthn.setUserVerified", {**held, "isUserVerified": verified})


def test_a_passkey_is_added_after_the_first_link_and_used_from_then_on(
    named: Office, window: Window, verify_users: Callable[[bool], Any]
) -> None:
    page = window.page
    page.goto(named.new_link("staff", "Ana Costa"))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Add a passkey")).to_be_visible()
    require_accessible(page)
    page.get_by_label("Name of the passkey").fill("Desk tablet")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("The passkey has been added.")).to_be_visible()
    expect(page.get_by_text("Desk tablet", exact=True)).to_be_visible()
    require_accessible(page)
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    require_accessible(page)
    tab_to(page, page.get_by_role("button", name="Sign in with a passkey"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/calendar*")
    window.go("/account")
    expect(page.get_by_text("with a passkey. Last used")).to_be_visible()

    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("This device already has a passkey of yours.")).to_be_visible()

    window.go("/account")
    page.get_by_role("button", name="Sign out", exact=True).click()
    verify_users(False)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("No passkey was used.")).to_be_visible()


def test_a_passkey_is_added_and_removed_by_keyboard(
    named: Office, window: Window, verify_users: Callable[[bool], Any]
) -> None:
    page = window.page
    page.goto(named.new_link("staff", "Typing Tina"))
    expect(page.get_by_role("button", name="Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    arrive(page.get_by_role("heading", name="Add a passkey"))
    verify_users(False)
    write(page, {"Name of the passkey": "Typed key"})
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Add a passkey")).to_be_focused()
    verify_users(True)
    page.keyboard.press("Enter")
    expect(page.get_by_text("The passkey has been added.")).to_be_visible()
    window.go("/account")
    key = page.get_by_role("listitem").filter(has_text="Typed key")
    press(page, key.get_by_role("button", name="Remove"))
    expect(key).to_have_count(0)
