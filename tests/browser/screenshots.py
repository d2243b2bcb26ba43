"""Pictures of every page in both themes, on a desk and on a phone; those of the README go to docs/screenshots.

make screenshots            # the others are written below build/screenshots
"""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.behind_forms import BEHIND_FORMS
from tests.browser.browsing import PHONE, Office, office
from tests.browser.places import PLACES, addresses
from tests.browser.staging import stage

EVERYTHING = Path("build/screenshots")
README = Path("docs/screenshots")
WIDE = (1440, 900)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, office(Path(folder)) as place:
        day = stage(place)
        _for_the_readme(place, day)
        _every_page(place)


def _every_page(place: Office) -> None:
    paths = addresses(place.agent)
    for theme in ("light", "dark"):
        for kind, size in (("desk", WIDE), ("phone", PHONE)):
            window = place.open("admin", theme=theme, size=size)
            for name in PLACES:
                page = window.go(paths[name])
                _take(page, _path(name, theme, kind), whole=True)
            window.context.close()
            for name, (role, reach) in BEHIND_FORMS.items():
                window = place.open(role, theme=theme, size=size)
                reach(window, place)
                _take(window.page, _path(name, theme, kind), whole=True)
                window.context.close()


def _path(name: str, theme: str, kind: str) -> Path:
    return EVERYTHING / f"{re.sub('[^a-z]+', '-', name)}-{theme}-{kind}.png"


def _for_the_readme(place: Office, day: str) -> None:
    consent = place.agent.consent()
    shown: dict[str, tuple[str, str, Callable[[Page], None]]] = {
        "calendar-light": (f"/calendar?date={day}&location=1", "light", _open_an_appointment),
        "calendar-dark": (f"/calendar?date={day}&location=1", "dark", _wait_until_live),
        "agents-view": ("/agent", "light", _book_as_an_agent),
        "usage": ("/usage", "dark", lambda page: expect(page.get_by_role("img").first).to_be_visible()),
        "connect": (consent, "light", lambda page: page.get_by_role("checkbox", name="Read patients' data").check()),
        "connected-assistants": (consent, "light", _connect_an_assistant),
    }
    for name, (path, theme, prepare) in shown.items():
        window = place.open("admin", theme=theme, size=WIDE)
        page = window.go(path)
        prepare(page)
        _take(page, README / f"{name}.png", whole=False)
        window.context.close()


def _wait_until_live(page: Page) -> None:
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def _open_an_appointment(page: Page) -> None:
    _wait_until_live(page)
    page.get_by_role("link", name="Voice agent").first.click()
    expect(page.get_by_role("dialog", name="Appointment").get_by_role("heading").first).to_be_visible()


def _book_as_an_agent(page: Page) -> None:
    page.get_by_label("Client").select_option(label="Voice agent (agent)")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Run up to the challenge").click()
    page.get_by_role("button", name="Confirm: send it with the token").wait_for()
    page.locator("#agent-ran .agent-step").evaluate("(step) => step.scrollIntoView()")


def _connect_an_assistant(page: Page) -> None:
    page.route("https://claude.ai/**", lambda route: route.fulfill(body="connected"))  # where the answer goes
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url("https://claude.ai/**")
    page.goto("/console/assistants")


def _take(page: Page, path: Path, *, whole: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    page.wait_for_load_state("load")
    page.screenshot(path=path, full_page=whole, animations="disabled")
    print(path)


if __name__ == "__main__":
    main()
