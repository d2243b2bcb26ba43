"""Beside a clinic that books in its own system: no time is ever booked twice, however and whenever it becomes busy."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.fhir.calls import CHEN, booking, challenged
from tests.fhir.door import Answer, Backend, Door, Request
from tests.fhir.practice import Upstream, opened
from tests.fhir.proposing import Proposing
from tests.support.world import World, confirmed, slots

Resource = dict[str, Any]
Way = Callable[[Upstream], Awaitable[list[Resource]]]  # returns what it stored

START, END = "2026-11-16T14:00:00Z", "2026-11-16T14:15:00Z"  # Monday 9:00, the first slot of Dr. Chen
MAX_REQUESTS = 40
BOOKED_BY = [("POST", "/fhir/Appointment"), ("POST", "/fhir/Appointment/$book")]


@pytest.fixture(
    params=[
        "fake-batch",
        "fake",
        "proposing-batch",
        *(pytest.param(f"medplum{each}", marks=pytest.mark.heavy) for each in ("-batch", "")),
    ]
)
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with opened(request.param) as door:
        yield door


def _appointment(*actors: str, start: str = START, end: str = END, **members: Any) -> Resource:
    participant = [{"actor": {"reference": actor}, "status": "accepted"} for actor in ("Patient/grace", *actors)]
    appointment = {"resourceType": "Appointment", "status": "booked", "start": start, "end": end}
    return {**appointment, "participant": participant, **members}


def _slot(status: str, schedule: str = "chen-downtown", start: str = START, end: str = END) -> Resource:
    reference = {"reference": f"Schedule/{schedule}"}
    return {"resourceType": "Slot", "schedule": reference, "status": status, "start": start, "end": end}


async def _published_slot_is_taken(upstream: Upstream) -> list[Resource]:
    if isinstance(upstream.door.backend, Proposing):
        return await _operation_books(upstream)
    free = await upstream.read(f"{CHEN}540")
    await upstream.put({**{key: free[key] for key in free if key != "identifier"}, "status": "busy"})
    return []


async def _operation_books(upstream: Upstream) -> list[Resource]:
    """What `$book` leaves on servers that do not publish slots: a slot of its own and an appointment."""
    slot = await upstream.create(_slot("busy"))
    reference = [{"reference": f"Slot/{slot['id']}"}]
    return [slot, await upstream.create(_appointment("Practitioner/chen", slot=reference))]


def _created(resource: Resource) -> Way:
    async def way(upstream: Upstream) -> list[Resource]:
        return [await upstream.create(resource)]

    return way


WAYS: dict[str, Way] = {
    "published slot": _published_slot_is_taken,
    "$book": _operation_books,
    "$hold": _created(_slot("busy-tentative")),
    "whole day": _created(_slot("busy-unavailable", start="2026-11-16T05:00:00Z", end="2026-11-17T05:00:00Z")),
    "long absence": _created(_slot("busy-unavailable", start="2026-11-01T05:00:00Z", end="2026-11-30T05:00:00Z")),
    "leave": _created(_slot("busy-unavailable", start="2026-10-01T05:00:00Z", end="2026-11-30T05:00:00Z")),
    "days of meetings": _created(_slot("busy", start="2026-11-13T05:00:00Z", end="2026-11-17T05:00:00Z")),
    "days on hold": _created(_slot("busy-tentative", start="2026-11-14T05:00:00Z", end="2026-11-17T05:00:00Z")),
    "location closed": _created(_slot("busy-unavailable", schedule="downtown")),
    "other schedule": _created(_slot("busy", schedule="chen-elsewhere")),
    "odd seconds": _created(_slot("busy", start="2026-11-16T14:14:30Z", end="2026-11-16T14:20:00Z")),
    "no slot": _created(_appointment("Practitioner/chen", "Location/downtown")),
    "several slots": _created(_appointment("Practitioner/chen", start="2026-11-16T13:30:00Z", end=END)),
    "other location": _created(_appointment("Practitioner/chen", "Location/westside")),
    "by role": _created(_appointment("PractitionerRole/chen-anywhere")),
    "proposed": _created(_appointment("Practitioner/chen", status="proposed")),
    "arrived": _created(_appointment("Practitioner/chen", status="arrived")),
}

DURING = (
    "published slot",
    "$book",
    "$hold",
    "leave",
    "days of meetings",
    "location closed",
    "no slot",
    "several slots",
    "other location",
)


@pytest.fixture
async def clinic(upstream: Upstream) -> Upstream:
    """The practice with schedules of the location itself, of Dr. Chen at a place that we do not know, and a role."""
    await upstream.store(
        {"resourceType": "Schedule", "id": "downtown", "actor": [{"reference": "Location/downtown"}]},
        {
            "resourceType": "Schedule",
            "id": "chen-elsewhere",
            "actor": [{"reference": "Practitioner/chen"}, {"reference": "Location/elsewhere"}],
        },
        {
            "resourceType": "PractitionerRole",
            "id": "chen-anywhere",
            "practitioner": {"reference": "Practitioner/chen"},
        },
    )
    return upstream


class Clinic:
    """Passes requests on, and acts just before one of them is executed."""

    def __init__(self, inner: Backend, act: Callable[[], Awaitable[None]], before: int) -> None:
        self._inner, self._act, self._left = inner, act, before

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if self._left == 0:
            await self._act()
        self._left -= 1
        return await self._inner.answer(method, target, headers, body)


async def test_no_time_is_booked_twice_however_and_whenever_it_becomes_busy(fhir: World, clinic: Upstream) -> None:
    agent = await fhir.client()
    body = await booking(agent)
    is_batching = "/fhir" in {request.target for request in clinic.door.seen}
    for name, way in WAYS.items():
        token = await challenged(agent, "/api/appointments", body)
        stored = await way(clinic)
        assert START not in await _offered(agent), f"{name}: before the search"
        assert (await agent.get(f"/api/slots/{body['slotId']}")).json()["available"] is False, name
        for when, sent in (("before the challenge", body), ("before the confirmation", token)):
            refused = await agent.post("/api/appointments", json=sent)
            assert (refused.status_code, refused.json().get("code")) == (409, "slot_unavailable"), (name, when)
        await _taken_back(clinic, stored)
        if name in (DURING if is_batching else DURING[:1]):
            await _busy_during_confirmation(agent, clinic, way, token)
    assert await clinic.live_appointments() == []


async def _busy_during_confirmation(
    agent: httpx.AsyncClient, clinic: Upstream, way: Way, token: dict[str, Any]
) -> None:
    inner = clinic.door.backend
    assert inner is not None
    for point in range(MAX_REQUESTS):
        stored: list[Resource] = []

        async def act(stored: list[Resource] = stored) -> None:
            clinic.door.backend = inner
            stored += await way(clinic) or [{}]

        clinic.door.reset()
        clinic.door.backend = Clinic(inner, act, point)
        answer = await agent.post("/api/appointments", json=token)
        clinic.door.backend = inner
        if answer.status_code == 201:
            path = f"/api/appointments/{answer.json()['appointmentId']}/cancel"
            assert (await confirmed(agent, "POST", path, {})).status_code == 200
        if not stored:
            assert answer.status_code == 201, answer.text
            assert point >= (3 if isinstance(inner, Proposing) else 4)
            return
        if answer.status_code == 201:
            # Without batches the last look takes several requests: the clinic came after one of them, when our
            # appointment was there to be seen.
            assert point > _created_at(clinic) + 1, point
        else:
            assert (answer.status_code, answer.json().get("code")) == (409, "slot_unavailable"), point
        assert [each for each in await clinic.live_appointments() if "identifier" in each] == [], point
        await _taken_back(clinic, stored)
        assert await clinic.busy_slots() == set(), point
        if answer.status_code == 201:
            token = await challenged(agent, "/api/appointments", _without_token(token))
    raise AssertionError("the booking never came through")


def _without_token(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "confirmationToken"}


def _created_at(clinic: Upstream) -> int:
    """The number of the request that created our appointment."""
    targets = [(request.method, request.target) for request in clinic.door.seen]
    return next(each for each in range(len(targets)) if targets[each] in BOOKED_BY)


async def _taken_back(clinic: Upstream, stored: list[Resource]) -> None:
    for each in stored:
        if each:
            over = "cancelled" if each["resourceType"] == "Appointment" else "entered-in-error"
            await clinic.put({**each, "status": over})
    for published in await clinic.search("Slot", f"_id={CHEN.removeprefix('Slot/')}540"):
        if published["status"] != "free":
            await clinic.put({**published, "status": "free"})


async def _offered(agent: httpx.AsyncClient) -> list[str]:
    return [each["start"].replace("09:00:00-05:00", "14:00:00Z") for each in await slots(agent)]


@pytest.mark.parametrize("door", ["fake-batch", "fake"], indirect=True)
async def test_a_server_that_searches_slots_by_their_end_is_asked_for_all_that_overlap(
    fhir: World, clinic: Upstream
) -> None:
    async def with_end(request: Request, answer: Answer) -> Answer:
        if request.target != "/fhir/metadata":
            return answer
        statement = json.loads(answer.body)
        for each in statement["rest"][0]["resource"]:
            each["searchParam"] = [{"name": "end", "type": "date"}] if each["type"] == "Slot" else []
        return Answer(answer.status, answer.headers, json.dumps(statement).encode())

    clinic.door.rewrite = with_end
    agent = await fhir.client()
    assert START in await _offered(agent)
    await clinic.create(_slot("busy", start="2024-01-01T05:00:00Z", end="2026-11-17T05:00:00Z"))
    assert await _offered(agent) == []
    asked = [target for request in clinic.door.seen for _, target in request.parts if target.startswith("/fhir/Slot?")]
    assert asked
    assert all("end=gt" in target for target in asked)


def _on_a_new_schedule(*actors: str) -> Way:
    """Books on a calendar that the clinic has just added, perhaps of a new role of the provider."""

    async def way(upstream: Upstream) -> list[Resource]:
        role = {"resourceType": "PractitionerRole", "practitioner": {"reference": "Practitioner/chen"}}
        references = [each if "/" in each else f"{each}/{(await upstream.create(role))['id']}" for each in actors]
        actor = [{"reference": each} for each in references]
        schedule = await upstream.create({"resourceType": "Schedule", "actor": actor})
        return [await upstream.create(_slot("busy", schedule=schedule["id"]))]

    return way


@pytest.mark.parametrize(
    "actors",
    [("Practitioner/chen", "Location/elsewhere"), ("PractitionerRole", "Location/elsewhere"), ("Location/downtown",)],
)
async def test_no_time_is_booked_twice_when_a_calendar_was_just_added(
    fhir: World, clinic: Upstream, actors: tuple[str, ...]
) -> None:
    agent = await fhir.client()
    body = await booking(agent)
    token = await challenged(agent, "/api/appointments", body)
    stored = await _on_a_new_schedule(*actors)(clinic)
    assert (await agent.get(f"/api/slots/{body['slotId']}")).json()["available"] is False
    for when, sent in (("before the challenge", body), ("before the confirmation", token)):
        refused = await agent.post("/api/appointments", json=sent)
        assert (refused.status_code, refused.json().get("code")) == (409, "slot_unavailable"), when
    await _taken_back(clinic, stored)
    if "/fhir" in {request.target for request in clinic.door.seen}:
        await _busy_during_confirmation(agent, clinic, _on_a_new_schedule(*actors), token)


async def test_what_does_not_take_the_providers_time_does_not_block_it(fhir: World, clinic: Upstream) -> None:
    agent = await fhir.client()
    declined = _appointment("Practitioner/chen")
    declined["participant"][1]["status"] = "declined"
    for each in (
        declined,
        _appointment("Practitioner/nunez", "Location/downtown"),
        _appointment("Practitioner/chen", status="noshow"),
        _appointment("Practitioner/chen", start="2026-11-16T13:45:00Z", end=START),
        _slot("entered-in-error"),
        _slot("busy", schedule="nunez-downtown"),
        _slot("busy", start=END, end="2026-11-16T14:30:00Z"),
    ):
        await clinic.create(each)

    async def leniently(request: Request, answer: Answer) -> Answer:
        """Ignores a search parameter that it does not know, as FHIR allows."""
        if request.target.startswith("/fhir/Appointment?slot="):
            assert clinic.door.backend is not None
            return await clinic.door.backend.answer("GET", "/Appointment?_count=1000", {}, b"")
        return answer

    clinic.door.rewrite = leniently
    answer = await confirmed(agent, "POST", "/api/appointments", await booking(agent))
    assert answer.status_code == 201, answer.text
    [ours] = [each for each in await clinic.live_appointments() if "identifier" in each]
    assert ours["start"] == START


async def test_a_move_beside_the_clinic_is_put_back(fhir: World, clinic: Upstream) -> None:
    """The new time becomes busy while the appointment is moved there: it keeps its old one."""
    agent = await fhir.client()
    booked = await confirmed(agent, "POST", "/api/appointments", await booking(agent, index=4))
    path = f"/api/appointments/{booked.json()['appointmentId']}/reschedule"
    [before] = await clinic.live_appointments()
    body = await challenged(agent, path, {"slotId": (await slots(agent))[0]["id"]})
    inner = clinic.door.backend
    assert inner is not None
    for point in range(MAX_REQUESTS):
        stored: list[Resource] = []

        async def act(stored: list[Resource] = stored) -> None:
            clinic.door.backend = inner
            stored += await WAYS["no slot"](clinic)

        clinic.door.backend = Clinic(inner, act, point)
        answer = await agent.post(path, json=body)
        clinic.door.backend = inner
        [ours] = [each for each in await clinic.live_appointments() if "identifier" in each]
        if answer.status_code == 200:
            assert ours["start"] == START
            claims = 0 if isinstance(inner, Proposing) else 1  # requests; a move makes its slots in one transaction
            assert point >= 4 + claims or not stored
            return
        assert (answer.status_code, answer.json().get("code")) == (409, "slot_unavailable"), point
        assert (ours["start"], ours["slot"]) == (before["start"], before["slot"])
        await _taken_back(clinic, stored)
        assert await clinic.busy_slots() == {each["reference"] for each in before["slot"]}
    raise AssertionError("the move never came through")
