"""A small world for tests: a service in this process, practices with known hours, and clients that call over ASGI."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from frontdesk.access.clients.records import AS_THE_PRACTICE, AccessLimits, add_client, trust_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import Service, build_app, build_service
from frontdesk.domain.directory import Directory
from frontdesk.practice_file import parse
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory
from frontdesk.store.practices import import_practice, practice_id_of

UNLIMITED = AccessLimits(0, 0, 0, writes_per_hour=0, upcoming_per_patient=0)
# A Sunday before opening: nothing is booked, everything lies ahead.
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
MONDAY = date(2026, 11, 16)

PRACTICE = """
practice: {slug: SLUG, name: Harbor Family Medicine, timeZone: America/New_York, phone: "+1 555 0100"}
locations:
  - id: 1
    name: Downtown
    aliases: [Main Street]
    phone: "+1 555 0101"
    address: {line1: 1 Main Street, city: Boston, state: MA, postalCode: "02110", country: US}
    closures: [{from: 2026-12-25, to: 2026-12-25, reason: Christmas Day}]
  - {id: 2, name: Westside, timeZone: America/Los_Angeles}
providers:
  - id: 10
    name: Dr. Robert Chen
    aliases: [Bob Chen]
    specialty: Family medicine
    hours:
      - {location: 1, days: [mon, tue, wed, thu, fri], from: "09:00", to: "12:00"}
      - {location: 1, days: [mon, tue, wed, thu, fri], from: "13:00", to: "17:00"}
  - id: 11
    name: Dr. María Núñez
    capacity: 2
    hours:
      - {location: 1, days: [mon, tue], from: "09:00", to: "12:00"}
      - {location: 2, days: [wed], from: "09:00", to: "12:00"}
  - id: 12
    name: Dr. Amara Okafor
    acceptsNewPatients: false
    procedures: [101]
    hours: [{location: 1, days: [mon, tue, wed, thu, fri], from: "09:00", to: "12:00"}]
visitTypes:
  - id: 20
    name: New patient exam
    aliases: [first visit]
    patientKind: new
    procedures: [{id: 100, name: Comprehensive exam, durationMinutes: 30, bufferAfterMinutes: 15}]
  - id: 21
    name: Follow-up
    patientKind: existing
    description: For patients we know.
    procedures:
      - {id: 101, name: Follow-up visit, durationMinutes: 15}
      - {id: 102, name: Long follow-up, durationMinutes: 45}
  - {id: 22, name: Vaccination, patientKind: any, procedures: [{id: 103, name: Flu shot, durationMinutes: 15}]}
patients:
  - {number: 1, firstName: Ada, lastName: Lovelace, dob: 1985-12-10, phone: "+1 555 010 0199", seen: true}
  - {number: 2, firstName: Grace, lastName: Hopper, dob: 1986-12-09, phone: "+1 555 010 0142", email: grace@example.com}
  - {number: 3, firstName: José, lastName: Núñez-O'Brien, dob: 1990-02-28, phone: "+1 555 010 0177", seen: true}
  - {number: 4, firstName: Alan, lastName: Turing, dob: 1990-06-23, phone: "+1 555 010 0123", seen: true}
"""


@dataclass
class Clock:
    """The service's time; tests move it."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


@dataclass
class World:
    service: Service
    clock: Clock
    transport: httpx.ASGITransport
    clients: list[httpx.AsyncClient] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return self.service.database

    async def client(
        self,
        practice: str = "harbor",
        grant: str = "agent",
        scopes: Sequence[str] = SCOPES,
        per_minute: int = 1_000_000,
        quota: int = 1_000_000,
        access_limits: AccessLimits = AS_THE_PRACTICE,
        trusted_to_ask: bool = False,
    ) -> httpx.AsyncClient:
        """An HTTP client that carries a fresh token of a new client."""
        record, secret = await add_client(
            self.database,
            self.service.ring,
            practice=practice,
            name=f"{grant} of {practice}",
            grant=grant,
            scopes=list(scopes),
            per_minute=per_minute,
            quota=quota,
            access_limits=access_limits,
        )
        if trusted_to_ask:
            await trust_client(self.database, record.client_id)
        opened = self.anonymous()
        opened.headers["X-Test-Client"] = record.client_id
        self.secrets[record.client_id] = secret
        await self.renew(opened)
        return opened

    async def renew(self, client: httpx.AsyncClient) -> None:
        """A fresh access token for the same client."""
        client_id = client.headers["X-Test-Client"]
        client.headers.pop("Authorization", None)
        answer = await client.post(
            "/oauth/token",
            data={
                "grant_type": "client_credentials",
                "client_id": client_id,
                "client_secret": self.secrets[client_id],
            },
        )
        assert answer.status_code == 200, answer.text
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    async def import_file(self, text: str, *, prune: bool = False) -> None:
        """Imports a practice file, and passes the word on as the listener of a running service does."""
        file = parse(text)
        await import_practice(self.database, file, self.clock.now, prune=prune)
        self.service.authenticator.on_change("practice", file.directory.practice.slug)

    def anonymous(self) -> httpx.AsyncClient:
        opened = httpx.AsyncClient(transport=self.transport, base_url="http://test", timeout=30)
        self.clients.append(opened)
        return opened

    async def close(self) -> None:
        for client in self.clients:
            await client.aclose()


async def build_world(database: Database, data_dir: Path) -> World:
    """A world in an empty database."""
    for slug in ("harbor", "other"):
        await import_practice(database, parse(PRACTICE.replace("SLUG", slug)), NOW)
    return await open_world(database, data_dir)


@cache
def _settings() -> Settings:
    """Made once: reading settings takes as long as opening the rest of a world."""
    return Settings(base_url="http://test")


async def open_world(database: Database, data_dir: Path) -> World:
    """A world in a database that has its practices."""
    clock = Clock()
    settings = _settings().model_copy(update={"data_dir": data_dir})
    service = build_service(settings, database, clock)
    await service.ring.load()
    return World(service, clock, httpx.ASGITransport(app=build_app(service)))


async def stored_directory(database: Database, slug: str) -> Directory | None:
    practice_id = await practice_id_of(database, slug)
    return None if practice_id is None else (await load_directory(database, practice_id)).directory


async def patient_id(client: httpx.AsyncClient, first: str = "Ada") -> str:
    people: dict[str, dict[str, str]] = {
        "Ada": {"lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"},
        "Grace": {"lastName": "Hopper", "dob": "1986-12-09", "phone": "555 010 0142"},
        "José": {"lastName": "Nunez OBrien", "dob": "1990-02-28", "phone": "0177"},
        "Alan": {"lastName": "Turing", "dob": "1990-06-23", "phone": "0123"},
    }
    answer = await client.post("/api/patients/match", json={"firstName": first, **people[first]})
    assert answer.status_code == 200, answer.text
    found: str = answer.json()["items"][0]["id"]
    return found


async def slots(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    wanted = {
        "providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101,
        "from": MONDAY.isoformat(), "to": MONDAY.isoformat(), **query,
    }  # fmt: skip
    answer = await client.get("/api/slots", params=wanted)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def confirmed(client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
    """Both phases of an agent's write; the answer of the second."""
    challenge = await client.request(method, path, json=body)
    assert challenge.status_code == 428, challenge.text
    return await client.request(method, path, json={**body, "confirmationToken": challenge.json()["confirmationToken"]})


async def book(client: httpx.AsyncClient, first: str = "Ada", **query: Any) -> str:
    """Books the first open slot; returns the appointment's id."""
    slot = (await slots(client, **query))[0]
    body = {"patientId": await patient_id(client, first), "slotId": slot["id"]}
    answer = await confirmed(client, "POST", "/api/appointments", body)
    assert answer.status_code == 201, answer.text
    booked: str = answer.json()["appointmentId"]
    return booked


async def page_through(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """Every item of a list, page by page."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await client.get(path, params={**query, **cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        items += page["items"]
        if "nextCursor" not in page:
            return items
        assert len(page["items"]) == page["limit"]
        cursor = {"cursor": page["nextCursor"]}


def rules(answer: httpx.Response) -> dict[str, str]:
    """The broken rule of every offending field of a validation problem."""
    document = answer.json()
    assert document["code"] == "validation", document
    found = {error["field"]: error["rule"] for error in document["errors"]}
    assert len(found) == len(document["errors"]), "a field is named once"
    return found
