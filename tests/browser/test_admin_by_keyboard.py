"""Running a practice without a mouse, where the other files use one: reports, feeds, webhooks, closures, assistants."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Office, Window, choose, command, keep_toasts, press, sign_in, write
from tests.browser.test_admin import row
from tests.browser.test_arrivals import expect_today

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]


def test_a_report_is_narrowed_and_downloaded(place: Office, window: Open) -> None:
    expect_today(place, place.agent, "Reported")  # the demo's own appointments of a week may all be of other providers
    page = window("admin").go("/reports")
    press(page, page.get_by_role("navigation", name="Period").get_by_role("link", name="7 days"))
    expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    choose(page, page.get_by_label("Provider", exact=True), "Dr. Robert Chen")
    press(page, page.get_by_role("button", name="Show", exact=True))
    expect(row(page, "Dr. Robert Chen")).to_be_visible()
    expect(row(page, "Dr. Aoife Murphy")).to_have_count(0)
    outcomes = page.get_by_role("figure", name="Appointments by outcome")
    press(page, outcomes.get_by_text("Show as a table"))
    expect(outcomes.get_by_role("table")).to_be_visible()
    with page.expect_download() as download:
        press(page, outcomes.get_by_role("link", name="Download as CSV"))
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == '"From","Completed","No-show","Cancelled","Open"'
    assert len(lines) == outcomes.get_by_role("row").count()


def test_a_calendar_feed_is_added_read_and_revoked(window: Open, forms_admin: str) -> None:
    opened = window(forms_admin)
    keep_toasts(opened)
    page = opened.go("/practice/feeds")
    choose(page, page.get_by_label("Provider"), "Dr. Ines Faria")
    press(page, page.get_by_role("button", name="Add the feed"))
    address = page.locator("#feed-address")
    press(page, page.get_by_role("button", name="Copy the address"))
    expect(page.locator(".toast")).to_be_visible()
    feed = address.inner_text()
    assert httpx.get(feed, timeout=30).text.startswith("BEGIN:VCALENDAR")
    press(page, page.get_by_role("button", name="Revoke the feed of Dr. Ines Faria"))
    expect(page.get_by_text("The calendar feed is revoked")).to_be_visible()
    assert httpx.get(feed, timeout=30).status_code == 404


@contextmanager
def receiver() -> Iterator[tuple[str, list[str]]]:
    """The address of somebody else's server, and the paths that it was asked for."""
    asked: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_a_webhook_is_added_tested_paused_and_removed(place: Office, window: Open, forms_admin: str) -> None:
    public = "https://1.1.1.1/hook"  # the practice has no appointments, so nothing is ever sent there
    page = window(forms_admin).go("/practice/webhooks")
    write(page, {"Address": public})
    press(page, page.get_by_role("checkbox", name="appointment.booked"), "Space")
    page.keyboard.press("Enter")
    expect(page.locator("#webhook-secret")).to_contain_text("whsec_")
    press(page, page.get_by_role("link", name="I have copied it"))
    added = page.get_by_role("region", name=public)
    expect(added).to_contain_text("appointment.booked")
    press(page, added.get_by_role("button", name="Pause"))
    expect(added.locator(".badge")).to_have_text("Paused")
    press(page, added.get_by_role("button", name="Resume"))
    expect(added.locator(".badge")).to_have_text("Working")

    with receiver() as (server, asked):
        private = f"{server}/hook"
        command(place.desk, "webhook", "add", "--practice", "forms", "--url", private)
        page.reload()
        other = page.get_by_role("region", name=private)
        press(page, other.get_by_role("button", name="Send a test"))
        expect(other.get_by_role("status")).to_contain_text("The test message was received: status 200")
        assert asked == ["/hook"]

    for endpoint in (added, other):
        remove = endpoint.get_by_role("button", name="Remove")
        press(page, remove)
        dialog = page.get_by_role("dialog", name="Remove this endpoint?")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(remove).to_be_focused()
        page.keyboard.press("Enter")
        press(page, dialog.get_by_role("button", name="Remove"))
        expect(endpoint).to_have_count(0)


def test_days_are_closed_and_opened_again(window: Open, forms_admin: str) -> None:
    page = window(forms_admin).go("/practice/closures")
    apply, changed = page.get_by_role("button", name="Apply"), page.get_by_text("The practice has been changed.")
    ahead = page.get_by_role("region", name="Ahead").get_by_role("listitem")
    write(page, {"First day": "1 July 2031", "Last day": "2 July 2031", "Reason": "Moving house"})
    page.keyboard.press("Enter")
    press(page, apply)
    expect(changed).to_be_visible()
    expect(ahead).to_contain_text("Moving house")

    press(page, page.get_by_role("link", name="Add public holidays"))
    choose(page, page.get_by_label("Country", exact=True), "Canada")
    year = page.get_by_label("Year", exact=True)
    choose(page, year, year.locator("option").last.inner_text())
    press(page, page.get_by_role("button", name="Show holidays"))
    press(page, page.get_by_role("checkbox", name="Christmas Day"), "Space")
    page.keyboard.press("Enter")
    press(page, apply)
    expect(changed).to_be_visible()
    expect(ahead).to_have_count(2)
    expect(ahead.filter(has_text="Christmas Day")).to_be_visible()

    for left in (1, 0):
        press(page, ahead.first.get_by_role("button", name="Open again"))
        press(page, apply)
        expect(changed).to_be_visible()
        expect(ahead).to_have_count(left)


def test_an_assistant_is_connected_and_disconnected(place: Office, window: Open) -> None:
    opened = window(None)
    sign_in(opened.page, place.new_link("admin", "Lia Ramos"))  # just now, as access to patients' data needs
    with receiver() as (server, _):
        opened.errors.expected.append(server)
        page = opened.go(place.agent.consent(f"{server}/callback"))
        connect = page.get_by_role("button", name="Connect", exact=True)
        expect(connect).to_be_enabled()
        press(page, page.get_by_role("checkbox", name="Read patients' data"), "Space")
        press(page, connect)
        page.wait_for_url(re.compile(f"^{server}/callback.*[?&]code="))
    page = opened.go("/assistants")
    connected = row(page, "127.0.0.1")
    press(page, connected.get_by_role("button", name="Disconnect"))
    expect(connected).to_contain_text("Disconnected")
