"""The console in German, whose words are longer, at the sizes of a desk and of a phone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Office, Window
from tests.browser.places import addresses

pytestmark = pytest.mark.heavy

PAGES = ("calendar of a day", "calendar of a week", "calendar of a month", "arrivals", "account", "practice: provider")
_NEEDED_AND_GIVEN = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
_CUT_OFF = """
(links) => links
  .filter((link) => link.scrollWidth > link.clientWidth || link.getBoundingClientRect().right > innerWidth)
  .map((link) => link.textContent)
"""


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=["desk", "phone"])
def test_german_fits(place: Office, window: Callable[..., Window], size: tuple[int, int]) -> None:
    paths = addresses(place.agent)
    opened = window("admin", size=size, locale="de-DE")
    for name in PAGES:
        page = opened.go(paths[name])
        expect(page.locator("html")).to_have_attribute("lang", "de")
        expect(page.locator("main h1").first).to_be_visible()
        needed, given = page.evaluate(_NEEDED_AND_GIVEN)
        assert needed <= given, name
    if size[0] < 800:
        page.get_by_role("button", name="Menü").click()
    links = page.get_by_role("navigation", name="Konsole").get_by_role("link")
    expect(links.first).to_be_visible()
    assert links.evaluate_all(_CUT_OFF) == []
