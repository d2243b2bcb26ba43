"""One service with the demo practice and one browser for all of these tests; a window of its own for each of them."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import DEADLINE, MEASURED, PAINTED, Office, Window, command, office, sign_in

_TOLD = 3  # the slowest of many
_FORMS_CLINIC = """
practice: {slug: forms, name: Forms Clinic, timeZone: America/New_York, sandbox: true}
locations: [{id: 1, name: Main Street}]
providers: [{id: 10, name: Dr. Ines Faria, hours: [{location: 1, days: [mon, tue], from: "08:00", to: "12:00"}]}]
visitTypes: [{id: 20, name: Visit, procedures: [{id: 100, name: Consultation, durationMinutes: 30}]}]
"""

expect.set_options(timeout=DEADLINE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First the link that the server prints, which works for minutes only."""
    items.sort(key=lambda item: item.path.stem != "test_arrival")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("office")) as opened:
        yield opened


@pytest.fixture(scope="session")
def forms_clinic(place: Office, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("forms") / "forms.yaml"
    path.write_text(_FORMS_CLINIC)
    command(place.desk, "practice", "import", str(path))


@pytest.fixture(scope="module")
def forms_admin(place: Office, forms_clinic: None) -> str:
    """The admin of a practice without appointments, to open windows for, as for those of the demo practice. Signed in
    anew for each file: between two of them the session would have ended."""
    opened = place.open(None)
    sign_in(opened.page, place.new_link("admin", "Ines Faria", "forms"))
    place.signed_in["forms"] = opened.context.storage_state()
    opened.context.close()
    opened.errors.check()
    return "forms"


@pytest.fixture
def window(place: Office) -> Iterator[Callable[..., Window]]:
    """Opens windows; closes them after the test, which fails where a page did something that no page may."""
    opened: list[Window] = []

    def open_window(*arguments: object, **options: object) -> Window:
        opened.append(place.open(*arguments, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_window
    for each in opened:
        each.context.close()
    for each in opened:
        each.errors.check()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured on the way."""
    slowest = sorted(PAINTED.items(), key=lambda each: each[1])[-_TOLD:]
    for name, milliseconds in [*MEASURED.items(), *((f"first paint of {page}", paint) for page, paint in slowest)]:
        terminalreporter.write_line(f"{name}: {milliseconds:.0f} ms")
