"""Several callers want the same slot: one gets it, over any number of nodes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from frontdesk.store.database import Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.fhir.calls import CHEN, booking, challenged
from tests.fhir.door import Answer, Backend, Request
from tests.fhir.practice import Upstream, fhir_world
from tests.support.shared_database import new_database, opened
from tests.support.world import World, book, patient_id, slots


class Meeting:
    """A server that changes slots only once two callers want to: both have seen what they want as free."""

    def __init__(self, inner: Backend | None) -> None:
        assert inner is not None
        self._inner = inner
        self._met = asyncio.Barrier(2)
        self.slot_changes = 0

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "PUT" and target.startswith("/Slot/"):
            self.slot_changes += 1
            if self.slot_changes <= 2:
                async with asyncio.timeout(30):
                    await self._met.wait()
        return await self._inner.answer(method, target, headers, body)


@pytest.fixture(params=["node", "installation"])
async def beside(
    request: pytest.FixtureRequest,
    database: Database,
    cluster: EmbeddedPostgres,
    template: str,
    tmp_path: Path,
    upstream: Upstream,
) -> AsyncIterator[World]:
    """Another service before the same FHIR server: a node on the same database, or an installation of its own."""
    async with AsyncExitStack() as stack:
        if request.param == "installation":
            dsn = await stack.enter_async_context(new_database(cluster, template))
            database = await stack.enter_async_context(opened(dsn))
            tmp_path /= "elsewhere"
            tmp_path.mkdir()
        yield await stack.enter_async_context(fhir_world(database, tmp_path, upstream.door))


async def test_two_services_cannot_book_one_slot(fhir: World, beside: World, upstream: Upstream) -> None:
    """Nothing but the version of the slot stands between them."""
    callers = [await world.client(grant="integration") for world in (fhir, beside)]
    bodies = [await booking(caller, name) for caller, name in zip(callers, ("Ada", "Alan"), strict=True)]
    upstream.door.backend = meeting = Meeting(upstream.door.backend)
    answers = await asyncio.gather(
        *(caller.post("/api/appointments", json=body) for caller, body in zip(callers, bodies, strict=True))
    )
    assert meeting.slot_changes >= 2
    assert sorted(answer.json().get("code", "booked") for answer in answers) == ["booked", "slot_unavailable"]
    [stored] = await upstream.live_appointments()
    assert stored["slot"] == [{"reference": f"{CHEN}540"}]
    assert await upstream.busy_slots() == {f"{CHEN}540"}


async def test_a_slot_that_staff_took_a_moment_ago_is_not_booked(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    slot = await upstream.read(f"{CHEN}540")

    async def somebody_is_faster(request: Request, answer: Answer) -> Answer:
        if request.method == "GET" and "/Slot?" in request.target and slot["meta"]["versionId"] in answer.body.decode():
            upstream.door.rewrite = None
            await upstream.put({**slot, "status": "busy"})
        return answer

    upstream.door.rewrite = somebody_is_faster
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_unavailable")
    assert await upstream.live_appointments() == []
    assert "identifier" not in await upstream.read(f"{CHEN}540")


async def test_simultaneous_confirmations_book_once_and_get_the_same_answer(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    answers = await asyncio.gather(*(agent.post("/api/appointments", json=body) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {201}, [answer.text for answer in answers]
    assert len({answer.json()["appointmentId"] for answer in answers}) == 1
    assert len(await upstream.live_appointments()) == 1


async def test_of_many_callers_one_gets_the_slot(fhir: World, upstream: Upstream) -> None:
    integration = await fhir.client(grant="integration")
    people = [await patient_id(integration, name) for name in ("Ada", "Alan", "José")]
    slot = (await slots(integration))[0]["id"]
    bodies = [{"patientId": person, "slotId": slot} for person in people]
    answers = await asyncio.gather(*(integration.post("/api/appointments", json=body) for body in bodies))
    codes = sorted(answer.json().get("code", "booked") for answer in answers)
    assert codes == ["booked", "slot_unavailable", "slot_unavailable"]
    assert len(await upstream.live_appointments()) == 1


async def test_a_patient_is_not_booked_twice_at_once(fhir: World, upstream: Upstream) -> None:
    """With two providers at the same time: no slot stands between the two bookings."""
    integration = await fhir.client(grant="integration")
    bodies = [await booking(integration, visitTypeId=22, procedureId=103, providerId=provider) for provider in (10, 11)]
    answers = await asyncio.gather(*(integration.post("/api/appointments", json=body) for body in bodies))
    codes = sorted(answer.json().get("code", "booked") for answer in answers)
    assert codes in (["booked", "upstream_unavailable"], ["booked", "validation"])
    assert len(await upstream.live_appointments()) == 1


async def test_an_integration_books_once_under_a_key(fhir: World, upstream: Upstream) -> None:
    integration = await fhir.client(grant="integration")
    body = await booking(integration)
    headers = {"Idempotency-Key": "one"}
    first = await integration.post("/api/appointments", json=body, headers=headers)
    again = await integration.post("/api/appointments", json=body, headers=headers)
    assert (first.status_code, again.json()) == (201, first.json())
    another = {**body, "slotId": (await slots(integration))[0]["id"]}
    assert another != body
    other = await integration.post("/api/appointments", json=another, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert len(await upstream.live_appointments()) == 1


async def test_an_appointment_that_changed_meanwhile_is_judged_anew(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}/confirm"
    body = await challenged(agent, path, {})
    [stored] = await upstream.live_appointments()

    async def meanwhile(request: Request, answer: Answer) -> Answer:
        if request.method == "GET" and "/Appointment/" in request.target:
            upstream.door.rewrite = None
            await upstream.put({**stored, "status": "cancelled"})
        return answer

    upstream.door.rewrite = meanwhile
    refused = await agent.post(path, json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["detail"] == "The appointment is already cancelled."
