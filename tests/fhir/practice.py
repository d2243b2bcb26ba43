"""The practice of the small world, kept in a FHIR server: the same people, places and hours, as FHIR resources."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from frontdesk.app import build_app, build_service
from frontdesk.practice_file import parse
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice, practice_id_of
from frontdesk.systems.fhir.transport.breaker import Breaker
from tests.fhir.door import Door
from tests.fhir.fake import Fake
from tests.fhir.iti_scheduling import DEFINITIONS, ItiScheduling
from tests.fhir.medplum import medplum
from tests.fhir.proposing import SETTINGS, Proposing, scheduling_resources
from tests.support.world import MONDAY, PRACTICE, Clock, World

Resource = dict[str, Any]

# httpcore looks for this package several times with every request, and pytest makes looking for one costly.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]

VISITS = "http://harbor.example.com/visits"
SYSTEM: Resource = {
    "kind": "fhir",
    "locations": {"1": "Location/downtown", "2": "Location/westside"},
    "providers": {"10": "Practitioner/chen", "11": "Practitioner/nunez", "12": "Practitioner/okafor"},
    "visitTypes": {"20": {"system": VISITS, "code": "NEW"}},
    "procedures": {"101": {"system": VISITS, "code": "FU15"}, "103": "HealthcareService/shots"},
    "timeoutSeconds": 30,
}
PEOPLE = {
    "ada": ("Ada", "Lovelace", "1985-12-10", "+1 555 010 0199", None, True),
    "grace": ("Grace", "Hopper", "1986-12-09", "+1 555 010 0142", "grace@example.com", False),
    "jose": ("José", "Núñez-O'Brien", "1990-02-28", "+1 555 010 0177", None, True),
    "alan": ("Alan", "Turing", "1990-06-23", "+1 555 010 0123", None, True),
}
DAYS = 5  # of slots, from Monday on
SLOT_MINUTES = 15


def file_text(slug: str, address: str, **settings: Any) -> str:
    """The practice file of the small world, with a FHIR server instead of its own calendar and patients."""
    system = json.dumps({**SYSTEM, "baseUrl": address, **settings})
    directory, _, _ = PRACTICE.partition("patients:")
    return directory.replace("SLUG", slug).replace(
        'phone: "+1 555 0100"}', f'phone: "+1 555 0100", schedulingSystem: {system}}}', 1
    )


def resources(days: int = DAYS) -> Iterator[Resource]:
    for place in ("downtown", "westside"):
        yield {"resourceType": "Location", "id": place, "status": "active", "name": place.title()}
    for person in ("chen", "nunez", "okafor"):
        yield {"resourceType": "Practitioner", "id": person, "name": [{"family": person.title()}]}
    yield {"resourceType": "HealthcareService", "id": "shots", "name": "Flu shots"}
    yield from _people()
    yield from _calendar("chen", "downtown", "America/New_York", range(days), [(9, 12), (13, 17)])
    yield from _calendar("nunez", "downtown", "America/New_York", (0, 1), [(9, 12)])
    yield from _calendar("nunez", "westside", "America/Los_Angeles", (2,), [(9, 12)])
    # Known by a role alone, and the role says where.
    role = {"practitioner": {"reference": "Practitioner/okafor"}, "location": [{"reference": "Location/downtown"}]}
    yield {"resourceType": "PractitionerRole", "id": "okafor-downtown", **role}
    yield from _calendar("okafor", "downtown", "America/New_York", range(days), [(9, 12)], role="okafor-downtown")


def proposed_resources() -> Iterator[Resource]:
    """The same practice in a server that proposes times: no slots."""
    yield from (each for each in resources(0) if each["resourceType"] not in ("Schedule", "HealthcareService"))
    yield from scheduling_resources()


def _people() -> Iterator[Resource]:
    for key, (first, last, dob, phone, email, seen) in PEOPLE.items():
        telecom = [{"system": "phone", "value": phone}]
        if email is not None:
            telecom.append({"system": "email", "value": email})
        yield {
            "resourceType": "Patient",
            "id": key,
            "active": True,
            "name": [{"use": "official", "family": last, "given": [first, "Q."]}],
            "telecom": telecom,
            "birthDate": dob,
        }
        if seen:
            yield {
                "resourceType": "Appointment",
                "id": f"past-{key}",
                "status": "fulfilled",
                "start": "2025-03-03T15:00:00Z",
                "end": "2025-03-03T15:15:00Z",
                "participant": [{"actor": {"reference": f"Patient/{key}"}, "status": "accepted"}],
            }


def _calendar(
    person: str, place: str, zone: str, days: Any, hours: list[tuple[int, int]], role: str | None = None
) -> Iterator[Resource]:
    name = f"{person}-{place}"
    actors = [f"PractitionerRole/{role}"] if role else [f"Practitioner/{person}", f"Location/{place}"]
    yield {"resourceType": "Schedule", "id": name, "actor": [{"reference": actor} for actor in actors]}
    for day in days:
        for opens, closes in hours:
            for minute in range(opens * 60, closes * 60, SLOT_MINUTES):
                starts = _instant(MONDAY + timedelta(days=day), minute, zone)
                yield {
                    "resourceType": "Slot",
                    "id": f"{name}-{day}-{minute}",
                    "schedule": {"reference": f"Schedule/{name}"},
                    "status": "free",
                    "start": _text(starts),
                    "end": _text(starts + timedelta(minutes=SLOT_MINUTES)),
                }


def _instant(day: date, minute: int, zone: str) -> datetime:
    return datetime.combine(day, time(minute // 60, minute % 60), ZoneInfo(zone)).astimezone(UTC)


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def opened(server: str) -> AsyncIterator[Door]:
    """The way to an empty FHIR server: our small one, one that nobody here wrote, or one that proposes times in a shape
    of its own; with or without batches."""
    door = Door()
    await door.open()
    kind, _, batches = server.partition("-")
    repository = medplum().repository(f"{batches}-{token_hex(8)}", door.address) if kind == "medplum" else None
    if kind == "proposing":
        door.backend, door.settings = Proposing(door.address, batches=bool(batches)), SETTINGS
    elif kind in DEFINITIONS:
        door.backend = ItiScheduling(door.address, kind)
    else:
        door.backend = repository or Fake(door.address, batches=bool(batches))
    try:
        yield door
    finally:
        await door.close()
        if repository is not None:
            await repository.close()


class Upstream:
    """A FHIR server as a test sees it: past the faults, straight to what is stored."""

    def __init__(self, door: Door) -> None:
        self.door = door

    async def seed(self, days: int = DAYS) -> None:
        proposes = isinstance(self.door.backend, Proposing | ItiScheduling)
        await self.store(*(proposed_resources() if proposes else resources(days)))

    async def read(self, reference: str) -> Resource:
        return await self.ask("GET", f"/{reference}")

    async def put(self, resource: Resource) -> Resource:
        """Changes a record as the practice's own staff would."""
        reference = f"{resource['resourceType']}/{resource['id']}"
        version = (await self.read(reference)).get("meta", {}).get("versionId")
        return await self.ask("PUT", f"/{reference}", resource, {"if-match": f'W/"{version}"'})

    async def store(self, *records: Resource) -> None:
        """Stores records under the ids that they have."""
        entries = [
            {"resource": each, "request": {"method": "PUT", "url": f"{each['resourceType']}/{each['id']}"}}
            for each in records
        ]
        await self.ask("POST", "", {"resourceType": "Bundle", "type": "batch", "entry": entries})

    async def create(self, resource: Resource) -> Resource:
        return await self.ask("POST", f"/{resource['resourceType']}", resource)

    async def search(self, kind: str, query: str = "") -> list[Resource]:
        bundle = await self.ask("GET", f"/{kind}?{query}&_count=2000")
        return [entry["resource"] for entry in bundle.get("entry") or ()]

    async def live_appointments(self) -> list[Resource]:
        """Those that take somebody's time, without the ones from long ago."""
        return [each for each in await self.search("Appointment") if each["status"] == "booked"]

    async def taken_slots(self) -> dict[str, Resource]:
        taken = await self.search("Slot", "status=busy,busy-unavailable,busy-tentative")
        return {f"Slot/{each['id']}": each for each in taken}

    async def busy_slots(self) -> set[str]:
        return set(await self.taken_slots())

    async def ask(
        self, method: str, target: str, body: Resource | None = None, headers: dict[str, str] | None = None
    ) -> Resource:
        assert self.door.backend is not None
        content = b"" if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/fhir+json", **(headers or {})}
        answer = await self.door.backend.answer(method, target, sent, content)
        document: Resource = json.loads(answer.body)
        assert answer.status in (200, 201), (answer.status, document)
        return document


@asynccontextmanager
async def fhir_world(database: Database, data_dir: Path, door: Door, **settings: Any) -> AsyncIterator[World]:
    """A service in this process whose practice `harbor` lives behind the door."""
    clock = Clock()
    service = build_service(Settings(data_dir=data_dir, base_url="http://test"), database, clock)
    file = file_text("harbor", door.address, **{**door.settings, **settings})
    await import_practice(database, parse(file), clock.now)
    await service.ring.load()
    world = World(service, clock, httpx.ASGITransport(app=build_app(service)))
    try:
        yield world
    finally:
        await world.close()
        await service.fhir.close()


async def settle(world: World, *, every: float = 30) -> None:
    """What the reconciler does in a while; `every` so many seconds it looks at what is left to do."""
    practice_id = await practice_id_of(world.database, "harbor")
    assert practice_id is not None
    for _ in range(6):
        world.clock.advance(seconds=every)
        if not await world.service.fhir.reconciler.settle(practice_id):
            break


async def unmap(world: World, provider: str) -> None:
    """The practice file no longer names the provider's record."""
    without = "UPDATE practice SET scheduling_system = scheduling_system #- $1::text[], version = version + 1"
    async with world.database.transaction(1) as connection:
        await connection.execute(without, ["providers", provider])


def extend_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with other things is not taken for a server that is away."""
    monkeypatch.setattr("frontdesk.systems.fhir.transport.request_sender.CONNECT_SECONDS", 30.0)
    monkeypatch.setattr("frontdesk.systems.fhir.upstream.FIRST_STATEMENT_SECONDS", 30.0)


def give(world: World, seconds: float) -> None:
    """From now on all requests of a read, or of a write, may take so long together."""
    for each in world.service.fhir._upstreams.values():
        each.settings = replace(each.settings, timeout_seconds=seconds)


@dataclass
class UsageBucket:
    """A time that passes when it is told to."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


def forgive(world: World) -> UsageBucket:
    """The server is asked again at once, whatever it did or wished before; returns the time that breakers go by."""
    now = UsageBucket()
    for each in world.service.fhir._upstreams.values():
        each.client.sender.breaker = Breaker(now)
    return now
