"""Those who call the practice while people look at the console: an agent, over REST."""

import itertools
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
from frontdesk_client import Frontdesk

from tests.clients.running_desk import Desk

FIRST_VISIT, CONSULTATION = 20, 101  # for people whom the practice has not seen before
CHEN, DOWNTOWN = 10, 1


@dataclass(frozen=True)
class Slot:
    id: str
    start: datetime  # in the location's zone

    @property
    def day(self) -> str:
        return self.start.date().isoformat()

    @property
    def time(self) -> str:
        return f"{self.start:%H:%M}"


class Agent:
    def __init__(self, desk: Desk) -> None:
        self._numbers = itertools.count(1)
        self.client_id = desk.agent.client_id
        self._url = desk.url
        self.api: Frontdesk = desk.agent.client(desk.url)
        self._today = datetime.now(UTC).date()  # stays, so that a test that crosses midnight keeps to its days

    def patient(self, last_name: str, **given: Any) -> str:
        """A new patient, so that no test waits for another's appointments."""
        phone = f"+1 555 020 {next(self._numbers):04}"
        person = {"first_name": "Mina", "phone": phone, "dob": date(1990, 5, 17), **given}
        proposal = self.api.create_patient(last_name=last_name, **person)
        made: str = proposal.confirm().patient_id
        return made

    def consent(self, redirect_uri: str = "https://claude.ai/api/mcp/auth_callback", **changes: str) -> str:
        """The address below /console at which an application that has just registered asks for consent."""
        description = {"client_name": "Claude", "redirect_uris": [redirect_uri]}
        registered = httpx.post(f"{self._url}/oauth/register", json=description, timeout=30)
        asked = {
            "response_type": "code",
            "client_id": registered.json()["client_id"],
            "redirect_uri": redirect_uri,
            "code_challenge": "A" * 43,
            "code_challenge_method": "S256",
            **changes,
        }
        return f"/connect?{urlencode(asked)}"

    def slots(self, limit: int = 40, weeks_ahead: int = 0) -> list[Slot]:
        """None of today: it could come too close before a test has booked it."""
        found = self.api.find_first_available(
            visit_type_id=FIRST_VISIT,
            procedure_id=CONSULTATION,
            provider_id=CHEN,
            location_id=DOWNTOWN,
            from_=self._today + timedelta(days=1, weeks=weeks_ahead),
            limit=limit,
        )
        return [Slot(item.id, item.start) for item in found]

    def book(self, patient: str, slot: Slot) -> str:
        booked: str = self.api.book_appointment(patient_id=patient, slot_id=slot.id).confirm().appointment_id
        return booked

    def completed_visit(self) -> str:
        listed = self.api.list_appointments(from_=self._today - timedelta(days=6), to=self._today - timedelta(days=1))
        found: str = next(each.id for each in listed.items if each.status == "completed")
        return found

    def status(self, appointment: str) -> str:
        status: str = self.api.get_appointment(appointment_id=appointment).status
        return status
