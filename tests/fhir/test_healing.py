"""What was left open while a FHIR server was away is settled soon after it is back, and the server is not hammered."""

import json
from typing import Any

import httpx
import pytest

from frontdesk.store.practices import practice_id_of
from frontdesk.systems.fhir.writing.reconciler import PAUSE_SECONDS
from tests.fhir.calls import CHEN, booking, challenged, search
from tests.fhir.door import Fault, Request
from tests.fhir.practice import Upstream, UsageBucket, forgive
from tests.support.world import World, book, patient_id, slots

OUTAGE_SECONDS, HEALED_SECONDS = 300, 15
MAX_REQUESTS = OUTAGE_SECONDS // 6


class Hours:
    """Time that passes for the reconciler and the breakers together."""

    def __init__(self, world: World, breakers: UsageBucket) -> None:
        self._world, self._breakers = world, breakers

    async def tick(self) -> None:
        self._world.clock.advance(seconds=PAUSE_SECONDS)
        self._breakers.advance(PAUSE_SECONDS)
        practice_id = await practice_id_of(self._world.database, "harbor")
        assert practice_id is not None
        await self._world.service.fhir.reconciler.settle(practice_id)

    async def pass_by(self, seconds: float) -> None:
        for _ in range(int(seconds / PAUSE_SECONDS)):
            await self.tick()

    async def until_settled(self, agent: httpx.AsyncClient, writes: list[tuple[str, dict[str, Any]]]) -> float:
        """Seconds until each write has been settled, seen by a resend."""
        seconds = 0.0
        waiting = list(writes)
        while waiting:
            await self.tick()
            seconds += PAUSE_SECONDS
            answers = [(write, await agent.post(write[0], json=write[1])) for write in waiting]
            assert {answer.status_code for _, answer in answers} <= {200, 201, 409}
            waiting = [write for write, answer in answers if answer.status_code == 409]
            assert seconds < 120, "never settled"
        return seconds


def _lose(upstream: Upstream, *, executed: bool) -> None:
    """The next write of an appointment is cut off, and the server fails from then on."""

    def harm(request: Request) -> Fault | None:
        if request.is_write and "/Appointment" in request.target:
            return "cut_after" if executed else "cut_before"
        lost = any(each.is_write and "/Appointment" in each.target for each in upstream.door.seen)
        return "error_before" if lost else None

    upstream.door.reset()
    upstream.door.harm = harm


@pytest.mark.parametrize("executed", [True, False], ids=["executed", "never arrived"])
async def test_open_writes_are_settled_within_seconds_after_the_server_is_back(
    fhir: World, upstream: Upstream, executed: bool
) -> None:
    agent = await fhir.client()
    cancel = f"/api/appointments/{await book(agent, 'Alan')}/cancel"
    open_slots = await slots(agent, limit=50)
    ada = await patient_id(agent)
    bodies = [{"patientId": ada, "slotId": open_slots[index]["id"]} for index in range(5)]
    writes = [("/api/appointments", await challenged(agent, "/api/appointments", body)) for body in bodies]
    writes.append((cancel, await challenged(agent, cancel, {})))
    breakers = forgive(fhir)
    for path, body in writes:
        _lose(upstream, executed=executed)
        lost = await agent.post(path, json=body)
        assert lost.json()["code"] == "confirmation_incomplete", lost.text
        breakers = forgive(fhir)
    hours = Hours(fhir, breakers)
    upstream.door.reset()
    upstream.door.harm = lambda request: "error_before"
    await hours.pass_by(OUTAGE_SECONDS)
    assert 10 < len(upstream.door.seen) < MAX_REQUESTS, "it is tried again and again, and seldom"
    upstream.door.reset()
    assert await hours.until_settled(agent, writes) <= HEALED_SECONDS
    assert len(await upstream.live_appointments()) == 5


async def test_a_short_outage_is_over_within_seconds(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    _lose(upstream, executed=False)
    lost = await agent.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    hours = Hours(fhir, forgive(fhir))
    assert await hours.until_settled(agent, [("/api/appointments", body)]) <= HEALED_SECONDS


async def test_any_answer_of_the_server_makes_open_writes_due(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    _lose(upstream, executed=True)
    lost = await agent.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    breakers = forgive(fhir)
    hours = Hours(fhir, breakers)
    upstream.door.harm = lambda request: "error_before"
    await hours.pass_by(60)
    upstream.door.reset()
    breakers.advance(10)
    await search(agent)  # one of its requests tries, the others are not sent
    assert await search(agent) == 200
    assert await hours.until_settled(agent, [("/api/appointments", body)]) == PAUSE_SECONDS


async def test_a_change_that_was_ruled_out_cannot_arrive_any_more(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    cancel = f"/api/appointments/{await book(agent)}/cancel"
    body = await challenged(agent, cancel, {})
    _lose(upstream, executed=False)
    lost = await agent.post(cancel, json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    [late] = [request for request in upstream.door.seen if request.method == "PUT"]
    upstream.door.reset()
    hours = Hours(fhir, forgive(fhir))
    await hours.pass_by(HEALED_SECONDS)
    assert upstream.door.backend is not None
    arrived = await upstream.door.backend.answer("PUT", late.target.removeprefix("/fhir"), late.headers, late.body)
    assert arrived.status == 412, json.loads(arrived.body)
    assert len(await upstream.live_appointments()) == 1
    assert await upstream.busy_slots() == {f"{CHEN}540"}
    assert (await agent.post(cancel, json=body)).status_code == 200, "the token stays valid"
    assert await upstream.busy_slots() == set()


async def test_a_record_that_is_created_after_it_was_ruled_out_is_undone(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    _lose(upstream, executed=False)
    lost = await agent.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    [late] = [request for request in upstream.door.seen if request.method == "POST"]
    upstream.door.reset()
    hours = Hours(fhir, forgive(fhir))
    await hours.pass_by(HEALED_SECONDS)
    assert await upstream.busy_slots() == set()
    assert upstream.door.backend is not None
    await upstream.door.backend.answer("POST", "/Appointment", late.headers, late.body)
    assert len(await upstream.live_appointments()) == 1
    await hours.pass_by(HEALED_SECONDS)
    assert await upstream.live_appointments() == []
    assert (await agent.post("/api/appointments", json=body)).status_code == 201, "the token stays valid"
