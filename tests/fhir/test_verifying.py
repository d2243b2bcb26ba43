"""Writes that a FHIR server stored differently from the request are undone and never answered as a success."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fhir.calls import CHEN, ZAPHOD, booking, challenged
from tests.fhir.misbehaving import Altering, instead, lose_answers, nothing_after_a_write
from tests.fhir.practice import Upstream, settle
from tests.support.world import World, book, patient_id, slots

Resource = dict[str, Any]


_elsewhen = instead(start="2026-11-16T19:00:00Z", end="2026-11-16T19:15:00Z")
_elsewhere = instead(slot=[{"reference": f"{CHEN}600"}])


def _unmarked(resource: Resource) -> Resource:
    return {key: value for key, value in _elsewhen(resource).items() if key != "identifier"}


def _for_somebody_else(resource: Resource) -> Resource:
    _, *others = resource["participant"]
    return {**resource, "participant": [{"actor": {"reference": "Patient/alan"}, "status": "needs-action"}, *others]}


@pytest.mark.parametrize(
    "change", [_elsewhen, _elsewhere, _for_somebody_else, _unmarked], ids=["time", "slot", "patient", "unmarked"]
)
async def test_a_booking_that_is_not_what_was_asked_is_undone(
    fhir: World, upstream: Upstream, change: Callable[[Resource], Resource]
) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.backend = Altering(upstream.door.backend, "POST", "Appointment", change)
    refused = await agent.post("/api/appointments", json=body)
    assert refused.status_code == 422
    assert "differed from the request" in refused.json()["detail"]
    assert await upstream.live_appointments() == []
    assert await upstream.busy_slots() == set()
    answer = await agent.post("/api/appointments", json=body)
    assert answer.status_code == 201, "the token stays valid"
    assert len(await upstream.live_appointments()) == 1


async def test_a_move_that_is_not_what_was_asked_keeps_the_old_time(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    before = (await agent.get(f"/api/appointments/{appointment}")).json()
    path = f"/api/appointments/{appointment}/reschedule"
    body = await challenged(agent, path, {"slotId": (await slots(agent))[5]["id"]})
    upstream.door.backend = Altering(upstream.door.backend, "PUT", "Appointment", _elsewhen)
    refused = await agent.post(path, json=body)
    assert refused.status_code == 422
    assert "differed from the request" in refused.json()["detail"]
    after = (await agent.get(f"/api/appointments/{appointment}")).json()
    assert (after["start"], after["status"]) == (before["start"], "booked")
    assert await upstream.busy_slots() == {f"{CHEN}540"}
    moved = await agent.post(path, json=body)
    assert moved.status_code == 200, "the token stays valid"
    assert await upstream.busy_slots() == {f"{CHEN}630"}


async def test_a_status_that_was_accepted_and_not_set_is_no_success(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    path = f"/api/appointments/{await book(agent)}/cancel"
    [before] = await upstream.live_appointments()
    body = await challenged(agent, path, {})
    arrived = instead(status="arrived")
    upstream.door.backend = Altering(upstream.door.backend, "PUT", "Appointment", arrived)
    answer = await agent.post(path, json=body)
    assert answer.status_code == 422
    assert "did not carry it out" in answer.json()["detail"]
    [after] = await upstream.live_appointments()
    assert {**after, "meta": None} == {**before, "meta": None}, "as it was"


async def test_a_patient_who_was_stored_otherwise_is_put_back(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    path = f"/api/patients/{await patient_id(agent, 'Grace')}"
    before = await upstream.read("Patient/grace")
    body = await challenged(agent, path, {"lastName": "Murray"}, "PATCH")
    renamed = instead(birthDate="1906-12-09")
    upstream.door.backend = Altering(upstream.door.backend, "PUT", "Patient", renamed)
    answer = await agent.patch(path, json=body)
    assert answer.status_code == 422
    after = await upstream.read("Patient/grace")
    assert {**after, "meta": None} == {**before, "meta": None}


# The reconciler compares a lost write with the record it finds, too.


async def test_a_lost_booking_that_is_not_what_was_asked_is_undone_when_it_is_found(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.backend = Altering(upstream.door.backend, "POST", "Appointment", _elsewhen)
    upstream.door.harm = lose_answers
    lost = await agent.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    await settle(fhir)
    assert await upstream.live_appointments() == []
    assert await upstream.busy_slots() == set()
    assert (await agent.post("/api/appointments", json=body)).status_code == 201


async def test_a_lost_move_that_is_not_what_was_asked_is_put_back_when_it_is_found(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    appointment = await book(agent, visitTypeId=22, procedureId=103)
    [before] = await upstream.live_appointments()
    found = await slots(agent, visitTypeId=22, procedureId=103, providerId=11)
    path = f"/api/appointments/{appointment}/reschedule"
    body = await challenged(agent, path, {"slotId": found[5]["id"]})
    upstream.door.backend = Altering(upstream.door.backend, "PUT", "Appointment", _elsewhen)
    upstream.door.reset()
    upstream.door.harm = nothing_after_a_write(upstream, "Appointment")
    lost = await agent.post(path, json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    await settle(fhir)
    [after] = await upstream.live_appointments()
    ours = ("identifier", "meta")
    assert {key: value for key, value in after.items() if key not in ours} == {
        key: value for key, value in before.items() if key not in ours
    }
    assert await upstream.busy_slots() == {f"{CHEN}540"}
    assert (await agent.post(path, json=body)).status_code == 200, "the token stays valid"


async def test_a_lost_change_of_status_that_did_not_happen_is_no_success(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    path = f"/api/appointments/{await book(agent)}/cancel"
    body = await challenged(agent, path, {})
    booked = instead(status="booked")
    upstream.door.backend = Altering(upstream.door.backend, "PUT", "Appointment", booked)
    upstream.door.reset()
    upstream.door.harm = nothing_after_a_write(upstream, "Appointment")
    lost = await agent.post(path, json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    await settle(fhir)
    assert len(await upstream.busy_slots()) == 1
    assert (await agent.post(path, json=body)).status_code == 200, "and can be asked for again"
    assert await upstream.live_appointments() == []
    assert await upstream.busy_slots() == set()


async def test_what_could_not_be_undone_at_once_is_undone_later(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/patients", ZAPHOD)
    renamed = instead(birthDate="1906-12-09")
    upstream.door.backend = Altering(upstream.door.backend, "POST", "Patient", renamed)
    upstream.door.harm = lambda request: "error_before" if request.method == "PUT" else None
    failed = await agent.post("/api/patients", json=body)
    assert failed.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    await settle(fhir)
    [stored] = [each for each in await upstream.search("Patient") if each["name"][0]["family"] == "Beeblebrox"]
    assert stored["active"] is False
    created = await agent.post("/api/patients", json=body)
    assert created.status_code == 201, created.text


async def test_what_was_changed_after_a_lost_booking_stays(fhir: World, upstream: Upstream) -> None:
    """Between a lost answer and the look at what became of it the appointment can be found, and moved."""
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.harm = lose_answers
    lost = await agent.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    upstream.door.reset()
    [item] = (await agent.get("/api/appointments", params={"patientId": body["patientId"]})).json()["items"]
    path = f"/api/appointments/{item['id']}/reschedule"
    move = await challenged(agent, path, {"slotId": (await slots(agent))[3]["id"]})
    assert (await agent.post(path, json=move)).status_code == 200
    await settle(fhir)
    [stored] = await upstream.live_appointments()
    assert stored["start"] == "2026-11-16T15:00:00Z"
    resent = await agent.post("/api/appointments", json=body)
    assert (resent.status_code, resent.json()["appointmentId"]) == (201, item["id"])
