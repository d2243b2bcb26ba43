"""The writes of a native practice as tests of cuts make them: how each is prepared, and how often it happened."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx

from tests.doors import mcp_speech
from tests.support.world import patient_id, slots

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Write:
    """`happened` is a query that says how often the change is in the database."""

    operation: str
    method: str
    path: str
    body: Mapping[str, Any]
    happened: str
    arguments: Mapping[str, Any]  # those of the path, for a tool call


Prepare = Callable[[httpx.AsyncClient, int], Awaitable[Write]]


async def booking(client: httpx.AsyncClient, _turn: int) -> Write:
    body = {"patientId": await patient_id(client), "slotId": (await slots(client, limit=1))[0]["id"]}
    return Write("book_appointment", "POST", "/api/appointments", body, _appointments("status = 'booked'"), {})


async def _appointment(client: httpx.AsyncClient) -> str:
    body = (await booking(client, 0)).body
    answer = await client.post("/api/appointments", json=body)
    assert answer.status_code == 201, answer.text
    booked: str = answer.json()["appointmentId"]
    return booked


async def _acting(client: httpx.AsyncClient, operation: str, verb: str, body: dict[str, Any], happened: str) -> Write:
    appointment = await _appointment(client)
    path = f"/api/appointments/{appointment}/{verb}"
    live = f"{happened} AND appointment_id = '{appointment}'"
    return Write(operation, "POST", path, body, _appointments(live), {"appointmentId": appointment})


async def cancelling(client: httpx.AsyncClient, _turn: int) -> Write:
    return await _acting(client, "cancel_appointment", "cancel", {"reason": "Travelling"}, "status = 'cancelled'")


async def confirming(client: httpx.AsyncClient, _turn: int) -> Write:
    return await _acting(client, "confirm_attendance", "confirm", {}, "status = 'confirmed'")


async def moving(client: httpx.AsyncClient, _turn: int) -> Write:
    slot = (await slots(client, limit=9))[8]
    changed = f"starts_at = '{slot['start']}'"
    return await _acting(client, "reschedule_appointment", "reschedule", {"slotId": slot["id"]}, changed)


async def enrolling(_client: httpx.AsyncClient, turn: int) -> Write:
    first = "Katherine" + LETTERS[turn // 26 // 26 % 26] + LETTERS[turn // 26 % 26] + LETTERS[turn % 26]
    body = {"firstName": first, "lastName": "Johnson", "phone": "+1 555 010 0155", "dob": "1978-08-26"}
    happened = f"SELECT count(*) FROM patient WHERE practice_id = 1 AND first_name = '{first}'"
    return Write("create_patient", "POST", "/api/patients", body, happened, {})


async def correcting(client: httpx.AsyncClient, turn: int) -> Write:
    patient, email = await patient_id(client, "Grace"), f"grace{turn}@example.com"
    happened = f"SELECT count(*) FROM patient WHERE practice_id = 1 AND email = '{email}'"
    path = f"/api/patients/{patient}"
    return Write("update_patient", "PATCH", path, {"email": email}, happened, {"patientId": patient})


def _appointments(condition: str) -> str:
    return f"SELECT count(*) FROM appointment WHERE practice_id = 1 AND {condition}"


WRITES: dict[str, Prepare] = {
    "book": booking,
    "cancel": cancelling,
    "confirm": confirming,
    "reschedule": moving,
    "create": enrolling,
    "update": correcting,
}


LOST = "lost"


@dataclass(frozen=True)
class Reply:
    """What a caller learns: `done` with the result, the code of a problem, or that the answer is lost."""

    kind: str
    document: Mapping[str, Any]


async def over_rest(client: httpx.AsyncClient, write: Write, token: str | None, key: str | None = None) -> Reply:
    body = dict(write.body) if token is None else {**write.body, "confirmationToken": token}
    headers = {} if key is None else {"Idempotency-Key": key}
    try:
        answer = await client.request(write.method, write.path, json=body, headers=headers)
    except httpx.TransportError:
        return Reply(LOST, {})
    document = answer.json()
    return Reply("done" if answer.status_code < 300 else document["code"], document)


async def over_mcp(client: httpx.AsyncClient, write: Write, token: str | None, key: str | None = None) -> Reply:
    arguments = {**write.arguments, **write.body, **({} if token is None else {"confirmationToken": token})}
    params: dict[str, Any] = {"name": write.operation, "arguments": arguments}
    if key is not None:
        params["_meta"] = {"idempotencyKey": key}
    try:
        answer = await mcp_speech.send(client, "tools/call", params)
    except httpx.TransportError:
        return Reply(LOST, {})
    if answer.status_code != 200:  # refused before it was a tool call, as when it cannot be counted
        return Reply(answer.json()["code"], answer.json())
    document = mcp_speech.checked(answer, "tools/call")["structuredContent"]
    return Reply(document.get("code", "done"), document)


@dataclass(frozen=True)
class Marks:
    """Where the audit trail and the outbox ended before a call."""

    records: int
    events: int

    @classmethod
    async def now(cls, owner: asyncpg.Connection) -> "Marks":
        row = await owner.fetchrow(
            """SELECT (SELECT coalesce(max(record_id), 0) FROM audit_record),
                      (SELECT coalesce(max(event_id), 0) FROM outbox)"""
        )
        return cls(*row)

    async def outcomes(self, owner: asyncpg.Connection, operation: str) -> list[str]:
        sql = "SELECT outcome FROM audit_record WHERE record_id > $1 AND operation = $2 ORDER BY record_id"
        return [row["outcome"] for row in await owner.fetch(sql, self.records, operation)]

    async def announced(self, owner: asyncpg.Connection) -> int:
        found: int = await owner.fetchval("SELECT count(*) FROM outbox WHERE event_id > $1", self.events)
        return found
