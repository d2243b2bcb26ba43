"""What a server cannot do is said, answered, and nowhere else in the way."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontdesk.operations import NEEDS as NEEDS_OF_OPERATIONS
from frontdesk.operations import OPERATIONS, supported
from frontdesk.store.database import Database
from frontdesk.systems.fhir.capabilities import NEEDS, UNKNOWN, read_statement
from tests.fhir.calls import SEARCH, ZAPHOD, search
from tests.fhir.door import Answer, Request
from tests.fhir.fake import statement
from tests.fhir.practice import Upstream, fhir_world, forgive
from tests.support.world import World, book, confirmed, patient_id, slots

Resource = dict[str, Any]


def _changed(change: Callable[[Resource], None]) -> Any:
    async def rewrite(request: Request, answer: Answer) -> Answer:
        if request.target == "/fhir/metadata":
            document = json.loads(answer.body)
            for resource in document["rest"][0]["resource"]:
                change(resource)
            return Answer(200, {}, json.dumps(document).encode())
        return answer

    return rewrite


def _without(kind: str, interaction: str) -> Any:
    def change(resource: Resource) -> None:
        if resource["type"] == kind:
            resource["interaction"] = [each for each in resource["interaction"] if each["code"] != interaction]

    return _changed(change)


def test_every_need_of_an_operation_is_known_to_the_adapter() -> None:
    assert set(NEEDS_OF_OPERATIONS.values()) == set(NEEDS)


def test_a_server_that_says_nothing_is_taken_to_do_everything() -> None:
    everything = {operation.name for operation in OPERATIONS}
    assert supported(UNKNOWN.capabilities) == everything
    assert supported(read_statement({"resourceType": "CapabilityStatement"}).capabilities) == everything
    assert supported(read_statement(statement()).capabilities) == everything


@pytest.mark.parametrize(
    ("kind", "member", "lost"),
    [
        ("Appointment", {"conditionalCreate": False}, {"book_appointment"}),
        ("Patient", {"conditionalCreate": None}, {"create_patient"}),
        ("Patient", {"versioning": "no-version"}, {"update_patient"}),
        (
            "Appointment",
            {"versioning": "no-version"},
            {"cancel_appointment", "confirm_attendance", "reschedule_appointment"},
        ),
        ("Encounter", {"interaction": []}, set()),
        (
            "Slot",
            {"interaction": []},
            {"search_slots", "find_first_available", "get_slot", "book_appointment", "reschedule_appointment"},
        ),
    ],
)
def test_what_is_missing_costs_exactly_what_needs_it(kind: str, member: Resource, lost: set[str]) -> None:
    document = statement()
    for resource in document["rest"][0]["resource"]:
        if resource["type"] == kind:
            resource.update(member)
    assert {each.name for each in OPERATIONS} - supported(read_statement(document).capabilities) == lost


async def test_an_operation_that_the_server_cannot_do_is_not_supported(
    database: Database, tmp_path: Path, upstream: Upstream
) -> None:
    upstream.door.rewrite = _without("Appointment", "update")
    async with fhir_world(database, tmp_path, upstream.door) as world:
        agent = await world.client()
        lost = {"cancel_appointment", "confirm_attendance", "reschedule_appointment"}
        supports = set((await agent.get("/api/practice")).json()["supports"])
        assert supports == {operation.name for operation in OPERATIONS} - lost
        appointment = await book(agent)
        for action in ("cancel", "confirm", "reschedule"):
            refused = await agent.post(f"/api/appointments/{appointment}/{action}", json={})
            assert (refused.status_code, refused.json()["code"]) == (503, "capability_not_supported")
            assert "retry-after" not in refused.headers


async def test_patients_are_found_on_a_server_without_a_search_of_appointments(
    database: Database, tmp_path: Path, upstream: Upstream
) -> None:
    without = _without("Appointment", "search-type")

    async def refusing(request: Request, answer: Answer) -> Answer:
        if request.target.startswith("/fhir/Appointment?"):
            return Answer(404, {}, b"")
        changed: Answer = await without(request, answer)
        return changed

    upstream.door.rewrite = refusing
    async with fhir_world(database, tmp_path, upstream.door) as world:
        agent = await world.client()
        supports = set((await agent.get("/api/practice")).json()["supports"])
        lost = {"list_appointments", "book_appointment", "reschedule_appointment"}
        assert supports == {operation.name for operation in OPERATIONS} - lost
        person = {"firstName": "Ada", "lastName": "Lovelace", "phone": "0199", "dob": "1985-12-10"}
        matched = await agent.post("/api/patients/match", json=person)
        assert matched.status_code == 200, matched.text
        [found] = matched.json()["items"]
        assert (await agent.get(f"/api/patients/{found['id']}")).status_code == 200
        email = {"email": "ada@example.com"}
        assert (await confirmed(agent, "PATCH", f"/api/patients/{found['id']}", email)).status_code == 200
        assert (await confirmed(agent, "POST", "/api/patients", dict(ZAPHOD))).status_code == 201


async def test_a_server_that_is_away_at_first_is_asked_again(
    database: Database, tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.systems.fhir.upstream.RETRY_STATEMENT_SECONDS", 0.0)
    upstream.door.rewrite = _without("Patient", "update")
    await upstream.door.close()
    async with fhir_world(database, tmp_path, upstream.door) as world:
        agent = await world.client()
        assert "update_patient" in (await agent.get("/api/practice")).json()["supports"], "nothing is known yet"
        assert await search(agent) == 502
        await upstream.door.open()
        forgive(world)
        async with asyncio.timeout(30):
            while "update_patient" in (await agent.get("/api/practice")).json()["supports"]:
                await asyncio.sleep(0.02)
        refused = await agent.patch(f"/api/patients/{await patient_id(agent)}", json={"email": "a@example.com"})
        assert (refused.status_code, refused.json()["code"]) == (503, "capability_not_supported")


@pytest.mark.parametrize(("settings", "status"), [({}, 502), ({"schedulingOperations": "none"}, 200)])
async def test_no_times_are_guessed_before_the_server_has_said_how_it_schedules(
    database: Database, tmp_path: Path, upstream: Upstream, settings: Resource, status: int
) -> None:
    """Unless the practice file says it."""
    answers = {"/fhir/metadata": Answer(503, {}, b"")}

    async def rewrite(request: Request, answer: Answer) -> Answer:
        return answers.get(request.target, answer)

    upstream.door.rewrite = rewrite
    async with fhir_world(database, tmp_path, upstream.door, **settings) as world:
        agent = await world.client()
        assert (await agent.get("/api/providers")).status_code == 200
        assert await search(agent) == status
        answers.clear()
        forgive(world)
        for each in world.service.fhir._upstreams.values():
            each._ask_again_at = 0.0
        async with asyncio.timeout(30):
            while await search(agent) != 200:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("answer", "status", "retry"),
    [
        (Answer(404, {}, b""), 200, None),
        (Answer(403, {}, b""), 502, "300"),
        (Answer(429, {"Retry-After": "77"}, b""), 502, "77"),
    ],
    ids=["none", "not for us", "later"],
)
async def test_a_server_without_a_statement_is_taken_to_do_everything(
    database: Database, tmp_path: Path, upstream: Upstream, answer: Answer, status: int, retry: str | None
) -> None:
    """But not one that refuses to give it."""

    async def rewrite(request: Request, given: Answer) -> Answer:
        return answer if request.target == "/fhir/metadata" else given

    upstream.door.rewrite = rewrite
    async with fhir_world(database, tmp_path, upstream.door) as world:
        answered = await (await world.client()).get("/api/slots", params=SEARCH)
        assert (answered.status_code, answered.headers.get("retry-after")) == (status, retry)


async def test_the_first_caller_is_told_what_is_not_supported(
    database: Database, tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of several who come at once, before the server has said it."""
    monkeypatch.setattr("frontdesk.systems.fhir.upstream.FIRST_STATEMENT_SECONDS", 30.0)
    without = _without("Slot", "search-type")

    async def slowly(request: Request, answer: Answer) -> Answer:
        if request.target == "/fhir/metadata":
            await asyncio.sleep(0.3)
        changed: Answer = await without(request, answer)
        return changed

    upstream.door.rewrite = slowly
    async with fhir_world(database, tmp_path, upstream.door) as world:
        agent = await world.client()
        answers = await asyncio.gather(*(search(agent) for _ in range(4)))
    assert answers == [503, 503, 503, 503]


async def test_a_server_that_marks_its_own_slots_is_left_to_do_so(
    database: Database, tmp_path: Path, upstream: Upstream
) -> None:
    async def marking(request: Request, answer: Answer) -> Answer:
        if request.method == "POST" and request.target == "/fhir/Appointment":
            for slot in json.loads(request.body)["slot"]:
                await upstream.put({**await upstream.read(slot["reference"]), "status": "busy"})
        return await _without("Slot", "update")(request, answer)  # type: ignore[no-any-return]

    upstream.door.rewrite = marking
    async with fhir_world(database, tmp_path, upstream.door) as world:
        agent = await world.client()
        appointment = await book(agent)
        assert await upstream.busy_slots() == {"Slot/chen-downtown-0-540"}
        assert not [request for request in upstream.door.seen if request.method == "PUT"]
        cancelled = await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
        assert cancelled.status_code == 200
        assert [request.target.split("/")[2] for request in upstream.door.seen if request.method == "PUT"] == [
            "Appointment"
        ]


async def test_a_server_that_should_mark_its_slots_and_does_not_books_nothing(
    database: Database, tmp_path: Path, upstream: Upstream
) -> None:
    upstream.door.rewrite = _without("Slot", "update")
    async with fhir_world(database, tmp_path, upstream.door) as world:
        agent = await world.client()
        body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
        refused = await confirmed(agent, "POST", "/api/appointments", body)
        assert refused.status_code == 422
        assert await upstream.live_appointments() == []


async def test_who_has_been_seen_is_known_from_encounters_too(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    person = {"firstName": "Grace", "lastName": "Hopper", "phone": "0142", "dob": "1986-12-09"}
    assert (await agent.post("/api/patients/match", json=person)).json()["items"][0]["patientKind"] == "new"
    await upstream.create(
        {
            "resourceType": "Encounter",
            "status": "finished",
            "class": {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": "AMB"},
            "subject": {"reference": "Patient/grace"},
        }
    )
    assert (await agent.post("/api/patients/match", json=person)).json()["items"][0]["patientKind"] == "existing"
