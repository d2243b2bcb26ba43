"""Running a practice in a browser: clients, usage, confirmations, the audit trail, and the way from empty to booked."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.browsing import Office, Window, arrive, command, sign_in, staff_link, tab_to
from tests.clients.running_desk import Credentials

pytestmark = pytest.mark.heavy

Open = Callable[..., Window]

EMPTY = "practice: {slug: newcomer, name: Newcomer Clinic, timeZone: America/New_York, sandbox: true}\n"
FILLED = (
    EMPTY
    + """
locations: [{id: 1, name: Main Street}]
providers:
  - id: 10
    name: Dr. Ines Faria
    hours: [{location: 1, days: [mon, tue, wed, thu, fri, sat, sun], from: "08:00", to: "18:00"}]
visitTypes:
  - {id: 20, name: Visit, patientKind: any, procedures: [{id: 100, name: Consultation, durationMinutes: 30}]}
"""
)


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def expect_in_time(shown: Locator) -> None:
    """Counts arrive within seconds: the page is opened again until they have."""
    for _ in range(30):
        shown.page.reload()
        if shown.is_visible():
            return
        shown.page.wait_for_timeout(500)
    expect(shown).to_be_visible()


# Clients


def test_a_client_is_added_rotated_and_disabled_by_mouse(place: Office, window: Open) -> None:
    opened = window("admin")
    opened.errors.expected.append("status of 422")  # a form with an error is shown again
    page = opened.go("/clients")
    page.get_by_role("link", name="Add a client").click()
    page.get_by_label("Calls a minute").fill("many")
    page.get_by_role("button", name="Add the client").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Calls a minute")).to_have_value("many")
    page.get_by_role("textbox", name="Name").fill("Voice agent")
    page.get_by_label("Calls a minute").fill("120")
    for scope in ("practices:read", "slots:read"):
        page.get_by_role("checkbox", name=scope).check()
    page.get_by_role("button", name="Add the client").click()
    made = Credentials(page.locator("#client-id").inner_text(), page.locator("#client-secret").inner_text())
    with made.client(place.desk.url) as api:
        assert list(api.get_capabilities().capabilities) == ["practices:read", "slots:read"]

    page.get_by_role("link", name="I have copied it").click()
    arrive(page.get_by_role("button", name="Make a new secret"))
    assert made.client_secret not in page.content(), "it is shown once"
    page.get_by_role("button", name="Make a new secret").click()
    page.get_by_role("dialog").get_by_label("The old secret stops").select_option(label="At once")
    page.get_by_role("dialog").get_by_role("button", name="Make a new secret").click()
    rotated = page.locator("#client-secret").inner_text()
    assert rotated != made.client_secret
    page.get_by_role("link", name="I have copied it").click()

    arrive(page.get_by_role("button", name="Disable"))
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_text("Disabled", exact=True)).to_be_visible()
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_text("Active", exact=True)).to_be_visible()


def test_a_client_is_added_by_keyboard(window: Open) -> None:
    page = window("admin").go("/clients/new")
    page.get_by_role("textbox", name="Name").focus()
    page.keyboard.type("Typed agent")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Integration")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("checkbox", name="practices:read")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.locator("#client-secret")).to_be_visible()
    page.get_by_role("link", name="I have copied it").focus()
    page.keyboard.press("Enter")
    arrive(page.get_by_role("button", name="Make a new secret"))
    page.get_by_role("button", name="Make a new secret").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


# What clients did


def test_usage_shows_requests_and_errors_of_a_client(place: Office, window: Open) -> None:
    agent = place.agent
    agent.slots(limit=1)
    page = window("admin").go("/usage")
    expect_in_time(row(page, "Find the earliest open slots").first)
    requests = page.get_by_role("figure", name="Requests over time")
    expect(requests.get_by_role("img")).to_be_visible()
    requests.get_by_text("Show as a table").click()
    expect(requests.get_by_role("table")).to_be_visible()
    page.get_by_role("navigation", name="Time").get_by_role("link", name="7 days").click()
    arrive(page.locator("a[aria-current=true]", has_text="7 days"))
    page.get_by_label("Client").select_option(agent.client_id)
    expect(page.get_by_text("Requests of agent")).to_be_visible()


def test_a_proposal_waits_among_the_confirmations(place: Office, window: Open) -> None:
    agent = place.agent
    patient = agent.patient("Proposed")
    proposal = agent.api.book_appointment(patient_id=patient, slot_id=agent.slots()[-1].id)
    page = window("staff").go(f"/confirmations?client={agent.client_id}")
    with page.expect_navigation():  # the proposal is on the first page, too
        page.get_by_role("link", name="Waiting").click()
    waiting = row(page, "Book an appointment").filter(has_text="can be confirmed until")
    expect(waiting).to_have_count(1)
    proposal.confirm()
    page.reload()
    expect(waiting).to_have_count(0)
    page.get_by_role("link", name="Executed").click()
    page.get_by_role("link", name="Open", exact=True).first.click()
    expect(page.get_by_role("heading", name="Mina Proposed")).to_be_visible()


def test_the_audit_trail_is_filtered_exported_and_verified(place: Office, window: Open) -> None:
    agent = place.agent
    patient = agent.patient("Audited")
    page = window("admin").go("/audit")
    page.locator("summary", has_text="Find records").click()
    page.get_by_label("What", exact=False).select_option("Create a patient")
    page.get_by_role("textbox", name="Id of a record").fill(patient)
    page.keyboard.press("Enter")
    expect(page.get_by_role("row")).to_have_count(2)
    expect(row(page, "added the patient")).to_be_visible()
    page.get_by_role("link", name="Show everything").click()
    expect(page.get_by_role("row").nth(3)).to_be_visible()

    with page.expect_download() as download:
        page.get_by_role("link", name="Export everything").click()
    assert patient in Path(download.value.path()).read_text()

    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("Intact.", exact=False)).to_be_visible()


def test_the_audit_trail_is_verified_by_keyboard(window: Open) -> None:
    page = window("admin").go("/audit")
    tab_to(page, page.get_by_role("button", name="Verify"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("Intact.", exact=False)).to_be_visible()


# The practice


def test_a_new_practice_is_led_from_empty_to_its_first_booking(place: Office, window: Open, tmp_path: Path) -> None:
    path = tmp_path / "practice.yaml"
    path.write_text(EMPTY)
    command(place.desk, "practice", "import", str(path))
    opened = window(None)
    opened.errors.expected.append("status of 422")  # a file with errors is shown again
    page = opened.page
    sign_in(page, staff_link(place.desk, "admin", "Ines Faria", "newcomer"))
    opened.go("/setup")
    expect(page.get_by_text("0 of 6 done")).to_be_visible()

    page.get_by_role("link", name="Upload the practice file").click()
    path.write_text(
        FILLED.replace("location: 1", "location: 7").replace("durationMinutes: 30", "durationMinutes: long")
    )
    page.get_by_label("File", exact=True).set_input_files(path)
    page.get_by_role("button", name="Show what changes").click()
    errors = page.get_by_role("alert")
    expect(errors).to_contain_text("errors. Nothing was changed.")
    expect(errors.get_by_role("listitem")).to_have_count(2)
    path.write_text(FILLED)
    page.get_by_label("File", exact=True).set_input_files(path)
    page.get_by_role("button", name="Show what changes").click()
    expect(row(page, "Providers")).to_contain_text("Dr. Ines Faria")
    page.get_by_role("button", name="Apply the file").click()
    expect(page.get_by_text("The practice file has been applied.")).to_be_visible()

    opened.go("/setup")
    expect(page.get_by_text("2 of 6 done")).to_be_visible()
    page.get_by_role("link", name="Add a client").click()
    page.get_by_role("textbox", name="Name").fill("First agent")
    for scope in page.get_by_role("checkbox").all():
        scope.check()
    page.get_by_role("button", name="Add the client").click()
    made = Credentials(page.locator("#client-id").inner_text(), page.locator("#client-secret").inner_text())
    opened.go("/setup")
    expect(page.get_by_text("3 of 6 done")).to_be_visible()

    with made.client(place.desk.url) as api:
        patient = api.create_patient(
            first_name="Nora", last_name="First", phone="+1 555 010 0170", dob="1991-04-02"
        ).confirm()
        slot = api.find_first_available(visit_type_id=20, procedure_id=100).items[-1]  # the first may come too close
        api.book_appointment(patient_id=patient.patient_id, slot_id=slot.id).confirm()
    opened.go("/setup")
    expect_in_time(page.get_by_text("6 of 6 done"))
    page.get_by_role("link", name="The calendar").click()
    expect(page.get_by_role("heading", name="Dr. Ines Faria").first).to_be_visible()


def test_the_scheduling_system_is_checked_part_by_part(window: Open) -> None:
    page = window("admin").go("/practice/system")
    expect(page.get_by_text("Reachable")).to_be_visible()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("works").first).to_be_visible()


def test_a_staff_member_is_added_signs_in_and_is_shut_out(window: Open) -> None:
    page = window("admin").go("/staff")
    page.get_by_role("textbox", name="Name").fill("Tomas Reyes")
    page.get_by_role("button", name="Add and make a sign-in link").click()
    link = page.locator("#link").inner_text()
    member = window(None)
    sign_in(member.page, link)
    page.get_by_role("link", name="Back to staff").click()
    row(page, "Tomas Reyes").get_by_role("button", name=re.compile("Disable")).click()
    expect(row(page, "Tomas Reyes")).to_contain_text("disabled")
    member.go("/patients")
    expect(member.page.get_by_role("heading", name="Sign in")).to_be_visible()
