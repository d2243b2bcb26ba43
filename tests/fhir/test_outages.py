"""A server that is slow, dead or rude: bounded, told as documented, nobody else's trouble, and over when it is over."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from frontdesk.systems.fhir import breaker
from tests.fhir.door import Door, Fault
from tests.fhir.fake import Fake
from tests.fhir.practice import Upstream, fhir_world, file_text, settle
from tests.world import MONDAY, PRACTICE, World, book, confirmed, patient_id, slots

SEARCH = {
    "providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101,
    "from": MONDAY.isoformat(), "to": MONDAY.isoformat(),
}  # fmt: skip


async def _search(client: httpx.AsyncClient) -> tuple[int, float]:
    began = time.monotonic()
    answer = await client.get("/api/slots", params=SEARCH)
    return answer.status_code, time.monotonic() - began


@pytest.mark.parametrize("fault", ["delay", "drip", "cut_before", "half", "garbage", "error_before", "gateway", "busy"])
async def test_a_read_that_fails_is_upstream_unavailable_in_bounded_time(
    database: Database, tmp_path: Path, upstream: Upstream, fault: Fault
) -> None:
    async with fhir_world(database, tmp_path, upstream.door, timeoutSeconds=1) as world:
        agent = await world.client()
        assert (await _search(agent))[0] == 200
        upstream.door.harm = lambda request: fault
        began = time.monotonic()
        answer = await agent.get("/api/slots", params=SEARCH)
        assert (answer.status_code, answer.json()["code"]) == (502, "upstream_unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert time.monotonic() - began < 2


async def test_a_refused_connection_leaves_the_token_valid(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    await upstream.door.close()
    refused = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    await upstream.door.open()
    booked = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert booked.status_code == 201


async def test_the_servers_wish_to_be_left_alone_is_respected(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    await slots(agent)
    upstream.door.reset({0: "busy"})
    answer = await agent.get("/api/slots", params=SEARCH)
    assert (answer.status_code, answer.headers["retry-after"]) == (502, "1")
    assert (await _search(agent))[0] == 502
    assert len(upstream.door.seen) == 1, "nobody asked in between"
    await asyncio.sleep(1.1)
    assert (await _search(agent))[0] == 200


async def test_the_breaker_opens_and_heals(
    database: Database, tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "FIRST_PAUSE_SECONDS", 0.3)
    monkeypatch.setattr(breaker, "LONGEST_PAUSE_SECONDS", 0.3)
    async with fhir_world(database, tmp_path, upstream.door, timeoutSeconds=1) as world:
        agent = await world.client()
        assert (await _search(agent))[0] == 200
        upstream.door.reset()
        upstream.door.harm = lambda request: "error_before"
        for _ in range(breaker.FAILURES + 3):
            assert (await _search(agent))[0] == 502
        assert len(upstream.door.seen) == breaker.FAILURES
        upstream.door.reset()
        await asyncio.sleep(0.35)
        assert (await _search(agent))[0] == 200
        assert (await _search(agent))[0] == 200


async def test_at_most_so_many_requests_are_under_way(database: Database, tmp_path: Path, upstream: Upstream) -> None:
    async with fhir_world(database, tmp_path, upstream.door, maxConcurrent=3) as world:
        agent = await world.client()
        await slots(agent)
        upstream.door.most_under_way = 0
        answers = await asyncio.gather(*(_search(agent) for _ in range(12)))
        assert {status for status, _ in answers} == {200}
        assert 0 < upstream.door.most_under_way <= 3


@pytest.fixture
async def healthy() -> AsyncIterator[Door]:
    door = Door()
    await door.open()
    door.backend = Fake(door.address)
    await Upstream(door).seed()
    yield door
    await door.close()


async def test_one_practices_dead_server_never_slows_another(fhir: World, upstream: Upstream, healthy: Door) -> None:
    await import_practice(fhir.database, parse(PRACTICE.replace("SLUG", "native")), fhir.clock.now)
    await import_practice(fhir.database, parse(file_text("healthy", healthy.address)), fhir.clock.now)
    sick, native, well = await fhir.client(), await fhir.client("native"), await fhir.client("healthy")
    for client in (sick, native, well):
        assert (await _search(client))[0] == 200
    calm = [await _search(client) for client in (native, well) for _ in range(5)]

    upstream.door.slow = 30
    upstream.door.harm = lambda request: "delay"
    stuck = [asyncio.create_task(_search(sick)) for _ in range(60)]
    await asyncio.sleep(0.3)
    beside = [await _search(client) for client in (native, well) for _ in range(5)]
    booked = await book(native)
    assert booked
    assert {status for status, _ in beside} == {200}
    assert max(seconds for _, seconds in beside) < max(seconds for _, seconds in calm) + 0.5
    assert not any(task.done() and task.result()[0] == 200 for task in stuck)
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)


async def test_the_reconciler_settles_by_itself(
    fhir: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.systems.fhir.reconciler.PAUSE_SECONDS", 0.05)
    agent = await fhir.client()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    upstream.door.harm = lambda request: (
        "cut_after" if request.target == "/fhir/Appointment" or "identifier=" in request.target else None
    )
    lost = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert lost.json()["code"] == "confirmation_incomplete"
    task = asyncio.create_task(fhir.service.fhir.reconciler.keep_settling())
    try:
        await asyncio.sleep(0.3)  # the server still does not answer
        upstream.door.reset()
        for _ in range(100):
            fhir.clock.advance(seconds=2)
            answer = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
            if answer.status_code == 201:
                break
            await asyncio.sleep(0.05)
        assert answer.status_code == 201, answer.text
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(await upstream.live_appointments()) == 1


async def test_a_slot_that_could_not_be_given_back_is_given_back_later(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    upstream.door.harm = lambda request: "error_before" if "/Slot/" in request.target else None
    cancelled = await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert cancelled.status_code == 200, "the appointment is cancelled, whatever becomes of its slot"
    assert len(await upstream.busy_slots()) == 1
    upstream.door.reset()
    await settle(fhir)
    assert await upstream.busy_slots() == set()


async def test_nothing_about_a_person_and_no_secret_is_logged(
    database: Database,
    tmp_path: Path,
    upstream: Upstream,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HARBOR_TOKEN", "a-very-secret-token")
    auth = {"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"}
    async with fhir_world(database, tmp_path, upstream.door, auth=auth) as world:
        agent = await world.client()
        person = {"firstName": "Zaphod", "lastName": "Beeblebrox", "phone": "+1 555 010 0155", "dob": "1978-08-26"}
        for fault, letter in ((None, "a"), ("error_before", "b"), ("cut_after", "c"), ("garbage", "d")):
            _harm_writes(upstream.door, fault)
            named = {**person, "lastName": f"Beeblebrox{letter}"}
            token = (await agent.post("/api/patients", json=named)).json()["confirmationToken"]
            await agent.post("/api/patients", json={**named, "confirmationToken": token})
            await agent.post("/api/patients/match", json=named)
        assert upstream.door.seen[-1].headers["authorization"] == "Bearer a-very-secret-token"
    assert caplog.records
    for mark in ("Zaphod", "Beeblebrox", "0155", "1978-08-26", "a-very-secret-token"):
        assert mark not in caplog.text


def _harm_writes(door: Door, fault: Fault | None) -> None:
    door.harm = lambda request: fault if request.is_write else None
