"""Pages without an address of their own: what a form answers, what opens beside a page, what is said to a stranger."""

from collections.abc import Callable, Mapping

from playwright.sync_api import expect

from tests.browser.browsing import Office, Window, arrive
from tests.browser.callers import CHEN


def _sign_in(window: Window, _place: Office) -> None:
    expect(window.go("/sign-in").get_by_role("heading", name="Sign in")).to_be_visible()


def _nothing_there(window: Window, _place: Office) -> None:
    expect(window.go("/nowhere").get_by_role("heading", level=1)).to_be_visible()


def _patients_found(window: Window, _place: Office) -> None:
    page = window.go("/patients")
    page.get_by_role("searchbox").fill("Lovelace")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table")).to_be_visible()


def _patient_refused(window: Window, _place: Office) -> None:
    page = window.go("/patients/new")
    page.get_by_role("button", name="Add patient").click()
    expect(page.locator("[aria-invalid=true]").first).to_be_visible()


def _appointment_beside_the_calendar(window: Window, place: Office) -> None:
    slot = place.agent.slots()[0]
    place.agent.book(place.agent.patient("Panelled"), slot)
    page = window.go(f"/calendar?date={slot.day}&location=1")
    page.get_by_role("region", name="Appointments").get_by_role("link", name="Panelled").first.click()
    expect(page.get_by_role("dialog", name="Appointment").get_by_role("heading").first).to_be_visible()


def _provider_away(window: Window, place: Office) -> None:
    slot = place.agent.slots(limit=1, weeks_ahead=4)[0]  # a day that no other test uses
    place.agent.book(place.agent.patient("Reassigned"), slot)
    page = window.go(f"/away?provider={CHEN}&date={slot.day}")
    page.get_by_role("button", name="Block the time and propose new times").click()
    expect(page.get_by_role("button", name="Apply")).to_be_visible()


def _whom_to_call(window: Window, place: Office) -> None:
    _provider_away(window, place)
    page = window.page
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("[data-state=moved]").first).to_be_visible()
    page.get_by_role("link", name="Whom to call").click()
    expect(page.get_by_role("button", name="Called").first).to_be_visible()


def _block_with_errors(window: Window, _place: Office) -> None:
    page = window.go("/blocks")
    page.get_by_role("button", name="Block time").click()
    expect(page.locator(".error").first).to_be_visible()


def _client_secret(window: Window, _place: Office) -> None:
    page = window.go("/clients/new")
    page.get_by_role("textbox", name="Name").fill("Shown once")
    page.get_by_role("checkbox", name="slots:read").check()
    page.get_by_role("button", name="Add the client").click()
    expect(page.locator("#client-secret")).to_be_visible()


def _client_refused(window: Window, _place: Office) -> None:
    page = window.go("/clients/new")
    page.get_by_role("button", name="Add the client").click()
    expect(page.get_by_role("alert")).to_be_visible()


def _new_secret_asked_for(window: Window, place: Office) -> None:
    page = window.go(f"/clients/{place.agent.client_id}")
    page.get_by_role("button", name="Make a new secret").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _link_for_a_staff_member(window: Window, _place: Office) -> None:
    page = window.go("/staff")
    page.get_by_role("textbox", name="Name").fill("Linked Person")
    page.get_by_role("button", name="Add and make a sign-in link").click()
    expect(page.locator("#link")).to_be_visible()


def _practice_file_previewed(window: Window, _place: Office) -> None:
    page = window.go("/practice")
    with page.expect_download() as download:
        page.get_by_role("link", name="YAML").click()
    page.get_by_label("File", exact=True).set_input_files(download.value.path())
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("heading", name="What the file changes")).to_be_visible()


def _practice_file_refused(window: Window, _place: Office) -> None:
    page = window.go("/practice")
    page.get_by_text("Or paste its text").click()
    page.get_by_role("textbox", name="Text").fill("practice: {slug: demo}\nlocations: nowhere\n")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("alert")).to_be_visible()


def _practice_change_previewed(window: Window, _place: Office) -> None:
    page = window.go("/practice/rules")
    page.get_by_label("Minimum notice in minutes").fill("45")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_text("This is what changes.")).to_be_visible()


def _practice_change_refused(window: Window, _place: Office) -> None:
    page = window.go("/practice/providers/edit")
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("alert")).to_be_visible()


def _trail_verified(window: Window, _place: Office) -> None:
    page = window.go("/audit")
    with page.expect_navigation():  # the page may show the result of an earlier test already
        page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("Intact.", exact=False)).to_be_visible()
    expect(window.go("/audit?operation=create_patient").get_by_text("Intact.", exact=False)).to_be_visible()


def _scheduling_system_checked(window: Window, _place: Office) -> None:
    page = window.go("/practice/system")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("works").first).to_be_visible()


def _challenge_in_the_agents_view(window: Window, _place: Office) -> None:
    page = window.go("/agent")
    page.get_by_role("button", name="Start").click()
    arrive(page.get_by_role("button", name="Run up to the challenge"))
    page.get_by_role("button", name="Run up to the challenge").click()
    expect(page.get_by_role("button", name="Confirm: send it with the token")).to_be_visible()


def _menu_of_a_phone(window: Window, _place: Office) -> None:
    page = window.page
    page.set_viewport_size({"width": 360, "height": 740})
    window.go("/patients")
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("navigation", name="Console")).to_be_visible()


Reach = Callable[[Window, Office], None]
BEHIND_FORMS: Mapping[str, tuple[str | None, Reach]] = {
    "agent's view: the challenge": ("admin", _challenge_in_the_agents_view),
    "appointment beside the calendar": ("staff", _appointment_beside_the_calendar),
    "audit: verified": ("admin", _trail_verified),
    "away: whom to call": ("staff", _whom_to_call),
    "away: with new times": ("staff", _provider_away),
    "blocked time: refused": ("staff", _block_with_errors),
    "client: new secret": ("admin", _new_secret_asked_for),
    "client: refused": ("admin", _client_refused),
    "client: secret": ("admin", _client_secret),
    "menu of a phone": ("staff", _menu_of_a_phone),
    "nothing there": ("staff", _nothing_there),
    "patient: refused": ("staff", _patient_refused),
    "patients: found": ("staff", _patients_found),
    "staff: link": ("admin", _link_for_a_staff_member),
    "practice change: preview": ("admin", _practice_change_previewed),
    "practice change: refused": ("admin", _practice_change_refused),
    "practice file: preview": ("admin", _practice_file_previewed),
    "practice file: refused": ("admin", _practice_file_refused),
    "scheduling system: checked": ("admin", _scheduling_system_checked),
    "sign-in": (None, _sign_in),
}
