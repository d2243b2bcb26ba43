"""What must hold of a page however it was reached: axe-core finds nothing, in both themes, on a desk and on a phone."""

from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.browsing import DESKTOP, PHONE, Office, Window

_OPTIONS: dict[str, object] = {"resultTypes": ["violations"]}
# Nothing but colours differs between the themes.
_COLOURS = {**_OPTIONS, "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def open_with_axe(place: Office, role: str | None) -> Window:
    window = place.open(role, theme="light")
    window.context.add_init_script(Axe().axe_script)
    return window


def require_accessible(page: Page) -> None:
    page.wait_for_load_state()
    for width, height in (DESKTOP, PHONE):
        page.set_viewport_size({"width": width, "height": height})
        needed, given = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert needed <= given, f"the page is {needed} wide and has {given}"
        _require(page, _OPTIONS)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        _require(page, _COLOURS)
        page.evaluate("document.documentElement.dataset.theme = 'light'")


def _require(page: Page, options: dict[str, object]) -> None:
    found = AxeResults(page.evaluate("(options) => axe.run(document, options)", options))
    assert found.violations_count == 0, found.generate_report()
