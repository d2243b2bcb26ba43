"""A day of twelve providers with fifty visits each: readable, on one screen, and small on the wire."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser import full_day
from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import Office, Window, command, sign_in

pytestmark = pytest.mark.heavy

_MAX_BYTES_ON_THE_WIRE = 120_000  # bytes
_WIDTH_NEEDED = "(scroll) => [scroll.scrollWidth, scroll.clientWidth]"
_OVERLAPS = """
() => [...document.querySelectorAll(".cal-body")].flatMap((body) => {
  const boxes = [...body.querySelectorAll(".entry")].map((entry) => entry.getBoundingClientRect());
  return boxes.filter((one, at) => boxes.some((other, place) => place > at &&
    one.top < other.bottom - 1 && other.top < one.bottom - 1 &&
    one.left < other.right - 1 && other.left < one.right - 1));
}).length
"""
_LOWEST = "() => Math.min(...[...document.querySelectorAll('.entry')].map((e) => e.getBoundingClientRect().height))"


def import_practice(place: Office, providers: int) -> None:
    file = place.folder / "full.yaml"
    file.write_text(full_day.as_text(providers))
    command(place.desk, "practice", "import", str(file))


@pytest.fixture(scope="module")
def desk(place: Office) -> Iterator[Window]:
    """Somebody at the desk of the full practice."""
    import_practice(place, full_day.PROVIDERS)
    full_day.fill(place.folder)
    opened = open_with_axe(place, None)
    sign_in(opened.page, place.new_link("staff", "Fay at the desk", full_day.SLUG))
    yield opened
    opened.context.close()
    opened.errors.check()


def show(desk: Window, width: int, height: int) -> Page:
    desk.page.set_viewport_size({"width": width, "height": height})
    page = desk.go(f"/calendar?date={full_day.day()}")
    page.wait_for_load_state()
    return page


def test_a_full_day_fits_the_screen_and_every_visit_stands_alone(place: Office, desk: Window) -> None:
    page = show(desk, 1440, 900)
    expect(page.locator(".entry")).to_have_count(full_day.PROVIDERS * full_day.VISITS)
    scroll = page.get_by_role("region", name="Appointments")
    needed, given = scroll.evaluate(_WIDTH_NEEDED)
    assert needed <= given, "twelve providers need no sideways scrolling"
    assert page.evaluate(_OVERLAPS) == 0
    assert page.evaluate(_LOWEST) >= 19
    scroll.evaluate("(scroll) => scroll.scrollTop = 333")
    corner = scroll.evaluate(
        """(scroll) => {
          const {left, top} = scroll.getBoundingClientRect();
          const shown = [[5, 40], [100, 40]].map(([x, y]) => document.elementFromPoint(left + x, top + y));
          return shown.map((element) => element.closest(".cal-corner, .cal-provider")?.className);
        }"""
    )
    assert corner == ["cal-corner", "cal-provider"], "hours and visits pass below the headers"
    require_accessible(page)
    import_practice(place, 20)
    needed, given = show(desk, 2560, 1440).locator(".cal-scroll").evaluate(_WIDTH_NEEDED)
    assert needed <= given, "neither do twenty on a wide screen"


def test_a_full_day_is_small_on_the_wire(desk: Window) -> None:
    jar = {each["name"]: each["value"] for each in desk.context.cookies()}
    answer = httpx.get(f"{desk.url}/console/calendar?date={full_day.day()}", cookies=jar, timeout=30)
    assert answer.text.count("data-entry=") == full_day.PROVIDERS * full_day.VISITS
    assert int(answer.headers["Content-Length"]) < _MAX_BYTES_ON_THE_WIRE


def test_a_card_tells_everything_to_pointer_and_keyboard(desk: Window) -> None:
    page = show(desk, 1440, 900)
    card = page.get_by_role("tooltip")
    visit = page.locator("[data-entry]").nth(160)
    visit.hover()
    expect(card).to_be_visible()
    name = visit.locator(".entry-name").inner_text().replace("\n", " ")
    for part in (name, "–", "Dr. ", "Born", "+49 30 555", "Booked by Demo data"):
        expect(card).to_contain_text(part)
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.mouse.move(2, 2)
    page.locator('[data-entry][tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    expect(card).to_be_visible()
    focused = page.locator("[data-entry]:focus")
    expect(focused).to_have_attribute("aria-describedby", "cal-card")
    assert page.locator('[data-entry][tabindex="0"]').count() == 1, "the grid is one tab stop"


def test_row_height_and_colours_change_at_once_and_are_kept(desk: Window) -> None:
    page = show(desk, 1440, 900)
    before = page.evaluate(_LOWEST)
    page.get_by_role("button", name="View and filter").click()
    with page.expect_response("**/calendar/preferences"):
        page.get_by_label("Compact").check()
    with page.expect_response("**/calendar/preferences"):
        page.get_by_label("By visit type").check()
    assert page.evaluate(_LOWEST) < before
    page = show(desk, 1440, 900)
    assert page.evaluate(_LOWEST) < before
    expect(page.locator(".by-visit")).to_be_visible()
    require_accessible(page)
