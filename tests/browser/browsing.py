"""A real browser in front of a real service. What goes wrong in a page is noted, and fails the test that opened it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from tests.browser import playwright_firefox
from tests.browser.callers import Agent
from tests.clients.running_desk import COMMAND, Desk, running_desk

DEADLINE = 30_000  # milliseconds: a loaded machine takes its time
PAINTED: dict[str, float] = {}  # milliseconds to the first paint of a page
MEASURED: dict[str, float] = {}  # other milliseconds worth telling at the end of the run
FIREFOX = os.environ.get("TEST_BROWSER") == "firefox"
DESKTOP, PHONE = (1280, 900), (360, 740)
_MAX_TABS = 120
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A virtual device that holds passkeys and agrees to their use.
AUTHENTICATOR: dict[str, Any] = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
# Before any script of the page: what moved without anybody's doing, and when the first thing was seen.
_OBSERVING = """
window.observed = {shift: 0, paint: null, moved: []};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (entry.hadRecentInput) continue;
    window.observed.shift += entry.value;
    for (const source of entry.sources) window.observed.moved.push(source.node?.className ?? String(source.node));
  }
}).observe({type: "layout-shift", buffered: true});
new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) window.observed.paint = entry.startTime;
}).observe({type: "paint", buffered: true});
"""
# What is to happen after more than five seconds never does: no toast leaves by itself.
_LASTING = """
const usual = window.setTimeout;
window.setTimeout = (work, ms, ...given) => (ms > 5000 ? 0 : usual(work, ms, ...given));
"""
# Null if the control has the focus, else what has it.
_FOCUSED = """(control) => {
  if (!control.isConnected) throw new Error("it is gone");
  const held = document.activeElement;
  if (held === control) return null;
  const name = held.getAttribute("aria-label") ?? held.labels?.[0]?.innerText ?? held.innerText;
  return `${held.localName} ${name.slice(0, 60)}`;
}"""


@dataclass
class PageErrors:
    """What a page must not do: report errors, break its own policy, open dialogs, ask anybody else for anything."""

    origin: str
    noted: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)  # patterns of what a test provokes on purpose

    def watch(self, page: Page) -> None:
        page.on("console", self._record_message)
        page.on("pageerror", lambda error: self._note(f"error in a script: {error}"))
        page.on("request", self._asked)

        def opened(dialog: Any) -> None:
            self._note(f"a dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", opened)

    def check(self) -> None:
        unexpected = [each for each in self.noted if not any(re.search(known, each) for known in self.expected)]
        assert not unexpected, "\n".join(unexpected)

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._note(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self._note(f"a request to elsewhere: {request.url}")

    def _note(self, text: str) -> None:
        self.noted.append(text)


@dataclass
class Window:
    """One person's browser: its own cookies, its own errors."""

    context: BrowserContext
    page: Page
    errors: PageErrors
    url: str

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}/console{path}")
        return self.page


@dataclass
class Office:
    """The browser, the service behind it, and people of the demo practice who are signed in."""

    browser: Browser
    desk: Desk
    folder: Path
    agent: Agent
    signed_in: dict[str, Any]  # cookies by role, or by practice
    webdriver: playwright_firefox.Send | None

    def printed_link(self) -> str:
        """The link that the server prints when it starts."""
        found = re.search(r"http://\S+/console/\S+", (self.folder / "server.log").read_text())
        assert found is not None, "the server prints no link to sign in with"
        return found[0]

    def new_link(self, role: str, name: str, practice: str = "demo") -> str:
        return staff_link(self.desk, role, name, practice)

    def open(
        self,
        role: str | None = "admin",
        *,
        theme: str | None = None,
        size: tuple[int, int] = DESKTOP,
        scripts: bool = True,
        locale: str | None = None,
    ) -> Window:
        context = self.browser.new_context(
            base_url=self.desk.url,
            viewport={"width": size[0], "height": size[1]},
            storage_state=None if role is None else self.signed_in[role],
            java_script_enabled=scripts,
            locale=locale,
            reduced_motion=None if FIREFOX else "reduce",
            accept_downloads=True,
        )
        context.set_default_timeout(DEADLINE)
        context.set_default_navigation_timeout(DEADLINE)
        if theme is not None:
            context.add_cookies([{"name": "frontdesk_theme", "value": theme, "url": self.desk.url}])
        if scripts:
            context.add_init_script(_OBSERVING)
        elif FIREFOX:  # the option above does nothing there
            context.route("**/*.js*", lambda route: route.abort())
        errors = PageErrors(self.desk.url)
        context.on("page", errors.watch)
        return Window(context, context.new_page(), errors, self.desk.url)


def command(desk: Desk, *arguments: str) -> dict[str, str]:
    """What the command line says, as an operator of the machine uses it."""
    done = subprocess.run([COMMAND, *arguments, "--json"], env=desk.environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def staff_link(desk: Desk, role: str, name: str, practice: str = "demo") -> str:
    return command(desk, "staff", "add", "--practice", practice, "--name", name, "--role", role)["link"]


def sign_in(page: Page, link: str) -> None:
    """Opens a one-time link and goes through with it."""
    page.goto(link)
    page.get_by_role("button", name=re.compile("sign in", re.IGNORECASE)).click()
    page.wait_for_url("**/console/calendar*")


def arrive(shown: Locator) -> None:
    """Waits for the page that shows this, and for its scripts: until they run, its menus and shortcuts do nothing."""
    expect(shown).to_be_visible()
    shown.page.wait_for_load_state()


def keep_toasts(opened: Window) -> None:
    """On pages that are opened from now on, toasts stay until the test has seen them."""
    opened.page.add_init_script(_LASTING)


def type_in(field: Locator, text: str) -> None:
    """Replaces what the field holds. Firefox tells a page of no change that Playwright makes without keys."""
    if FIREFOX:
        field.press("Control+a")
        field.press_sequentially(text)
    else:
        field.fill(text)


def tab_to(page: Page, control: Locator) -> None:
    """Goes there as somebody without a mouse does, once the page's scripts run: its keys may need them."""
    arrive(control)
    held, met = control.element_handle(), []
    for _ in range(_MAX_TABS):
        try:
            here = held.evaluate(_FOCUSED)
        except Error:  # the page has changed
            held = control.element_handle()
            continue
        if here is None:
            return
        met.append(here)
        page.keyboard.press("Tab")
    raise AssertionError(f"{control} cannot be reached with the Tab key, only {list(dict.fromkeys(met))}")


def press(page: Page, control: Locator, key: str = "Enter") -> None:
    tab_to(page, control)
    page.keyboard.press(key)


def write(page: Page, texts: Mapping[str, str]) -> None:
    """Types into fields by their labels, one after the other."""
    for label, text in texts.items():
        tab_to(page, page.get_by_label(re.compile(f"^{label}( optional)?$")))
        page.keyboard.press("Control+a")
        page.keyboard.type(text)


def choose(page: Page, choice: Locator, text: str) -> None:
    """Walks down a list to the option."""
    tab_to(page, choice)
    options = choice.evaluate("(choice) => [...choice.options].map((option) => option.text)")
    for _ in options:
        if choice.evaluate("(choice) => choice.selectedOptions[0].text") == text:
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"{text} cannot be chosen with the arrow keys among {options}")


def launch(playwright: Playwright, folder: Path) -> Browser:
    if FIREFOX:
        return playwright.firefox.launch(
            channel="moz-firefox",
            executable_path=playwright_firefox.starter(folder),
            args=playwright_firefox.ARGUMENTS,
            firefox_user_prefs=playwright_firefox.PREFERENCES,
        )
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    assert executable is not None, "these tests need chromium on the PATH (on Debian: apt-get install chromium)"
    return playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)


@contextmanager
def office(folder: Path) -> Iterator[Office]:
    with (
        ExitStack() as stack,
        running_desk(folder, webhook_allow_private="true") as desk,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright, folder)
        agent = Agent(desk)
        webdriver = stack.enter_context(playwright_firefox.marionette(folder)) if FIREFOX else None
        opened = Office(browser, desk, folder, agent, {"admin": None, "staff": None}, webdriver)
        for role, name in (("admin", "Olivia Operator"), ("staff", "Ana at the desk")):
            window = opened.open(role)
            sign_in(window.page, opened.new_link(role, name))
            opened.signed_in[role] = window.context.storage_state()
            window.errors.check()
            window.context.close()
        yield opened
        browser.close()
        agent.api.close()
