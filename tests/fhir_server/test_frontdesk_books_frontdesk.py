"""A frontdesk whose practice lives in another frontdesk, and in a chain of them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.operations import NEEDS, OPERATIONS
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.systems.check import check_system
from tests.acceptance.test_booking_flow import test_an_agent_books_in_eight_steps as eight_steps
from tests.fhir.calls import ZAPHOD, booking, challenged
from tests.fhir.door import FAULTS, Fault, Request
from tests.fhir.practice import extend_timeouts, give, settle
from tests.fhir.test_operations import test_an_operation_works as an_operation_works
from tests.fhir_server.chain import Hop, chain
from tests.support.world import PRACTICE, book, confirmed, patient_id, slots


@pytest.fixture
async def hops(
    request: pytest.FixtureRequest,
    cluster: EmbeddedPostgres,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[list[Hop]]:
    """Two services, or as many hops as a test asks for."""
    extend_timeouts(monkeypatch)
    async with chain(cluster, template, tmp_path, monkeypatch, getattr(request, "param", 1)) as chained:
        yield chained


async def test_an_appointment_is_booked_moved_confirmed_and_cancelled_in_another_frontdesk(hops: list[Hop]) -> None:
    await _lives_through(hops)


@pytest.mark.heavy
async def test_a_check_of_the_practice_finds_that_everything_works(hops: list[Hop]) -> None:
    for _ in range(2):  # the first leaves a patient behind
        top = hops[-1].world
        checked = await check_system(top.database, 1, NEEDS, os.environ, top.clock.now, write=True)
        assert [each for each in checked.findings if each.is_error] == []
        assert "Patient/" in {each.subject: each.detail for each in checked.findings}["left behind"]


@pytest.mark.heavy
async def test_a_check_books_what_is_not_for_existing_patients_only(
    cluster: EmbeddedPostgres, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice = PRACTICE.replace("patientKind: new", "patientKind: existing")
    monkeypatch.setattr("tests.fhir_server.chain.PRACTICE", practice)
    async with chain(cluster, template, tmp_path, monkeypatch, 1) as hops:
        top = hops[-1].world
        checked = await check_system(top.database, 1, NEEDS, os.environ, top.clock.now, write=True)
        assert [each for each in checked.findings if each.is_error] == []


@pytest.mark.heavy
@pytest.mark.parametrize("hops", [10], indirect=True)
async def test_ten_hops_are_one_calendar(hops: list[Hop]) -> None:
    await slots(await hops[-1].world.client())
    for hop in hops:
        give(hop.world, 600)  # a busy machine is no matter here
    await _lives_through(hops)
    assert len(hops[0].door.seen) < 1000, "a hop asks a few questions of its own, not several for each of the hop above"


async def _lives_through(hops: list[Hop]) -> None:
    """Everything that is written at the top happens at the bottom, and the other way round."""
    native, agent = await hops[0].world.client(), await hops[-1].world.client()
    appointment = await book(agent, "Alan")
    assert await _states(native) == {("2026-11-16T09:00:00-05:00", "booked")}
    taken = await slots(agent)
    await book(native, "José")
    assert len(await slots(agent)) == len(taken) - 1
    target = (await slots(agent))[2]
    moved = await confirmed(agent, "POST", f"/api/appointments/{appointment}/reschedule", {"slotId": target["id"]})
    assert moved.status_code == 200, moved.text
    assert (await confirmed(agent, "POST", f"/api/appointments/{appointment}/confirm", {})).status_code == 200
    assert (target["start"], "confirmed") in await _states(native)
    reason = {"reason": "Travelling"}
    assert (await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", reason)).status_code == 200
    assert len([each for each in hops[0].door.seen if each.target.endswith("/$cancel")]) == 1
    read = (await agent.get(f"/api/appointments/{appointment}")).json()
    assert (read["status"], read["cancellationReason"], read["start"]) == ("cancelled", "Travelling", target["start"])
    assert (target["start"], "cancelled") in await _states(native)
    created = (await confirmed(agent, "POST", "/api/patients", ZAPHOD)).json()["patientId"]
    changed = await confirmed(agent, "PATCH", f"/api/patients/{created}", {"email": "zaphod@example.com"})
    assert changed.status_code == 200, changed.text
    [found] = (await native.post("/api/patients/match", json=ZAPHOD)).json()["items"]
    assert (await native.get(f"/api/patients/{found['id']}")).json()["email"] == "zaphod@example.com"
    again = await agent.post("/api/patients", json=ZAPHOD)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


async def test_a_patient_is_found_in_another_frontdesk_whatever_the_name_contains(hops: list[Hop]) -> None:
    native, agent = await hops[0].world.client(grant="integration"), await hops[-1].world.client()
    person = {**ZAPHOD, "lastName": "Beeblebrox, Jr | $1 \\,", "phone": "+1 555 010 0155, 2"}
    assert (await native.post("/api/patients", json=person)).status_code == 201
    found = await agent.post("/api/patients/match", json=person)
    assert (found.status_code, len(found.json()["items"])) == (200, 1)


async def test_a_time_of_another_frontdesk_cannot_be_held(hops: list[Hop]) -> None:
    integration = await hops[-1].world.client(grant="integration")
    open_times = await slots(integration)
    slot = {"reference": f"Appointment/{open_times[0]['id'].removeprefix('slt_').replace('_', '.')}"}
    hold = {
        "resourceType": "Parameters",
        "parameter": [{"name": "appointment-reference", "valueReference": slot}],
    }
    refused = await integration.post("/fhir/R4/Appointment/$hold", json=hold)
    assert (refused.status_code, "retry-after" in refused.headers) == (503, False)
    [found] = refused.json()["issue"]
    assert (found["code"], found["details"]["coding"][0]["code"]) == ("not-supported", "capability_not_supported")
    assert await slots(integration) == open_times
    statement = (await integration.get("/fhir/R4/metadata")).json()["rest"][0]["resource"]
    [operations] = [each["operation"] for each in statement if each["type"] == "Appointment"]
    [documentation] = [each["documentation"] for each in operations if each["name"] == "hold"]
    assert "capability_not_supported" in documentation


async def _states(client: httpx.AsyncClient) -> set[tuple[str, str]]:
    items = (await client.get("/api/appointments")).json()["items"]
    return {(each["start"], each["status"]) for each in items}


@pytest.mark.heavy
async def test_an_agent_books_in_another_frontdesk(hops: list[Hop]) -> None:
    await eight_steps(hops[-1].world)


@pytest.mark.heavy
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_every_operation_works_through_another_frontdesk(hops: list[Hop], operation: Any) -> None:
    await an_operation_works(hops[-1].world, operation)


@pytest.mark.heavy
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_write_happens_once_whatever_becomes_of_its_request(hops: list[Hop], fault: Fault) -> None:
    top, native = hops[-1].world, await hops[0].world.client(grant="integration")
    agent, door = await top.client(), hops[0].door
    door.slow = 2.0
    ada = await patient_id(agent)
    appointment = await book(agent, "Alan")
    paths = f"/api/appointments/{appointment}"
    writes: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/api/appointments", await booking(agent)),
        ("POST", f"{paths}/reschedule", {"slotId": (await slots(agent))[4]["id"]}),
        ("POST", f"{paths}/confirm", {}),
        ("POST", f"{paths}/cancel", {"reason": "Travelling"}),
        ("PATCH", f"/api/patients/{ada}", {"email": "ada@example.com"}),
        ("POST", "/api/patients", ZAPHOD),
    ]
    for method, path, body in writes:
        write = await challenged(agent, path, body, method)
        door.reset()
        door.harm = _once(fault)
        give(top, 1.0 if fault in ("delay", "drip") else 30.0)
        answer = await agent.request(method, path, json=write)
        give(top, 30.0)
        for _ in range(5):
            if answer.status_code in (200, 201):
                break
            code = answer.json()["code"]
            assert code in ("upstream_unavailable", "confirmation_incomplete"), (fault, path, answer.text)
            if fault == "busy":
                await asyncio.sleep(1)  # as it was asked to
            await door.quiet()
            await settle(top)
            answer = await agent.request(method, path, json=write)
        assert answer.status_code in (200, 201), (fault, path, answer.text)
    await door.quiet()
    await settle(top)
    items = (await native.get("/api/appointments")).json()["items"]
    assert sorted(each["status"] for each in items) == ["booked", "cancelled"], fault
    assert (await native.get(f"/api/patients/{await patient_id(native)}")).json()["email"] == "ada@example.com"
    assert len((await native.post("/api/patients/match", json=ZAPHOD)).json()["items"]) == 1


def _once(fault: Fault) -> Callable[[Request], Fault | None]:
    """Harms the first write."""
    harmed: list[Request] = []

    def harm(request: Request) -> Fault | None:
        if harmed or request.method == "GET" or request.target.startswith("/oauth"):
            return None
        harmed.append(request)
        return fault

    return harm
