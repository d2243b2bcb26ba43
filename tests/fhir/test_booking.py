"""Calls to a practice whose calendar lives in a FHIR server: what the server gets, and what the caller hears of it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.store.database import Database
from tests.fhir.door import Answer, Fault, Request
from tests.fhir.practice import VISITS, Upstream, fhir_world, file_text, settle
from tests.world import World, book, confirmed, page_through, patient_id, slots

CHEN = "Slot/chen-downtown-0-"


async def _integration(world: World) -> httpx.AsyncClient:
    return await world.client(grant="integration")


async def _booking(client: httpx.AsyncClient, first: str = "Ada", index: int = 0, **query: Any) -> dict[str, Any]:
    found = await slots(client, **query)
    return {"patientId": await patient_id(client, first), "slotId": found[index]["id"]}


async def test_an_agent_books_in_a_fhir_server(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    practice = (await agent.get("/api/practice")).json()
    assert practice["schedulingSystem"] == "fhir"
    assert "book_appointment" in practice["supports"]
    found = await slots(agent)
    assert found[0]["start"] == "2026-11-16T09:00:00-05:00"
    assert (await agent.get(f"/api/slots/{found[0]['id']}")).json()["available"] is True
    body = {"patientId": await patient_id(agent), "slotId": found[0]["id"]}
    answer = await confirmed(agent, "POST", "/api/appointments", body)
    assert answer.status_code == 201, answer.text
    booked = (await agent.get(f"/api/appointments/{answer.json()['appointmentId']}")).json()
    assert (booked["status"], booked["start"], booked["providerName"]) == (
        "booked",
        found[0]["start"],
        "Dr. Robert Chen",
    )
    assert (await agent.get(f"/api/slots/{found[0]['id']}")).json()["available"] is False


async def test_the_server_gets_an_appointment_that_says_everything(fhir: World, upstream: Upstream) -> None:
    await book(await fhir.client())
    [stored] = await upstream.live_appointments()
    assert (stored["start"], stored["end"]) == ("2026-11-16T14:00:00Z", "2026-11-16T14:15:00Z")
    assert stored["minutesDuration"] == 15
    assert stored["slot"] == [{"reference": f"{CHEN}540"}]
    assert [(each["actor"]["reference"], each["status"]) for each in stored["participant"]] == [
        ("Patient/ada", "needs-action"),
        ("Practitioner/chen", "accepted"),
        ("Location/downtown", "accepted"),
    ]
    codes = [concept["coding"][0] for concept in stored["serviceType"]]
    assert codes == [{"system": "urn:frontdesk:visit-type", "code": "21"}, {"system": VISITS, "code": "FU15"}]
    assert {identifier["system"] for identifier in stored["identifier"]} == {
        "urn:frontdesk:intent",
        "urn:frontdesk:claim",
    }
    assert await upstream.busy_slots() == {f"{CHEN}540"}


async def test_a_healthcare_service_takes_part(fhir: World, upstream: Upstream) -> None:
    await book(await fhir.client(), visitTypeId=22, procedureId=103)
    [stored] = await upstream.live_appointments()
    assert stored["participant"][-1]["actor"] == {"reference": "HealthcareService/shots"}
    assert [concept["coding"][0]["code"] for concept in stored["serviceType"]] == ["22"]
    [listed] = (await (await fhir.client()).get("/api/appointments")).json()["items"]
    assert (listed["visitTypeId"], listed["procedureId"]) == (22, 103)


async def test_a_long_procedure_takes_consecutive_slots(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    await upstream.put({**await upstream.read(f"{CHEN}555"), "status": "busy-unavailable"})
    found = await slots(agent, procedureId=102)
    assert found[0]["start"] == "2026-11-16T09:30:00-05:00"
    await book(agent, procedureId=102)
    [stored] = await upstream.live_appointments()
    assert [each["reference"] for each in stored["slot"]] == [f"{CHEN}570", f"{CHEN}585", f"{CHEN}600"]
    assert stored["end"] == "2026-11-16T15:15:00Z"


async def test_cancelling_leaves_a_slot_that_another_appointment_uses(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    [stored] = await upstream.live_appointments()
    doubled = {key: stored[key] for key in ("resourceType", "status", "start", "end", "slot")}
    actor = {"actor": {"reference": "Patient/alan"}, "status": "accepted"}
    await upstream.create({**doubled, "participant": [actor]})
    answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert answer.status_code == 200
    assert await upstream.busy_slots() == {f"{CHEN}540"}


async def test_what_staff_do_shows(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    [stored] = await upstream.live_appointments()
    for theirs, ours in (
        ("arrived", "arrived"),
        ("fulfilled", "completed"),
        ("noshow", "noShow"),
        ("cancelled", "cancelled"),
    ):
        await upstream.put({**stored, "status": theirs})
        assert (await agent.get(f"/api/appointments/{appointment}")).json()["status"] == ours
    refused = await agent.post(f"/api/appointments/{appointment}/cancel", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await upstream.put({**stored, "status": "entered-in-error"})
    assert (await agent.get(f"/api/appointments/{appointment}")).status_code == 404


async def test_what_the_practice_file_has_no_words_for_is_not_shown_but_takes_time(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    actors = ("Patient/ada", "Practitioner/somebody")
    await upstream.create(
        {
            "resourceType": "Appointment",
            "status": "booked",
            "start": "2026-11-16T14:00:00Z",
            "end": "2026-11-16T14:30:00Z",
            "participant": [{"actor": {"reference": actor}, "status": "accepted"} for actor in actors],
        }
    )
    assert (await agent.get("/api/appointments")).json()["items"] == []
    refused = await agent.post("/api/appointments", json=await _booking(agent))
    assert refused.status_code == 422
    assert "overlaps" in refused.json()["detail"]


async def test_an_appointment_that_staff_made_can_be_moved_and_cancelled(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    await upstream.put({**await upstream.read(f"{CHEN}540"), "status": "busy"})
    actors = ("Patient/ada", "Practitioner/chen", "Location/downtown")
    await upstream.create(
        {
            "resourceType": "Appointment",
            "status": "booked",
            "serviceType": [{"coding": [{"system": VISITS, "code": "FU15"}]}],
            "start": "2026-11-16T14:00:00Z",
            "end": "2026-11-16T14:15:00Z",
            "slot": [{"reference": f"{CHEN}540"}],
            "participant": [{"actor": {"reference": actor}, "status": "needs-action"} for actor in actors],
        }
    )
    [item] = (await agent.get("/api/appointments", params={"patientId": await patient_id(agent)})).json()["items"]
    assert (item["status"], item["procedureId"], item["visitTypeId"]) == ("booked", 101, 21)
    body = {"slotId": (await slots(agent))[3]["id"]}
    moved = await confirmed(agent, "POST", f"/api/appointments/{item['id']}/reschedule", body)
    assert moved.status_code == 200, moved.text
    assert await upstream.busy_slots() == {f"{CHEN}600"}
    cancelled = await confirmed(agent, "POST", f"/api/appointments/{item['id']}/cancel", {"reason": "Better"})
    assert cancelled.status_code == 200
    assert await upstream.busy_slots() == set()


async def test_attendance_is_the_patients_own_answer_or_a_tag(
    database: Database, tmp_path: Path, upstream: Upstream
) -> None:
    tag = {"system": "urn:harbor:tags", "code": "will-attend"}
    async with fhir_world(database, tmp_path, upstream.door, attendance=tag) as world:
        agent = await world.client()
        appointment = await book(agent)
        answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/confirm", {})
        assert answer.json()["status"] == "confirmed"
        [stored] = await upstream.live_appointments()
        assert stored["meta"]["tag"] == [tag]
        assert stored["participant"][0]["status"] == "needs-action"
        assert (await agent.get(f"/api/appointments/{appointment}")).json()["status"] == "confirmed"
        body = {"slotId": (await slots(agent))[3]["id"]}
        await confirmed(agent, "POST", f"/api/appointments/{appointment}/reschedule", body)
        [stored] = await upstream.live_appointments()
        assert "tag" not in stored["meta"]


async def test_two_installations_cannot_book_one_slot(
    fhir: World, upstream: Upstream, owner_dsn: str, tmp_path: Path
) -> None:
    """Nothing but the server stands between them: they share no database, and both have seen the slot free."""
    agent = await fhir.client()
    body = await _booking(agent)
    challenge = await agent.post("/api/appointments", json=body)
    slot = await upstream.read(f"{CHEN}540")

    async def somebody_is_faster(request: Request, answer: Answer) -> Answer:
        if request.method == "GET" and "/Slot?" in request.target and slot["meta"]["versionId"] in answer.body.decode():
            upstream.door.rewrite = None
            claim = [{"system": "urn:frontdesk:claim", "value": "another"}]
            await upstream.put({**slot, "status": "busy", "identifier": claim})
        return answer

    upstream.door.rewrite = somebody_is_faster
    refused = await agent.post(
        "/api/appointments", json={**body, "confirmationToken": challenge.json()["confirmationToken"]}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "slot_unavailable")
    assert await upstream.live_appointments() == []
    assert (await upstream.read(f"{CHEN}540"))["identifier"] == [{"system": "urn:frontdesk:claim", "value": "another"}]


async def test_simultaneous_confirmations_book_once_and_get_the_same_answer(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await _booking(agent)
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    answers = await asyncio.gather(
        *(agent.post("/api/appointments", json={**body, "confirmationToken": token}) for _ in range(6))
    )
    assert {answer.status_code for answer in answers} == {201}, [answer.text for answer in answers]
    assert len({answer.json()["appointmentId"] for answer in answers}) == 1
    assert len(await upstream.live_appointments()) == 1


async def test_of_many_callers_one_gets_the_slot(fhir: World, upstream: Upstream) -> None:
    integration = await _integration(fhir)
    people = [await patient_id(integration, name) for name in ("Ada", "Alan", "José")]
    slot = (await slots(integration))[0]["id"]
    bodies = [{"patientId": person, "slotId": slot} for person in people]
    answers = await asyncio.gather(*(integration.post("/api/appointments", json=body) for body in bodies))
    codes = sorted(answer.json().get("code", "booked") for answer in answers)
    assert codes == ["booked", "slot_unavailable", "slot_unavailable"]
    assert len(await upstream.live_appointments()) == 1


async def test_a_patient_is_not_booked_twice_at_once(fhir: World, upstream: Upstream) -> None:
    """With two providers at the same time: no slot stands between the two bookings."""
    integration = await _integration(fhir)
    bodies = [
        await _booking(integration, visitTypeId=22, procedureId=103, providerId=provider) for provider in (10, 11)
    ]
    answers = await asyncio.gather(*(integration.post("/api/appointments", json=body) for body in bodies))
    codes = sorted(answer.json().get("code", "booked") for answer in answers)
    assert codes in (["booked", "upstream_unavailable"], ["booked", "validation"])
    assert len(await upstream.live_appointments()) == 1


async def test_an_integration_books_once_under_a_key(fhir: World, upstream: Upstream) -> None:
    integration = await _integration(fhir)
    body = await _booking(integration)
    headers = {"Idempotency-Key": "one"}
    first = await integration.post("/api/appointments", json=body, headers=headers)
    again = await integration.post("/api/appointments", json=body, headers=headers)
    assert (first.status_code, again.json()) == (201, first.json())
    other = await integration.post(
        "/api/appointments", json={**body, "slotId": body["slotId"][:-1] + "A"}, headers=headers
    )
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert len(await upstream.live_appointments()) == 1


def _refuse(status: int, text: str, kind: str = "Appointment") -> Any:
    async def rewrite(request: Request, answer: Answer) -> Answer:
        if request.method == "POST" and f"/{kind}" in request.target:
            issue = {"severity": "error", "code": "business-rule", "details": {"text": text}}
            document = {"resourceType": "OperationOutcome", "issue": [issue]}
            return Answer(status, {}, json.dumps(document).encode())
        return answer

    return rewrite


class _Refusing:
    """A server that says no to new records of a kind, without storing them."""

    def __init__(self, inner: Any, status: int, text: str, kind: str) -> None:
        self._inner, self._status, self._text, self._kind = inner, status, text, kind

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "POST" and target == f"/{self._kind}":
            request = Request(method, target, headers, body)
            refused: Answer = await _refuse(self._status, self._text, self._kind)(request, Answer(200, {}, b""))
            return refused
        answer: Answer = await self._inner.answer(method, target, headers, body)
        return answer


@pytest.mark.parametrize(
    ("status", "code", "detail"),
    [
        (409, "slot_unavailable", None),
        (412, "slot_unavailable", None),
        (422, "validation", "The practitioner is on leave."),
        (400, "validation", "The practitioner is on leave."),
    ],
)
async def test_a_booking_that_the_server_declines_is_told(
    fhir: World, upstream: Upstream, status: int, code: str, detail: str | None
) -> None:
    agent = await fhir.client()
    body = await _booking(agent)
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    inner = upstream.door.backend
    upstream.door.backend = _Refusing(inner, status, "The practitioner\nis on leave.", "Appointment")
    refused = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert refused.json()["code"] == code
    if detail is not None:
        assert refused.json()["detail"] == detail
        assert refused.json()["errors"] == [{"field": "$", "rule": "declined", "message": detail}]
    upstream.door.backend = inner
    assert await upstream.busy_slots() == set()
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert answer.status_code == 201, "the token stays valid"


async def test_a_person_whom_the_server_has_already_is_a_conflict(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    person = {"firstName": "Zaphod", "lastName": "Beeblebrox", "phone": "+1 555 010 0155", "dob": "1978-08-26"}
    token = (await agent.post("/api/patients", json=person)).json()["confirmationToken"]
    upstream.door.backend = _Refusing(upstream.door.backend, 409, "A duplicate", "Patient")
    refused = await agent.post("/api/patients", json={**person, "confirmationToken": token})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


class _LateFirstAttempt:
    """A server that says it failed to create, and does so when the second attempt arrives: just before that one."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._first: tuple[dict[str, str], bytes] | None = None

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "POST" and target == "/Appointment":
            if self._first is None:
                self._first = (headers, body)
                return Answer(503, {}, b"")
            await self._inner.answer(method, target, *self._first)
        answer: Answer = await self._inner.answer(method, target, headers, body)
        return answer


async def test_an_earlier_attempt_that_arrives_late_is_found_and_not_doubled(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await _booking(agent)
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    upstream.door.backend = _LateFirstAttempt(upstream.door.backend)
    failed = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert (failed.status_code, failed.json()["code"]) == (502, "upstream_unavailable")
    booked = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert booked.status_code == 201, booked.text
    assert len(await upstream.live_appointments()) == 1
    await settle(fhir)
    await fhir.renew(agent)
    assert len(await upstream.live_appointments()) == 1
    assert await upstream.busy_slots() == {f"{CHEN}540"}
    path = f"/api/appointments/{booked.json()['appointmentId']}/cancel"
    assert (await confirmed(agent, "POST", path, {})).status_code == 200
    assert await upstream.busy_slots() == set()


async def test_a_refusal_never_repeats_what_was_said_about_a_person(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    person = {"firstName": "Zaphod", "lastName": "Beeblebrox", "phone": "+1 555 010 0155", "dob": "1978-08-26"}
    token = (await agent.post("/api/patients", json=person)).json()["confirmationToken"]
    inner = upstream.door.backend
    text = "Zaphod BEEBLEBROX, born 1978-08-26, is not eligible"
    upstream.door.backend = _Refusing(inner, 422, text, "Patient")
    refused = await agent.post("/api/patients", json={**person, "confirmationToken": token})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "… …, born …, is not eligible"


@pytest.mark.parametrize("difference", ["start", "slot", "patient"])
async def test_a_booking_that_is_not_what_was_asked_is_undone(fhir: World, upstream: Upstream, difference: str) -> None:
    agent = await fhir.client()

    class Elsewhere:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
            if method == "POST" and target == "/Appointment":
                document = json.loads(body)
                if difference == "start":
                    document["start"], document["end"] = "2026-11-16T19:00:00Z", "2026-11-16T19:15:00Z"
                elif difference == "slot":
                    document["slot"] = [{"reference": f"{CHEN}600"}]
                else:
                    document["participant"][0]["actor"]["reference"] = "Patient/alan"
                body = json.dumps(document).encode()
            answer: Answer = await self._inner.answer(method, target, headers, body)
            return answer

    inner = upstream.door.backend
    body = await _booking(agent)
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    upstream.door.backend = Elsewhere(inner)
    refused = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert refused.status_code == 422
    assert "something else" in refused.json()["detail"]
    upstream.door.backend = inner
    assert await upstream.live_appointments() == []
    assert await upstream.busy_slots() == set()
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert answer.status_code == 201
    assert len(await upstream.live_appointments()) == 1


async def test_a_move_that_is_not_what_was_asked_keeps_the_old_time(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    before = (await agent.get(f"/api/appointments/{appointment}")).json()
    body = {"slotId": (await slots(agent))[5]["id"]}
    path = f"/api/appointments/{appointment}/reschedule"
    token = (await agent.post(path, json=body)).json()["confirmationToken"]

    class Elsewhere:
        def __init__(self, inner: Any) -> None:
            self._inner, self._done = inner, False

        async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
            if method == "PUT" and target.startswith("/Appointment/") and not self._done:
                self._done = True
                changed = {"start": "2026-11-16T19:00:00Z", "end": "2026-11-16T19:15:00Z"}
                body = json.dumps({**json.loads(body), **changed}).encode()
            answer: Answer = await self._inner.answer(method, target, headers, body)
            return answer

    upstream.door.backend = Elsewhere(upstream.door.backend)
    refused = await agent.post(path, json={**body, "confirmationToken": token})
    assert refused.status_code == 422
    assert "something else" in refused.json()["detail"]
    after = (await agent.get(f"/api/appointments/{appointment}")).json()
    assert (after["start"], after["status"]) == (before["start"], "booked")
    assert await upstream.busy_slots() == {f"{CHEN}540"}
    moved = await agent.post(path, json={**body, "confirmationToken": token})
    assert moved.status_code == 200, "the token stays valid"
    assert await upstream.busy_slots() == {f"{CHEN}630"}


async def test_a_lost_booking_that_is_not_what_was_asked_is_undone_when_it_is_found(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    body = await _booking(agent)
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    upstream.door.harm = _lose_answers
    await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    upstream.door.reset()
    [stored] = await upstream.live_appointments()
    await upstream.put({**stored, "start": "2026-11-16T19:00:00Z", "end": "2026-11-16T19:15:00Z"})
    await settle(fhir)
    await fhir.renew(agent)
    assert await upstream.live_appointments() == []
    assert await upstream.busy_slots() == set()
    assert (await agent.post("/api/appointments", json={**body, "confirmationToken": token})).status_code == 428


async def test_a_write_on_its_way_is_stored_without_the_person(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    person = {"firstName": "Zaphod", "lastName": "Beeblebrox", "phone": "+1 555 010 0155", "dob": "1978-08-26"}
    cancel = f"/api/appointments/{await book(agent)}/cancel"
    writes: list[tuple[str, dict[str, str]]] = [("/api/patients", person), (cancel, {"reason": "Zaphod is ill"})]
    for path, body in writes:
        token = (await agent.post(path, json=body)).json()["confirmationToken"]
        upstream.door.reset()
        upstream.door.harm = _nothing_after_a_write(upstream)
        lost = await agent.post(path, json={**body, "confirmationToken": token})
        assert lost.json()["code"] == "confirmation_incomplete"
        upstream.door.reset()
    async with fhir.database.transaction(1) as connection:
        stored = await connection.fetch("SELECT * FROM upstream_write")
    assert len(stored) == 2
    text = str([dict(row) for row in stored])
    for mark in ("Zaphod", "Beeblebrox", "0155", "1978"):
        assert mark not in text


def _nothing_after_a_write(upstream: Upstream) -> Callable[[Request], Fault | None]:
    return lambda _: "cut_after" if any(request.is_write for request in upstream.door.seen) else None


async def test_a_change_that_was_accepted_and_not_carried_out_is_no_success(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)

    async def ignore(request: Request, answer: Answer) -> Answer:
        if request.method == "PUT" and "/Appointment/" in request.target:
            return Answer(200, {}, answer.body.replace(b'"cancelled"', b'"booked"'))
        return answer

    upstream.door.rewrite = ignore
    answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert answer.status_code == 422
    assert "did not carry it out" in answer.json()["detail"]


async def test_an_appointment_that_changed_meanwhile_is_judged_anew(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}/confirm"
    token = (await agent.post(path, json={})).json()["confirmationToken"]
    [stored] = await upstream.live_appointments()

    async def meanwhile(request: Request, answer: Answer) -> Answer:
        if request.method == "GET" and "/Appointment/" in request.target:
            upstream.door.rewrite = None
            await upstream.put({**stored, "status": "cancelled"})
        return answer

    upstream.door.rewrite = meanwhile
    refused = await agent.post(path, json={"confirmationToken": token})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["detail"] == "The appointment is already cancelled."


async def test_ids_are_stable_for_ever(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    patient, appointment = await patient_id(agent), await book(agent)
    number = (await agent.get(f"/api/patients/{patient}")).json()["number"]
    renamed = {"1": "Location/renamed", "2": "Location/westside"}
    await upstream.create({"resourceType": "Location", "name": "Renamed"})
    await fhir.import_file(file_text("harbor", upstream.door.address, locations=renamed))
    assert await patient_id(agent) == patient
    found = (await agent.get(f"/api/appointments/{appointment}")).json()
    assert (found["locationId"], found["patientId"]) == (1, patient), "the former reference still leads to its id"
    listed = await page_through(agent, "/api/appointments", patientId=number)
    assert [item["id"] for item in listed] == [appointment]


async def test_a_list_is_paged_through_completely(fhir: World, upstream: Upstream) -> None:
    integration = await _integration(fhir)
    people = [await patient_id(integration, name) for name in ("Ada", "Alan", "José")]
    found = await slots(integration)
    for index in range(7):
        body = {"patientId": people[index % 3], "slotId": found[index]["id"]}
        assert (await integration.post("/api/appointments", json=body)).status_code == 201
    listed = await page_through(integration, "/api/appointments", limit=2)
    assert [item["start"] for item in listed] == [slot["start"] for slot in found[:7]]


def _lose_answers(request: Request) -> Fault | None:
    """The appointment is created, and neither that nor anything about it can be heard."""
    return "cut_after" if request.target == "/fhir/Appointment" or "identifier=" in request.target else None


async def test_what_a_lost_write_turned_out_to_be_is_recorded_once(fhir: World, upstream: Upstream) -> None:
    integration = await _integration(fhir)
    body, headers = await _booking(integration), {"Idempotency-Key": "k"}
    upstream.door.harm = _lose_answers
    for _ in range(2):
        lost = await integration.post("/api/appointments", json=body, headers=headers)
        assert (lost.status_code, lost.json()["code"]) == (409, "confirmation_incomplete")
    upstream.door.reset()
    await asyncio.gather(settle(fhir), settle(fhir))  # two nodes
    await fhir.renew(integration)
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
    integration = await _integration(fhir)
    body = await _booking(integration)
    upstream.door.harm = _lose_answers
    lost = await integration.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    await settle(fhir)
    await fhir.renew(integration)
    [listed] = (await integration.get("/api/appointments", params={"patientId": body["patientId"]})).json()["items"]
    assert listed["start"] == "2026-11-16T09:00:00-05:00"
