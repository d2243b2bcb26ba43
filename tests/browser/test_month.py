"""The month view, the small month in which a day is chosen, and the zoom: by pointer and by keyboard."""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import DESKTOP, Office, Window
from tests.browser.callers import DOWNTOWN, Agent

pytestmark = pytest.mark.heavy

_LOWEST = "() => Math.min(...[...document.querySelectorAll('.entry')].map((e) => e.getBoundingClientRect().height))"


@pytest.fixture(scope="module")
def agent(place: Office) -> Agent:
    return place.agent


@pytest.fixture(scope="module")
def desk(place: Office) -> Iterator[Window]:
    opened = open_with_axe(place, "staff")
    yield opened
    opened.context.close()
    opened.errors.check()


def go(desk: Window, path: str) -> Page:
    desk.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    page = desk.go(path)
    page.wait_for_load_state()
    return page


def cell(day: date) -> str:
    return f'[data-date="{day}"]'


def visits(page: Page, day: date) -> int:
    return int(page.locator(f"{cell(day)} .month-count").inner_text().split()[0])


def test_a_month_counts_visits_live_and_leads_to_its_days(desk: Window, agent: Agent) -> None:
    slot = agent.slots()[0]
    day = slot.start.date()
    page = go(desk, f"/calendar?view=month&date={day}&location={DOWNTOWN}")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    before = visits(page, day)
    require_accessible(page)
    agent.book(agent.patient("Monthly"), slot)
    expect(page.locator(f"{cell(day)} .month-count")).to_contain_text(f"{before + 1} visit")
    page.locator(cell(day)).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/calendar?date={day}*")
    expect(page.locator("[data-cal]")).to_be_visible()


def test_the_focus_stays_where_it_was_moved_while_the_small_month_was_fetched(desk: Window, agent: Agent) -> None:
    first = agent.slots()[0].start.date().replace(day=15)
    page = go(desk, f"/calendar?date={first}&location={DOWNTOWN}")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.keyboard.press("g")
    focused = page.locator("#mini-month [data-date]:focus")
    expect(focused).to_have_attribute("data-date", str(first))
    page.evaluate("document.querySelector('#mini-month table').dataset.old = ''")
    held: list[Route] = []
    page.route("**/calendar/month*", lambda route: held.append(route))
    agent.book(agent.patient("Mover"), agent.slots()[0])
    for _ in range(300):
        if held:
            break
        page.wait_for_timeout(100)
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("data-date", str(first + timedelta(days=1)))
    for route in held:
        route.continue_()
    page.unroute("**/calendar/month*")
    expect(page.locator("#mini-month [data-old]")).to_have_count(0)
    expect(focused).to_have_attribute("data-date", str(first + timedelta(days=1)))


def test_a_day_is_chosen_in_the_small_month_by_keys(desk: Window, agent: Agent) -> None:
    first = agent.slots()[0].start.date().replace(day=15)
    page = go(desk, f"/calendar?date={first}&location={DOWNTOWN}")
    page.keyboard.press("g")
    chosen = page.get_by_role("dialog", name="Choose a day")
    focused = chosen.locator("[data-date]:focus")
    expect(focused).to_have_attribute("data-date", str(first))
    require_accessible(page)
    for key, day in (
        ("ArrowRight", first + timedelta(days=1)),
        ("ArrowDown", first + timedelta(days=8)),
        ("ArrowLeft", first + timedelta(days=7)),
        ("ArrowUp", first),
        ("Home", first - timedelta(days=first.weekday())),
        ("End", first - timedelta(days=first.weekday()) + timedelta(days=6)),
    ):
        page.keyboard.press(key)
        expect(focused).to_have_attribute("data-date", str(day))
    assert chosen.locator('[data-date][tabindex="0"]').count() == 1
    shown = first - timedelta(days=first.weekday()) + timedelta(days=6)
    next_month = (shown.replace(day=1) + timedelta(days=32)).replace(day=shown.day)
    page.keyboard.press("PageDown")
    expect(focused).to_have_attribute("data-date", str(next_month))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/calendar?date={next_month}*")
    page.keyboard.press("g")
    expect(focused).to_have_attribute("data-date", str(next_month))
    page.keyboard.press("Escape")
    expect(chosen).to_be_hidden()
    page.keyboard.press("o")
    page.wait_for_url("**view=month*")
    expect(page.locator("h1")).to_contain_text(next_month.strftime("%B"))


def test_rows_grow_and_shrink_by_keys_and_buttons_and_stay_so(desk: Window, agent: Agent) -> None:
    slot = agent.slots()[0]
    agent.book(agent.patient("Zoomed"), slot)
    page = go(desk, f"/calendar?date={slot.day}&location={DOWNTOWN}")
    before = page.evaluate(_LOWEST)
    for key, factor in (("+", 1.25), ("-", 1), ("-", 0.8)):
        with page.expect_response("**/calendar/preferences"):
            page.keyboard.press(key)
        assert page.evaluate(_LOWEST) == pytest.approx(before * factor, abs=1)
    page.reload()
    expect(page.locator(".zoom-80")).to_be_visible()
    assert page.evaluate(_LOWEST) == pytest.approx(before * 0.8, abs=1)
    page.get_by_role("button", name="View and filter").click()
    with page.expect_response("**/calendar/preferences"):
        page.get_by_role("button", name="Larger").click()
    expect(page.get_by_text("100%", exact=True)).to_be_visible()
    assert page.evaluate(_LOWEST) == pytest.approx(before, abs=1)
    require_accessible(page)
