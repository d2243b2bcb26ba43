"""The six writes as tests of faults make them: how each is prepared, and whether it happened exactly once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.fhir.practice import Upstream
from tests.support.world import World, patient_id, slots

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class Scene:
    world: World
    upstream: Upstream
    agent: httpx.AsyncClient
    integration: httpx.AsyncClient  # prepares
    patients: dict[str, str] = field(default_factory=dict)

    async def patient(self, first: str) -> str:
        if first not in self.patients:
            self.patients[first] = await patient_id(self.integration, first)
        return self.patients[first]

    async def send(self, write: "Write", token: str | None = None) -> httpx.Response:
        body = write.body if token is None else {**write.body, "confirmationToken": token}
        return await self.agent.request(write.method, write.path, json=body)

    async def challenged(self, write: "Write") -> str:
        """A token for the write."""
        answer = await self.send(write)
        assert answer.status_code == 428, answer.text
        token: str = answer.json()["confirmationToken"]
        return token


@dataclass
class Write:
    """One write, and whether it happened exactly once."""

    method: str
    path: str
    body: dict[str, Any]
    happened: Callable[[], Awaitable[bool]]


Prepare = Callable[[Scene, int], Awaitable[Write]]


async def booking(scene: Scene, turn: int) -> Write:
    slot = (await slots(scene.integration))[0]
    patient = await scene.patient(("Ada", "Alan")[turn % 2])
    before = {each["id"] for each in await scene.upstream.live_appointments()}

    async def happened() -> bool:
        new = [each for each in await scene.upstream.live_appointments() if each["id"] not in before]
        assert len(new) <= 1, "booked twice"
        return len(new) == 1

    return Write("POST", "/api/appointments", {"patientId": patient, "slotId": slot["id"]}, happened)


async def _appointment(scene: Scene, turn: int, slot_id: str | None = None) -> tuple[str, dict[str, Any]]:
    """An appointment of our own, and as the server has it."""
    before = {each["id"] for each in await scene.upstream.live_appointments()}
    slot_id = slot_id or (await slots(scene.integration))[0]["id"]
    body = {"patientId": await scene.patient(("Ada", "Alan")[turn % 2]), "slotId": slot_id}
    answer = await scene.integration.post("/api/appointments", json=body)
    assert answer.status_code == 201, answer.text
    [stored] = [each for each in await scene.upstream.live_appointments() if each["id"] not in before]
    return answer.json()["appointmentId"], stored


async def cancelling(scene: Scene, turn: int) -> Write:
    appointment, stored = await _appointment(scene, turn)

    async def happened() -> bool:
        return bool((await scene.upstream.read(f"Appointment/{stored['id']}"))["status"] == "cancelled")

    return Write("POST", f"/api/appointments/{appointment}/cancel", {"reason": "Travelling"}, happened)


async def confirming(scene: Scene, turn: int) -> Write:
    appointment, stored = await _appointment(scene, turn)

    async def happened() -> bool:
        now = await scene.upstream.read(f"Appointment/{stored['id']}")
        return bool(now["participant"][0]["status"] == "accepted")

    return Write("POST", f"/api/appointments/{appointment}/confirm", {}, happened)


async def moving(scene: Scene, turn: int) -> Write:
    found = await slots(scene.integration, limit=50, to="2026-11-17")
    appointment, stored = await _appointment(scene, turn, found[0]["id"])
    slot = next(each for each in found if each["start"] > "2026-11-17")

    async def happened() -> bool:
        now = await scene.upstream.read(f"Appointment/{stored['id']}")
        assert len(now["slot"]) == 1
        return bool(now["start"] != stored["start"])

    return Write("POST", f"/api/appointments/{appointment}/reschedule", {"slotId": slot["id"]}, happened)


async def enrolling(scene: Scene, turn: int) -> Write:
    person = {"firstName": f"Katherine{LETTERS[turn // 26]}{LETTERS[turn % 26]}", "lastName": "Johnson"}

    async def happened() -> bool:
        people = await scene.upstream.search("Patient")
        found = [each for each in people if each["active"] and each["name"][0]["given"][0] == person["firstName"]]
        assert len(found) <= 1, "created twice"
        return len(found) == 1

    return Write("POST", "/api/patients", {**person, "phone": "+1 555 010 0155", "dob": "1978-08-26"}, happened)


async def correcting(scene: Scene, turn: int) -> Write:
    patient = await scene.patient("Grace")
    email = f"grace{turn}@example.com"

    async def happened() -> bool:
        return email in [each["value"] for each in (await scene.upstream.read("Patient/grace"))["telecom"]]

    return Write("PATCH", f"/api/patients/{patient}", {"email": email}, happened)


WRITES: dict[str, Prepare] = {
    "book": booking,
    "cancel": cancelling,
    "confirm": confirming,
    "reschedule": moving,
    "create": enrolling,
    "update": correcting,
}


async def nothing_is_left_over(scene: Scene, write: Write) -> None:
    """Every live appointment has its slots, marked as its own, and no other slot is taken."""
    assert await write.happened()
    live = await scene.upstream.live_appointments()
    taken = [slot["reference"] for each in live for slot in each["slot"]]
    assert len(taken) == len(set(taken))
    busy = await scene.upstream.taken_slots()
    assert set(busy) == set(taken)
    for each in live:
        for slot in each["slot"]:
            assert _claims(busy[slot["reference"]]) <= _claims(each)
    async with scene.world.database.transaction(1) as connection:
        assert await connection.fetchval("SELECT count(*) FROM upstream_write") == 0
        assert await connection.fetchval("SELECT count(*) FROM intent WHERE state = 'executing'") == 0


def _claims(resource: dict[str, Any]) -> set[str]:
    return {each["value"] for each in resource.get("identifier", []) if each["system"] == "urn:frontdesk:claim"}
