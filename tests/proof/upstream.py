"""A practice of the proof whose calendar and patients are in a FHIR server, and what that server has in the end."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import asyncpg

from tests.fhir.door import Door, Fault, Request
from tests.fhir.fake import Fake
from tests.fhir.practice import Upstream
from tests.proof.gate import Gate
from tests.proof.practices import CAPACITY, CELL_MINUTES, CLOSES, OPENS, UPSTREAM, persons

TIMEOUT_SECONDS = 3
_FAULTS: tuple[Fault, ...] = (
    "late", "cut_before", "cut_after", "half", "garbage", "error_before", "error_after", "gateway",
)  # fmt: skip
_IDS = """
SELECT r.local_id, r.reference FROM upstream_record r JOIN practice p USING (practice_id) WHERE p.slug = $1
"""


class FhirPractice:
    """The server listens in this process; the nodes know its address."""

    def __init__(self) -> None:
        self.door = Door(slow=2.0 * TIMEOUT_SECONDS)
        self.records = Upstream(self.door)
        self.gate = Gate()  # of the practice's clients

    async def open(self, first_day: datetime, days: int) -> None:
        await self.door.open()
        self.door.backend = Fake(self.door.address)
        await self.records.store(*_resources(first_day, days))

    def settings(self) -> str:
        return json.dumps(
            {
                "kind": "fhir",
                "baseUrl": self.door.address,
                "locations": {"1": "Location/house"},
                "providers": {str(number): f"Practitioner/p{number}" for number in CAPACITY},
                "timeoutSeconds": TIMEOUT_SECONDS,
            }
        )

    def harm(self, chance: random.Random) -> None:
        """From now on a third of the requests meet a fault."""

        def fault(_request: Request) -> Fault | None:
            return chance.choice(_FAULTS) if chance.random() < 0.3 else None

        self.door.harm = fault

    def heal(self) -> None:
        self.door.reset()

    async def stored(self, dsn: str) -> "StoredUpstream":
        connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
        try:
            ids = {row["reference"]: row["local_id"] for row in await connection.fetch(_IDS, UPSTREAM)}
            open_writes = await connection.fetchval("SELECT count(*) FROM upstream_write")
        finally:
            await connection.close()
        return StoredUpstream(
            ids,
            open_writes,
            await self.records.search("Appointment"),
            await self.records.search("Patient"),
            await self.records.taken_slots(),
        )


class StoredUpstream:
    def __init__(
        self,
        ids: dict[str, str],
        open_writes: int,
        appointments: list[dict[str, Any]],
        patients: list[dict[str, Any]],
        taken_slots: dict[str, Any],
    ) -> None:
        self.open_writes = open_writes
        self._ids = ids
        self._appointments = appointments
        self._patients = patients
        self._taken_slots = taken_slots

    def appointments(self) -> list[dict[str, Any]]:
        """As rows of the native calendar."""
        return [
            {
                "practice": UPSTREAM,
                "appointment_id": self._ids.get(f"Appointment/{each['id']}", each["id"]),
                "patient_id": self._ids[_actor(each, "Patient")],
                "provider_id": int(_actor(each, "Practitioner").removeprefix("Practitioner/p")),
                "start": int(datetime.fromisoformat(each["start"]).timestamp()),
                "procedure_id": _procedure(each),
                "status": _status(each),
            }
            for each in self._appointments
        ]

    def patients(self) -> list[dict[str, Any]]:
        rows = []
        for each in self._patients:
            contact = {telecom["system"]: telecom["value"] for telecom in each["telecom"]}
            rows.append(
                {
                    "practice": UPSTREAM,
                    "patient_id": self._ids.get(f"Patient/{each['id']}", each["id"]),
                    "first_name": each["name"][0]["given"][0],
                    "last_name": each["name"][0]["family"],
                    "phone": contact["phone"],
                    "email": contact.get("email"),
                }
            )
        return rows

    def faults(self) -> Iterator[str]:
        """Slots without an appointment, appointments without their slots, and times that are taken twice."""
        live = [each for each in self._appointments if each["status"] == "booked"]
        slots = [slot["reference"] for each in live for slot in each["slot"]]
        if len(slots) != len(set(slots)):
            yield "two appointments have one slot"
        for slot in sorted(set(slots) ^ self._taken_slots.keys()):
            yield f"{slot} is {'taken by nobody' if slot in self._taken_slots else 'free and booked'}"
        for kind in ("Practitioner", "Patient"):
            times = sorted((_actor(each, kind), each["start"], each["end"]) for each in live)
            for (one, _, end), (other, start, _) in pairwise(times):
                if one == other and start < end:
                    yield f"{one} has two appointments at {start}"
        if self.open_writes:
            yield f"{self.open_writes} writes are not settled"


def _actor(appointment: dict[str, Any], kind: str) -> str:
    references = (each["actor"]["reference"] for each in appointment["participant"])
    return next(str(each) for each in references if each.startswith(f"{kind}/"))


def _procedure(appointment: dict[str, Any]) -> int:
    codings = [coding for each in appointment["serviceType"] for coding in each["coding"]]
    return next(int(each["code"]) for each in codings if each["system"] == "urn:frontdesk:procedure")


def _status(appointment: dict[str, Any]) -> str:
    accepted = [
        each["actor"]["reference"].startswith("Patient/") and each["status"] == "accepted"
        for each in appointment["participant"]
    ]
    return "confirmed" if appointment["status"] == "booked" and any(accepted) else str(appointment["status"])


def _resources(first_day: datetime, days: int) -> Iterator[dict[str, Any]]:
    yield {"resourceType": "Location", "id": "house", "status": "active", "name": "House"}
    for number, person in enumerate(persons(UPSTREAM)):
        yield {
            "resourceType": "Patient",
            "id": f"on-file-{number}",
            "active": True,
            "name": [{"use": "official", "family": person.last, "given": [person.first]}],
            "telecom": [{"system": "phone", "value": person.phone}],
            "birthDate": person.dob,
        }
    midnight = first_day.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for number in CAPACITY:
        actors = [{"reference": f"Practitioner/p{number}"}, {"reference": "Location/house"}]
        yield {"resourceType": "Practitioner", "id": f"p{number}", "name": [{"family": str(number)}]}
        yield {"resourceType": "Schedule", "id": f"of-{number}", "actor": actors}
        for cell in (day * 24 * 60 // CELL_MINUTES + each for day in range(days) for each in range(OPENS, CLOSES)):
            starts = midnight + timedelta(minutes=cell * CELL_MINUTES)
            yield {
                "resourceType": "Slot",
                "id": f"{number}-{cell}",
                "schedule": {"reference": f"Schedule/of-{number}"},
                "status": "free",
                "start": starts.isoformat().replace("+00:00", "Z"),
                "end": (starts + timedelta(minutes=CELL_MINUTES)).isoformat().replace("+00:00", "Z"),
            }
