"""The steady load of a soak: a few callers that search, book, move, confirm and cancel over both doors."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

import httpx

from frontdesk.access.clients.records import AccessLimits, add_client
from frontdesk.access.clients.scopes import SCOPES
from tests.doors import mcp_speech
from tests.security.real_server import RealServer

CALLS_PER_SECOND = 30  # of all callers together
PATIENTS = 2000
_ACTORS = 4
_UNLIMITED = AccessLimits(0, 0, 0, writes_per_hour=0, upcoming_per_patient=0)
_RENEW_SECONDS = 1800.0
_FLOOR_SECONDS = 0.2  # between two calls
_VISIT = {"locationId": 1, "visitTypeId": 22, "procedureId": 103}
_EXPECTED = {200, 201, 428}
_CODES = {"slot_unavailable"}  # another caller was faster

# A practice with a past, as most have: the plans of an empty one say nothing.
HISTORY = f"""
INSERT INTO frontdesk.patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone,
    phone_digits, email, seen, created_at, updated_at)
SELECT 1, 'pat_' || lpad(n::text, 22, '0'), 1000 + n, 'Person' || n, 'Soak', 'person' || n || ' soak',
    date '1980-01-01' + n, '+1 555 010 0100', '15550100100', NULL, true, now(), now()
FROM generate_series(1, {PATIENTS}) n;
INSERT INTO frontdesk.appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id,
    procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
SELECT 1, 'apt_' || lpad(n::text, 22, '0'), 'pat_' || lpad((1 + n % {PATIENTS})::text, 22, '0'), 10, 1, 22, 103, 1,
    starts, starts + interval '15 minutes', starts + interval '15 minutes', 'completed', 'soak', now(), now()
FROM generate_series(1, {10 * PATIENTS}) n, LATERAL (SELECT current_date - n * interval '30 minutes' AS starts) t;
ANALYZE;
"""


@dataclass
class Actor:
    """One caller: it books, moves, confirms and cancels one appointment after the other, each for another patient."""

    client: httpx.AsyncClient
    client_id: str
    secret: str
    patients: Iterator[int]
    patient: str = ""
    renewed_at: float = float("-inf")

    async def renew(self) -> None:
        if time.monotonic() - self.renewed_at > _RENEW_SECONDS:
            self.client.headers.pop("Authorization", None)  # two ways to authenticate would be refused
            form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.secret}
            answer = (await self.client.post("/oauth/token", data=form)).raise_for_status()
            self.client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
            self.renewed_at = time.monotonic()


@dataclass
class Load:
    """`unexpected` counts answers that a healthy service does not give. `floor` is what the shortest call takes."""

    actors: list[Actor]
    idle: httpx.AsyncClient
    unexpected: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)

    @classmethod
    async def prepare(cls, server: RealServer) -> "Load":
        actors = []
        for number in range(_ACTORS):
            record, secret = await add_client(
                server.service.database, server.service.ring, practice="harbor", name=f"agent {number}", grant="agent",
                scopes=SCOPES, per_minute=1_000_000, quota=10**9, access_limits=_UNLIMITED,
            )  # fmt: skip
            patients = cycle(range(1 + number, PATIENTS + 1, _ACTORS))  # all, so that no history grows long
            actors.append(Actor(server.http(), record.client_id, secret, patients))
        return cls(actors, server.http())

    async def run(self, seconds: float) -> list[float]:
        """The seconds that each call took."""
        self.latencies, self.floor = [], []
        until = time.monotonic() + seconds
        await asyncio.gather(self._measure_floor(until), *(self._act(actor, until) for actor in self.actors))
        return self.latencies

    async def _measure_floor(self, until: float) -> None:
        """Calls that need no database: what they lose, the machine took."""
        while (began := time.monotonic()) < until:
            (await self.idle.get("/healthz")).raise_for_status()
            self.floor.append(time.monotonic() - began)
            await asyncio.sleep(_FLOOR_SECONDS)

    async def _act(self, actor: Actor, until: float) -> None:
        for day in cycle(range(2, 60)):
            if time.monotonic() >= until:
                return
            await actor.renew()
            actor.patient = f"pat_{next(actor.patients):022}"
            await self._one_appointment(actor, datetime.now(UTC).date() + timedelta(days=day))

    async def _one_appointment(self, actor: Actor, day: Any) -> None:
        found: list[dict[str, Any]] = []
        for provider in (10, 11):
            query = {**_VISIT, "providerId": provider, "from": str(day), "to": str(day + timedelta(days=5))}
            found += (await self._call(actor, "GET", "/api/slots", params=query)).get("items", [])
        if len(found) < 2:
            return
        at = hash((actor.patient, day)) % (len(found) - 1)
        body = {"patientId": actor.patient, "slotId": found[at]["id"]}
        booked = (await self._confirmed(actor, "/api/appointments", body)).get("appointmentId")
        if booked is None:
            return
        await self._call(actor, "GET", f"/api/appointments/{booked}")
        await self._call(actor, "GET", "/api/appointments", params={"patientId": actor.patient})
        await self._confirmed(actor, f"/api/appointments/{booked}/reschedule", {"slotId": found[at + 1]["id"]})
        await self._confirmed(actor, f"/api/appointments/{booked}/confirm", {})
        await self._tool(actor, "get_patient", patientId=actor.patient)
        await self._confirmed(actor, f"/api/appointments/{booked}/cancel", {"reason": "Soaking"})

    async def _confirmed(self, actor: Actor, path: str, body: dict[str, Any]) -> dict[str, Any]:
        token = (await self._call(actor, "POST", path, json=body)).get("confirmationToken")
        if token is None:
            return {}
        return await self._call(actor, "POST", path, json={**body, "confirmationToken": token})

    async def _tool(self, actor: Actor, name: str, **arguments: Any) -> None:
        message = mcp_speech.request("tools/call", {"name": name, "arguments": arguments})
        headers = mcp_speech.headers(message, mcp_speech.HANDSHAKE[-1])
        began = time.monotonic()
        answer = await actor.client.post("/mcp", json=message, headers=headers)
        self._count(began, answer.status_code, "isError" if '"isError":true' in answer.text else "")
        await self._pause(began)

    async def _call(self, actor: Actor, method: str, path: str, **options: Any) -> dict[str, Any]:
        began = time.monotonic()
        answer = await actor.client.request(method, path, **options)
        document: dict[str, Any] = answer.json()
        self._count(began, answer.status_code, document.get("code", ""))
        await self._pause(began)
        return document

    def _count(self, began: float, status: int, code: str) -> None:
        self.latencies.append(time.monotonic() - began)
        if status not in _EXPECTED and code not in _CODES:
            self.unexpected[f"{status} {code}"] += 1

    async def _pause(self, began: float) -> None:
        await asyncio.sleep(max(0.0, began + len(self.actors) / CALLS_PER_SECOND - time.monotonic()))
