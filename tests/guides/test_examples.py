"""The example of a voice agent, against the demo practice: what callers hear, and what is then in the calendar."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.crash.harness import Clinic
from tests.guides.newcomer import paste, start_demo

pytestmark = pytest.mark.heavy
COMMAND = ".venv/bin/python examples/voice_agent.py"
IMPATIENT = """
from voice_agent import Call, HangUp


class Impatient:
    \"\"\"Wants to book without asking, with a token that it made up.\"\"\"

    async def decide(self, conversation, tools):
        assert "book_appointment" in [tool["name"] for tool in tools]
        assert all("confirmationToken" not in turn.text for turn in conversation)
        if not conversation:
            return Call("book_appointment", {"patientId": PATIENT, "slotId": SLOT, "ConfirmationToken": "0" * 32})
        return HangUp("Last heard: " + conversation[-1].text)


def make():
    return Impatient()
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    clinic = start_demo(tmp_path_factory.mktemp("caller"))
    yield clinic
    clinic.stop()


@pytest.fixture
def desk(demo: Clinic) -> Iterator[httpx.Client]:
    """The practice's own integration, to look at the calendar."""
    known = json.loads((demo.folder / ".frontdesk" / "demo-credentials.json").read_text())["integration"]
    form = {"grant_type": "client_credentials", "client_id": known["clientId"], "client_secret": known["clientSecret"]}
    with httpx.Client(base_url=demo.url, timeout=30) as client:
        client.headers["Authorization"] = f"Bearer {client.post('/oauth/token', data=form).json()['access_token']}"
        yield client


def ada(desk: httpx.Client) -> str:
    person = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
    return str(desk.post("/api/patients/match", json=person).json()["items"][0]["id"])


def appointments(desk: httpx.Client) -> list[str]:
    items = desk.get("/api/appointments", params={"patientId": ada(desk)}).json()["items"]
    return [item["id"] for item in items]


def write_model(demo: Clinic, desk: httpx.Client) -> None:
    wanted = {"providerId": 10, "visitTypeId": 21, "procedureId": 102, "limit": 1}
    slot = desk.get("/api/slots/first-available", params=wanted).json()["items"][0]["id"]
    known = f"PATIENT, SLOT = {ada(desk)!r}, {slot!r}\n"
    (demo.folder / "impatient.py").write_text(known + IMPATIENT)


def test_a_caller_who_says_yes_is_read_back_to_and_booked(demo: Clinic, desk: httpx.Client) -> None:
    before = appointments(desk)
    output = paste(demo, COMMAND)
    assert output.index("Let me read that back") < output.index("Yes, please.") < output.index("You are booked.")
    assert len(appointments(desk)) == len(before) + 1


def test_a_caller_who_says_no_changes_nothing(demo: Clinic, desk: httpx.Client) -> None:
    before = appointments(desk)
    output = paste(demo, f"{COMMAND} --caller declines")
    assert (
        output.index("Let me read that back") < output.index("No, wait.") < output.index("I leave everything as it is.")
    )
    assert appointments(desk) == before


def test_ids_and_tokens_are_never_said(demo: Clinic) -> None:
    output = paste(demo, COMMAND)
    assert not [mark for mark in ("pat_", "slt_", "apt_", "confirmationToken") if mark in output]


def test_a_model_of_ones_own_takes_the_place_of_the_script(demo: Clinic, desk: httpx.Client) -> None:
    write_model(demo, desk)
    before = appointments(desk)
    output = paste(demo, f"echo 'Yes, please.' | {COMMAND} --caller typed --model impatient:make")
    assert '"appointmentId"' in output
    assert len(appointments(desk)) == len(before) + 1


@pytest.mark.parametrize("typed", ["", "Hello, a follow-up please.\\n"])
def test_a_typed_call_ends_with_a_goodbye_at_the_end_of_input(demo: Clinic, desk: httpx.Client, typed: str) -> None:
    before = appointments(desk)
    output = paste(demo, f"printf '{typed}' | {COMMAND} --caller typed")
    assert output.splitlines()[-1] == "Agent:  Goodbye!"
    assert appointments(desk) == before


@pytest.mark.parametrize("answer", ["No.", "Yes, but not on that day.", "Hm?", "Well, yes and no"])
def test_a_model_cannot_book_without_a_clear_yes(demo: Clinic, desk: httpx.Client, answer: str) -> None:
    write_model(demo, desk)
    before = appointments(desk)
    output = paste(demo, f"echo '{answer}' | {COMMAND} --caller typed --model impatient:make")
    assert "Nothing was changed." in output
    assert appointments(desk) == before
