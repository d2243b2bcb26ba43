"""The desk's daily work in Firefox: sign in, the calendar, a booking by keyboard, a cancellation that is taken back."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.browser.browsing import Office
from tests.browser.callers import CHEN, DOWNTOWN
from tests.browser.firefox import Firefox, firefox, installed

pytestmark = pytest.mark.heavy

SEARCH, VISIT = "document.querySelector('#chosen-search')", "document.querySelector('#chosen-visit')"


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Firefox]:
    if installed() is None:
        needed = "needs Firefox on the PATH (on Debian: apt-get install firefox-esr)"
        pytest.fail(needed) if os.environ.get("CI") else pytest.skip(needed)
    with firefox(tmp_path) as opened:
        yield opened


def entry(name: str) -> str:
    return f"[...document.querySelectorAll('[data-entry]')].find((each) => each.textContent.includes({name!r}))"


def test_a_day_at_the_desk_in_firefox(place: Office, window: Firefox) -> None:
    agent, url = place.agent, f"{place.desk.url}/console"
    starts = {slot.start: slot for slot in agent.slots(limit=50)}
    slot = next(each for start, each in starts.items() if start + timedelta(minutes=30) in starts)
    agent.book(agent.patient("Vixen"), slot)
    agent.patient("Reynard")

    window.go(place.new_link("staff", "Fiona in Firefox"))
    window.click("main button", "ign in")
    window.wait("location.pathname === '/console/calendar' && document.readyState === 'complete'")

    calendar = f"{url}/calendar?date={slot.day}&location={DOWNTOWN}&provider={CHEN}"
    colours = []
    for theme in ("dark", "light"):
        window.set_cookie(place.desk.url, "frontdesk_theme", theme)
        window.go(calendar)
        window.wait(entry("Vixen"))
        assert window.run("document.documentElement.scrollWidth <= innerWidth")
        colours.append(window.run("getComputedStyle(document.body).backgroundColor"))
    assert len(set(colours)) == 2, colours

    window.run(f"{entry('Vixen')}.focus()")
    window.press("b")
    window.wait("document.activeElement.name === 'search'")
    window.press(*"reyna")
    window.wait(f"{SEARCH}.value === 'reyna' && document.querySelector('[data-hits] [name=patient]:checked')")
    window.focus("#chosen-visit")
    window.press("I")
    window.wait(f"{VISIT}.selectedOptions[0].text.startsWith('Introductory consultation')")
    window.focus("[data-book]")
    window.press("Enter")
    window.wait(f"{entry('Reynard')} && !document.querySelector('[data-chosen]').open")

    window.click("[data-entry]", "Reynard")
    window.click("[data-panel] summary", "Cancel appointment")
    window.click("[data-panel] button", "Cancel it")
    window.wait(f"!({entry('Reynard')})")
    window.click(".toast button", "Undo")
    window.wait(entry("Reynard"))
    assert window.errors == []
