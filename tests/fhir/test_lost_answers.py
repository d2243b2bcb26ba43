"""Writes whose answer was lost: found again, recorded once, and kept without what they said about a person."""

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import httpx
import pytest

from frontdesk.systems.fhir.records import PendingWrite
from frontdesk.systems.fhir.resources.elements import CLAIMS, INTENTS, Resource
from frontdesk.systems.fhir.transport.client import FhirClient
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.writing.releases import Releases
from frontdesk.systems.fhir.writing.writes import Writer
from tests.fhir.calls import CHEN, ZAPHOD, booking, challenged
from tests.fhir.misbehaving import (
    LateFirstAttempt,
    lose_answers,
    nothing_after_a_write,
)
from tests.fhir.practice import Upstream, settle, unmap
from tests.support.world import World, book, confirmed, slots


async def test_an_earlier_attempt_that_arrives_late_is_found_and_not_doubled(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.backend = LateFirstAttempt(upstream.door.backend)
    failed = await agent.post("/api/appointments", json=body)
    assert (failed.status_code, failed.json()["code"]) == (502, "upstream_unavailable")
    booked = await agent.post("/api/appointments", json=body)
    assert booked.status_code == 201, booked.text
    assert len(await upstream.live_appointments()) == 1
    await settle(fhir)
    assert len(await upstream.live_appointments()) == 1
    assert await upstream.busy_slots() == {f"{CHEN}540"}
    path = f"/api/appointments/{booked.json()['appointmentId']}/cancel"
    assert (await confirmed(agent, "POST", path, {})).status_code == 200
    assert await upstream.busy_slots() == set()


async def test_a_write_on_its_way_is_stored_without_the_person(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    cancelled, moved = await book(agent), await book(agent, "Alan")
    [stored] = [each for each in await upstream.live_appointments() if each["start"].endswith("14:15:00Z")]
    stored["participant"][0]["actor"]["display"] = "Alan Turing"
    await upstream.put({**stored, "comment": "Zaphod called", "description": "Beeblebrox"})
    writes: list[tuple[str, dict[str, str]]] = [
        ("/api/patients", ZAPHOD),
        (f"/api/appointments/{cancelled}/cancel", {"reason": "Zaphod is ill"}),
        (f"/api/appointments/{moved}/reschedule", {"slotId": (await slots(agent))[5]["id"]}),
    ]
    for path, body in writes:
        write = await challenged(agent, path, body)
        upstream.door.reset()
        kind = "Patient" if path == "/api/patients" else "Appointment"
        upstream.door.harm = nothing_after_a_write(upstream, kind)
        lost = await agent.post(path, json=write)
        assert lost.json()["code"] == "confirmation_incomplete"
        upstream.door.reset()
    async with fhir.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT * FROM upstream_write")
    assert len(rows) == len(writes)
    text = str([dict(row) for row in rows])
    # Whole words, where the random ids in it could spell them by chance.
    for mark in ("Zaphod", "Beeblebrox", "5550100155", r"\b0155\b", r"\b1978\b", r"\bAlan\b", "Turing"):
        assert not re.search(mark, text), mark


async def test_what_a_lost_write_turned_out_to_be_is_recorded_once(fhir: World, upstream: Upstream) -> None:
    integration = await fhir.client(grant="integration")
    body, headers = await booking(integration), {"Idempotency-Key": "k"}
    upstream.door.harm = lose_answers
    for _ in range(2):
        lost = await integration.post("/api/appointments", json=body, headers=headers)
        assert (lost.status_code, lost.json()["code"]) == (409, "confirmation_incomplete")
    upstream.door.reset()
    await asyncio.gather(settle(fhir), settle(fhir))  # two nodes
    resent = await integration.post("/api/appointments", json=body, headers=headers)
    assert resent.status_code == 201
    found = (await integration.get(f"/api/appointments/{resent.json()['appointmentId']}")).json()
    assert found["start"] == "2026-11-16T09:00:00-05:00"
    async with fhir.database.transaction(1) as connection:
        events = await connection.fetchval("SELECT count(*) FROM outbox")
        outcomes = await connection.fetch("SELECT outcome FROM audit_record WHERE operation = 'book_appointment'")
    assert events == 1
    assert sorted(row["outcome"] for row in outcomes) == ["confirmation_incomplete", "executed"]


async def test_without_token_and_key_a_lost_write_is_settled_too(fhir: World, upstream: Upstream) -> None:
    integration = await fhir.client(grant="integration")
    body = await booking(integration)
    upstream.door.harm = lose_answers
    lost = await integration.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    await settle(fhir)
    [listed] = (await integration.get("/api/appointments", params={"patientId": body["patientId"]})).json()["items"]
    assert listed["start"] == "2026-11-16T09:00:00-05:00"


async def lost_booking(agent: httpx.AsyncClient, upstream: Upstream, name: str = "Ada") -> dict[str, str]:
    """The confirmation of a booking that was executed and not answered."""
    confirmation = await challenged(agent, "/api/appointments", await booking(agent, name))
    upstream.door.reset()
    upstream.door.harm = nothing_after_a_write(upstream, "Appointment")
    lost = await agent.post("/api/appointments", json=confirmation)
    assert lost.json()["code"] == "confirmation_incomplete", lost.text
    upstream.door.reset()
    return confirmation


async def test_a_booking_is_settled_although_its_provider_is_no_longer_mapped(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    confirmation = await lost_booking(agent, upstream)
    await unmap(fhir, "10")
    await settle(fhir)
    resent = await agent.post("/api/appointments", json=confirmation)
    assert resent.status_code == 201, resent.text


async def test_a_write_that_cannot_be_settled_keeps_no_other_from_it(
    fhir: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await fhir.client()
    await lost_booking(agent, upstream)
    await lost_booking(agent, upstream, "Alan")
    settled, failing = Writer.settle, list[str]()

    async def fails_for_the_first(writer: Writer, now: datetime, *, final: bool) -> Any:
        failing.append(writer._write.id)
        if writer._write.id == failing[0]:
            raise RuntimeError
        return await settled(writer, now, final=final)

    monkeypatch.setattr(Writer, "settle", fails_for_the_first)
    await settle(fhir)
    async with fhir.database.transaction(1) as connection:
        left = await connection.fetch("SELECT write_id FROM upstream_write")
    assert [row["write_id"] for row in left] == failing[:1]


class Appointments:
    """A client of a server with these appointments."""

    def __init__(self, *found: Resource) -> None:
        self.found, self.updated = found, list[Resource]()

    async def search(self, _deadline: Deadline, _kind: str, _parameters: Any) -> Sequence[Resource]:
        return self.found

    async def update(self, _deadline: Deadline, resource: Resource) -> None:
        self.updated.append(resource)


def appointment(number: str, write: str) -> Resource:
    identifiers = [{"system": INTENTS, "value": "intent"}, {"system": CLAIMS, "value": write}]
    return {"resourceType": "Appointment", "id": number, "status": "booked", "identifier": identifiers}


async def test_a_late_booking_is_undone_beside_a_later_one_with_the_same_key() -> None:
    write = PendingWrite("ours", "intent", "", "releasing", "book", {}, datetime.now(UTC))
    later, late, watch = appointment("1", "another"), appointment("2", "ours"), [{"watch": "Appointment"}]

    async def freed(*found: Resource) -> tuple[list[str], Sequence[Any]]:
        client = Appointments(*found)
        left = await Releases(cast(FhirClient, client), Deadline(30), write).free(watch, final=False)
        return [each["id"] for each in client.updated], left

    assert await freed(later, late) == (["2"], [])
    assert await freed(later) == ([], watch), "the late one may still arrive"
