"""Writes whose answer was lost: found again, recorded once, and kept without what they said about a person."""

import asyncio
import re

from tests.fhir.calls import CHEN, ZAPHOD, booking, challenged
from tests.fhir.misbehaving import (
    LateFirstAttempt,
    lose_answers,
    nothing_after_a_write,
)
from tests.fhir.practice import Upstream, settle
from tests.world import World, book, confirmed, slots


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
