"""Arriving: the link that the server prints. It works for minutes only, so this comes first in a run."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Office, Window, sign_in

pytestmark = pytest.mark.heavy


def test_the_printed_link_signs_in_once(place: Office, window: Callable[..., Window]) -> None:
    link = place.printed_link()
    page = window(None).page
    sign_in(page, link)
    expect(page.get_by_role("navigation", name="Console")).to_be_visible()
    late = window(None)
    late.errors.expected.append("status of 4..")
    late.page.goto(link)
    late.page.get_by_role("button", name="Sign in").click()
    expect(late.page.get_by_role("alert")).to_be_visible()
