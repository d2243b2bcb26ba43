"""Servers that propose and book times themselves, by `$find`, `$book` and `$cancel`: no published Slots are needed."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.fhir.calls import SEARCH, booking, challenged
from tests.fhir.door import Answer, Door, Request
from tests.fhir.iti_scheduling import ItiScheduling
from tests.fhir.misbehaving import IgnoringIdentifiers
from tests.fhir.practice import Upstream, opened, settle, unmap
from tests.fhir.proposing import FOLLOW_UP, LONG_FOLLOW_UP
from tests.fhir.test_double_booking import MAX_REQUESTS, Clinic
from tests.support.world import World, book, confirmed, patient_id, slots

NINE, TEN = "2026-11-16T14:00:00Z", "2026-11-16T15:00:00Z"  # Monday, in New York


@pytest.fixture
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with opened(getattr(request, "param", "proposing-batch")) as door:
        yield door


def _operations(requests: list[Request]) -> list[str]:
    """The writes among the requests, without ids."""
    writes = [(method, target) for request in requests if request.is_write for method, target in request.parts]
    return [f"{method} {'$'.join(target.split('/')[2:3] + target.split('$')[1:])}" for method, target in writes]


async def test_times_are_searched_booked_moved_and_cancelled_by_the_servers_operations(
    fhir: World, upstream: Upstream
) -> None:
    agent, seen = await fhir.client(), upstream.door.seen
    found = await slots(agent)
    assert [found[0]["start"][11:16], len(found)] == ["09:00", 32]
    upstream.door.reset()
    found = await slots(agent)
    assert len(seen) == 1
    body = await booking(agent)
    upstream.door.reset()
    body = await challenged(agent, "/api/appointments", body)
    assert len(seen) <= 3
    upstream.door.reset()
    booked = await agent.post("/api/appointments", json=body)
    assert booked.status_code == 201, booked.text
    assert len(seen) == 3  # what is there, the booking, and what is there then
    assert _operations(seen) == ["POST Appointment$book"]
    [stored] = await upstream.live_appointments()
    assert {each["actor"]["reference"] for each in stored["participant"]} == {
        "Patient/ada", "Practitioner/chen", "Location/downtown", "HealthcareService/follow-up",
    }  # fmt: skip
    assert (await slots(agent))[0]["start"][11:16] == "09:15"

    path = f"/api/appointments/{booked.json()['appointmentId']}"
    upstream.door.reset()
    assert (await confirmed(agent, "POST", f"{path}/reschedule", {"slotId": found[8]["id"]})).status_code == 200
    assert "POST Slot" in _operations(seen)
    [moved] = await upstream.live_appointments()
    assert (moved["id"], moved["start"]) == (stored["id"], "2026-11-16T16:00:00Z")
    assert await upstream.busy_slots() == {each["reference"] for each in moved["slot"]}
    assert (await agent.get(path)).json()["status"] == "booked"

    upstream.door.reset()
    assert (await confirmed(agent, "POST", f"{path}/cancel", {"reason": "Travelling"})).status_code == 200
    assert "POST Appointment$cancel" in _operations(seen)
    assert await upstream.busy_slots() == set()
    assert (await agent.get(path)).json()["cancellationReason"] == "Travelling"
    assert len(await slots(agent)) == 32


async def test_buffers_and_holds_of_the_server_are_respected(fhir: World, upstream: Upstream) -> None:
    """An appointment of 45 minutes with 15 minutes after it, at the end of the day and beside a hold."""
    agent = await fhir.client()
    late = (await slots(agent, procedureId=102))[-1]
    assert late["start"][11:16] == "16:00"
    body = {"patientId": await patient_id(agent, "Ada"), "slotId": late["id"]}
    assert (await confirmed(agent, "POST", "/api/appointments", body)).status_code == 201
    [stored] = await upstream.live_appointments()
    assert len(stored["slot"]) == 2
    query = {"schedule": "Schedule/chen-downtown", "service-type-reference": LONG_FOLLOW_UP, "start": NINE, "end": TEN}
    held = await upstream.ask("GET", f"/Appointment/$find?{urlencode(query)}")
    parameter = [{"name": "appointment", "resource": held["entry"][0]["resource"]}]
    await upstream.ask("POST", "/Appointment/$hold", {"resourceType": "Parameters", "parameter": parameter})
    starts = [each["start"][11:16] for each in await slots(agent)]
    assert (starts[0], starts[-1]) == ("10:00", "15:45")


async def test_a_schedule_that_the_server_cannot_propose_for_is_left_out(fhir: World, upstream: Upstream) -> None:
    """More than one actor, another service, or outside the planning horizon: `$find` would refuse."""
    agent = await fhir.client()
    schedule = await upstream.read("Schedule/chen-downtown")
    several = {**schedule, "actor": [*schedule["actor"], {"reference": "Location/downtown"}]}
    other = {**schedule, "serviceType": schedule["serviceType"][1:]}
    over = {**schedule, "planningHorizon": {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}}
    until = {**schedule, "planningHorizon": {"end": "2026-11-16T16:00:00Z"}}
    for changed, number in ((several, 0), (other, 0), (over, 0), (until, 8), (schedule, 32)):
        await upstream.put(changed)
        for each in fhir.service.fhir._upstreams.values():
            each._calendars = None
        assert len(await slots(agent)) == number, changed


async def test_a_busy_schedule_is_searched_in_shorter_ranges(
    fhir: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a range with too many slots in it, which says nothing against its address or our rights."""
    agent = await fhir.client()
    fortnight = {"to": "2026-11-29"}
    schedule = {"reference": "Schedule/chen-downtown"}
    for day in range(16, 30):
        for hour in (14, 16):
            times = {"start": f"2026-11-{day}T{hour}:00:00Z", "end": f"2026-11-{day}T{hour}:15:00Z"}
            await upstream.create({"resourceType": "Slot", "schedule": schedule, "status": "busy", **times})
    expected = [each["start"] for each in await slots(agent, **fortnight)]
    assert len(expected) == 50
    for limit in (20, 9, 5):
        monkeypatch.setattr("tests.fhir.proposing.MAX_SLOTS", limit)
        assert [each["start"] for each in await slots(agent, **fortnight)] == expected, limit
    monkeypatch.setattr("tests.fhir.proposing.MAX_SLOTS", 1)
    upstream.door.reset()
    refused = await agent.get("/api/slots", params={**SEARCH, **fortnight})
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    assert len(upstream.door.seen) < 12, "a question that is refused in any range is not asked for ever"


async def test_more_times_than_one_answer_holds_are_all_found(
    fhir: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.systems.fhir.reading.finds.MAX_PROPOSALS", 5)
    agent = await fhir.client()
    assert len(await slots(agent)) == 32


@pytest.mark.parametrize("door", ["ihe"], indirect=True)
async def test_a_provider_who_is_not_mapped_is_left_out_of_a_search(fhir: World) -> None:
    await unmap(fhir, "12")
    asked = {"visitTypeId": 21, "procedureId": 101, "limit": 20}
    answer = await (await fhir.client()).get("/api/slots/first-available", params=asked)
    assert answer.status_code == 200, answer.text
    offered = {each["providerId"] for each in answer.json()["items"]}
    assert 10 in offered
    assert 12 not in offered


@pytest.mark.parametrize("door", ["ihe", "argonaut"], indirect=True)
async def test_a_server_that_lists_its_operations_needs_no_slots_and_no_setting(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    found = await slots(agent)
    assert [found[0]["start"][11:16], len(found)] == ["09:00", 32]
    body = await challenged(agent, "/api/appointments", await booking(agent))
    booked = await agent.post("/api/appointments", json=body)
    assert booked.status_code == 201, booked.text
    path = f"/api/appointments/{booked.json()['appointmentId']}"
    assert (await confirmed(agent, "POST", f"{path}/reschedule", {"slotId": found[8]["id"]})).status_code == 200
    again = await confirmed(agent, "POST", "/api/appointments", await booking(agent, "Alan", 8))
    assert again.status_code == 201
    upstream.door.reset()
    assert (await confirmed(agent, "POST", f"{path}/cancel", {"reason": "Travelling"})).status_code == 200
    assert isinstance(upstream.door.backend, ItiScheduling)
    is_listed = "cancel" in upstream.door.backend.operations
    assert ("POST Appointment$cancel" in _operations(upstream.door.seen)) == is_listed
    assert (await agent.get(path)).json()["cancellationReason"] == "Travelling"
    assert len(await slots(agent)) == 31
    assert {request.target.split("?")[0] for request in upstream.door.seen} & {"/fhir/Slot", "/fhir/Schedule"} == set()


async def test_a_booking_that_was_undone_is_not_taken_for_executed(fhir: World, upstream: Upstream) -> None:
    """`$cancel` keeps the identifier of the intent: a resend books anew."""
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))

    async def clinic_books(request: Request, answer: Any) -> Any:
        if request.target == "/fhir/Appointment/$book":
            upstream.door.rewrite = None
            participant = [{"actor": {"reference": "Practitioner/chen"}, "status": "accepted"}]
            times = {"start": "2026-11-16T14:00:00Z", "end": "2026-11-16T14:15:00Z"}
            rival = {"resourceType": "Appointment", "status": "booked", **times, "participant": participant}
            stored.append(await upstream.create(rival))
        return answer

    stored: list[dict[str, Any]] = []
    upstream.door.rewrite = clinic_books
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_unavailable")
    assert await upstream.busy_slots() == set()
    await upstream.put({**stored[0], "status": "cancelled"})
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert len(await upstream.live_appointments()) == 1


async def test_only_the_slots_of_a_lost_move_are_given_back(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    moved = await book(agent)
    await book(agent, "Alan")
    path, slot = f"/api/appointments/{moved}/reschedule", (await slots(agent))[8]["id"]
    body = await challenged(agent, path, {"slotId": slot})
    busy = await upstream.busy_slots()
    upstream.door.backend = IgnoringIdentifiers(upstream.door.backend, "Slot")
    upstream.door.reset()
    upstream.door.harm = lambda request: "cut_before" if "PUT" in dict(request.parts) else None
    lost = await agent.post(path, json=body)
    assert lost.json()["code"] == "confirmation_incomplete", lost.text
    upstream.door.reset()
    await settle(fhir)
    assert len(busy) == 2
    assert await upstream.busy_slots() == busy


@pytest.mark.parametrize("operation", ["book", "hold"])
async def test_either_the_clinic_or_the_caller_gets_a_time_whenever_the_clinic_asks(
    fhir: World, upstream: Upstream, operation: str
) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    query = {"schedule": "Schedule/chen-downtown", "service-type-reference": FOLLOW_UP, "start": NINE, "end": TEN}
    proposed = await upstream.ask("GET", f"/Appointment/$find?{urlencode(query)}")
    parameter = [{"name": "appointment", "resource": proposed["entry"][0]["resource"]}]
    request = json.dumps({"resourceType": "Parameters", "parameter": parameter}).encode()
    inner = upstream.door.backend
    assert inner is not None
    for point in range(MAX_REQUESTS):
        answers: list[Answer] = []

        async def act(answers: list[Answer] = answers) -> None:
            answers.append(await inner.answer("POST", f"/Appointment/${operation}", {}, request))

        upstream.door.backend = Clinic(inner, act, point)
        ours = await agent.post("/api/appointments", json=body)
        upstream.door.backend = inner
        if not answers:
            assert ours.status_code == 201
            assert point >= 3
            return
        assert (ours.status_code, answers[0].status) in ((201, 400), (409, 201)), point
        for each in await upstream.search("Appointment", "status=booked,pending"):
            await upstream.ask("POST", f"/Appointment/{each['id']}/$cancel")
        if ours.status_code == 201:
            body = await challenged(agent, "/api/appointments", await booking(agent))
    raise AssertionError("the booking never came through")
