"""Text that strangers and colleagues typed is shown as text on every page; nothing in it is ever run."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from frontdesk_client import Frontdesk
from playwright.sync_api import Page, expect

from tests.browser.browsing import Office, Window, command, sign_in, staff_link
from tests.clients.running_desk import Credentials

pytestmark = pytest.mark.heavy

HIT = "window.hit=1"
IMAGE = f'"><img src=x onerror={HIT}>'
SCRIPT = f"</script><script>{HIT}</script>"
TEMPLATE = "{{ 7919 * 104729 }}{% raw %}"  # would be 829348951
SLUG = "hostile"
PRACTICE = f"""
practice: {{slug: {SLUG}, name: '{IMAGE}', timeZone: America/New_York, sandbox: true}}
locations:
  - id: 1
    name: 'L{SCRIPT}'
    aliases: ['{IMAGE}']
    closures: [{{from: DAY_OFF, to: DAY_OFF, reason: '{IMAGE}'}}]
providers:
  - id: 10
    name: 'P{IMAGE}'
    specialty: '{SCRIPT}'
    hours: [{{location: 1, days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "24:00"}}]
    timeOff: [{{from: "OFF_FROMT00:00", to: "OFF_TOT00:00", reason: '{SCRIPT}'}}]
visitTypes:
  - id: 20
    name: 'V{IMAGE}'
    description: '{SCRIPT}'
    patientKind: any
    procedures: [{{id: 100, name: '{TEMPLATE}{IMAGE}', durationMinutes: 30}}]
"""


@pytest.fixture(scope="module")
def hostile(place: Office, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Window, list[str]]]:
    """A practice in which every text is an attack, somebody signed in to it, and the pages to look at."""
    today = datetime.now(UTC).date()
    booked_on = today + timedelta(days=2)
    days = {
        "DAY_OFF": today + timedelta(days=9),
        "OFF_FROM": today + timedelta(days=5),
        "OFF_TO": today + timedelta(days=6),
    }
    text = PRACTICE
    for name, day in days.items():
        text = text.replace(name, day.isoformat())
    path: Path = tmp_path_factory.mktemp("hostile") / "practice.yaml"
    path.write_text(text)
    command(place.desk, "practice", "import", str(path))
    made = command(
        place.desk, "client", "add", "--practice", SLUG, "--name", f"C{IMAGE}", "--grant", "agent", "--scope", "all"
    )
    with Credentials(made["clientId"], made["clientSecret"]).client(place.desk.url) as api:
        patient, appointments = _history(api, booked_on)
    window = place.open(None)
    sign_in(window.page, staff_link(place.desk, "admin", f"O{IMAGE}", SLUG))
    pages = [
        "/account", "/agent", "/audit", "/blocks", f"/book/{patient}?visit=20-100", "/book", "/clients",
        f"/clients/{made['clientId']}", "/confirmations", f"/calendar?date={booked_on}&cancelled=yes",
        f"/calendar?date={booked_on}&view=week&cancelled=yes", f"/day-sheet?date={booked_on}", f"/patients/{patient}",
        f"/patients/{patient}/edit", "/staff", "/practice", "/setup", "/usage",
        *(f"/appointments/{each}" for each in appointments),
    ]  # fmt: skip
    yield window, pages
    window.context.close()


def _history(api: Frontdesk, day: date) -> tuple[str, list[str]]:
    person = {"first_name": IMAGE, "last_name": SCRIPT, "phone": "+1 555 010 0100", "dob": date(1980, 1, 1)}
    patient = api.create_patient(**person).confirm().patient_id
    slots = api.find_first_available(visit_type_id=20, procedure_id=100, from_=day, limit=10).items
    booked = [
        api.book_appointment(patient_id=patient, slot_id=slot.id).confirm().appointment_id for slot in slots[:8:4]
    ]
    api.cancel_appointment(appointment_id=booked[0], reason=IMAGE + SCRIPT).confirm()
    api.book_appointment(patient_id=patient, slot_id=slots[9].id)  # left unconfirmed
    return patient, booked


def test_nothing_typed_is_run_on_any_page(hostile: tuple[Window, list[str]]) -> None:
    window, pages = hostile
    shown = 0
    for path in pages:
        page = window.go(path)
        page.wait_for_load_state("load")
        shown += _look(page, path)
    assert shown > len(pages), "the attacks were on the pages at all"
    window.errors.check()


def test_nothing_found_is_run_in_a_search_or_beside_the_calendar(hostile: tuple[Window, list[str]]) -> None:
    window, pages = hostile
    page = window.go("/patients")
    page.get_by_role("searchbox").fill("0100")
    page.keyboard.press("Enter")
    page.get_by_role("table").wait_for()
    assert _look(page, "search") > 0
    page = window.go(next(each for each in pages if each.startswith("/calendar")))
    page.locator("[data-entry]").first.click()
    page.get_by_role("dialog", name="Appointment").get_by_role("heading").first.wait_for()
    assert _look(page, "appointment beside the calendar") > 0
    window.errors.check()


def test_nothing_answered_is_run_in_the_agents_view(hostile: tuple[Window, list[str]]) -> None:
    window, _ = hostile
    page = window.go("/agent")
    page.get_by_role("radio", name="Step freely").check()
    page.get_by_role("button", name="Start").click()
    page.get_by_label("Another operation").select_option("list_providers")
    page.get_by_role("button", name="Choose").click()
    expect(page.get_by_role("heading", name="List providers")).to_be_visible()
    page.get_by_role("button", name="Send to both doors").click()
    page.locator("#agent-ran").get_by_role("region", name="REST").wait_for()
    assert _look(page, "agent's view") > 0
    window.errors.check()


def _look(page: Page, where: str) -> int:
    """How often an attack stands on the page, as text."""
    assert page.evaluate("window.hit") is None, where
    assert page.locator("img[src=x]").count() == 0, where
    text = page.locator("body").inner_text()
    assert "829348951" not in text, where
    return text.count(HIT)
