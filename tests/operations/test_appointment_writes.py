"""Booking, cancelling, confirming and moving appointments: every status the contract gives them."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from frontdesk.domain.local_time import minute_of
from frontdesk.systems.native.system import NativeSystem
from frontdesk.systems.port import Outcome
from tests.doors.mcp_speech import call
from tests.support.world import MONDAY, PRACTICE, World, book, confirmed, patient_id, slots


async def _book(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/api/appointments", json=body)


async def _set_status(world: World, appointment: str, status: str) -> None:
    async with world.database.transaction(1) as connection:
        await connection.execute(
            "UPDATE appointment SET status = $2 WHERE practice_id = 1 AND appointment_id = $1", appointment, status
        )


@pytest.fixture
async def integration(world: World) -> httpx.AsyncClient:
    return await world.client(grant="integration")


async def test_an_unknown_patient_or_slot_is_not_found(integration: httpx.AsyncClient) -> None:
    slot, ada = (await slots(integration))[0]["id"], await patient_id(integration)
    for body in (
        {"patientId": "pat_" + "0" * 22, "slotId": slot},
        {"patientId": "nobody", "slotId": slot},
        {"patientId": ada, "slotId": "slt_" + "A" * 40},
        {"patientId": ada, "slotId": slot[:-1] + ("A" if slot[-1] != "A" else "B")},
    ):
        answer = await _book(integration, **body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), body


async def test_missing_and_unknown_fields_are_all_named(integration: httpx.AsyncClient) -> None:
    answer = await integration.post("/api/appointments", json={"slot": "x"})
    assert answer.status_code == 422
    assert {(e["field"], e["rule"]) for e in answer.json()["errors"]} == {
        ("slot", "unknown"),
        ("patientId", "required"),
        ("slotId", "required"),
    }


async def test_a_taken_slot_is_unavailable(integration: httpx.AsyncClient) -> None:
    slot = (await slots(integration))[0]["id"]
    assert (await _book(integration, patientId=await patient_id(integration), slotId=slot)).status_code == 201
    answer = await _book(integration, patientId=await patient_id(integration, "Alan"), slotId=slot)
    assert (answer.status_code, answer.json()["code"]) == (409, "slot_unavailable")


async def test_a_slot_that_has_begun_is_unavailable(world: World, integration: httpx.AsyncClient) -> None:
    slot, ada = (await slots(integration))[0]["id"], await patient_id(integration)
    world.clock.now = world.clock.now.replace(day=16, hour=14)
    await world.renew(integration)
    assert (await _book(integration, patientId=ada, slotId=slot)).json()["code"] == "slot_unavailable"


@pytest.mark.parametrize(
    ("who", "visit_type", "procedure"),
    [("Ada", 20, 100), ("Grace", 21, 101)],
    ids=["existing as new", "new as existing"],
)
async def test_the_wrong_kind_of_patient_is_declined(
    integration: httpx.AsyncClient, who: str, visit_type: int, procedure: int
) -> None:
    slot = (await slots(integration, visitTypeId=visit_type, procedureId=procedure))[0]["id"]
    answer = await _book(integration, patientId=await patient_id(integration, who), slotId=slot)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert answer.json()["errors"][0]["rule"] == "declined"
    assert answer.json()["errors"][0]["message"] == answer.json()["detail"]


async def test_a_patient_who_is_busy_then_is_declined(integration: httpx.AsyncClient) -> None:
    ada = await patient_id(integration)
    await _book(integration, patientId=ada, slotId=(await slots(integration, procedureId=102))[0]["id"])
    elsewhere = (await slots(integration, providerId=12))[1]["id"]
    answer = await _book(integration, patientId=ada, slotId=elsewhere)
    assert (answer.status_code, answer.json()["errors"][0]["rule"]) == (422, "declined")


async def test_the_buffer_after_a_procedure_is_kept_free(integration: httpx.AsyncClient) -> None:
    grace = await patient_id(integration, "Grace")
    exam = (await slots(integration, visitTypeId=20, procedureId=100))[0]
    assert (await _book(integration, patientId=grace, slotId=exam["id"])).status_code == 201
    free = [s["start"][11:16] for s in await slots(integration)]
    assert free[0] == "09:45", "half an hour of exam, a quarter of buffer"


async def test_cancelling_frees_the_time_and_keeps_the_reason(world: World, integration: httpx.AsyncClient) -> None:
    agent = await world.client()
    appointment = await book(agent)
    answer = await integration.post(f"/api/appointments/{appointment}/cancel", json={"reason": "Travelling"})
    assert (answer.status_code, answer.json()) == (200, {"appointmentId": appointment, "status": "cancelled"})
    read = (await integration.get(f"/api/appointments/{appointment}")).json()
    assert read["cancellationReason"] == "Travelling"
    assert read["cancelledAt"] == "2026-11-15T08:00:00Z"
    assert (await slots(integration))[0]["start"] == read["start"]
    again = await integration.post(f"/api/appointments/{appointment}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


async def test_confirming_twice_changes_nothing(world: World, integration: httpx.AsyncClient) -> None:
    appointment = await book(await world.client())
    path = f"/api/appointments/{appointment}"
    assert (await integration.post(f"{path}/confirm")).json() == {"appointmentId": appointment, "status": "confirmed"}
    before = (await integration.get(path)).json()
    assert before["attendanceConfirmedAt"] == "2026-11-15T08:00:00Z"
    world.clock.advance(minutes=5)
    again = await integration.post(f"{path}/confirm")
    assert (again.status_code, again.json()["status"]) == (200, "confirmed")
    assert (await integration.get(path)).json() == before


async def test_moving_an_appointment_books_it_anew(world: World, integration: httpx.AsyncClient) -> None:
    appointment = await book(await world.client())
    path = f"/api/appointments/{appointment}"
    await integration.post(f"{path}/confirm")
    tuesday = (MONDAY + timedelta(days=1)).isoformat()
    slot = (await slots(integration, providerId=12, **{"from": tuesday, "to": tuesday}))[2]
    answer = await integration.post(f"{path}/reschedule", json={"slotId": slot["id"]})
    assert (answer.status_code, answer.json()) == (200, {"appointmentId": appointment, "status": "booked"})
    moved = (await integration.get(path)).json()
    assert (moved["start"], moved["providerName"]) == (slot["start"], "Dr. Amara Okafor")
    assert moved["rescheduledFrom"] == "2026-11-16T09:00:00-05:00"
    assert "attendanceConfirmedAt" not in moved
    assert (await slots(integration))[0]["start"] == "2026-11-16T09:00:00-05:00", "the old time is free again"


async def test_a_move_to_its_own_slot_changes_nothing(world: World, integration: httpx.AsyncClient) -> None:
    agent, own = await world.client(), (await slots(integration))[0]["id"]
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}"
    await integration.post(f"{path}/confirm")
    before, events = (await integration.get(path)).json(), await _events(world)
    world.clock.advance(minutes=5)
    # Nobody could book the slot any more, and the directory has changed: the appointment has it all the same.
    closed = PRACTICE.replace("SLUG", "harbor").replace(
        "Family Medicine,", "Family Medicine, minimumNoticeMinutes: 9999,"
    )
    await world.import_file(closed)
    kept = {"appointmentId": appointment, "status": "confirmed"}
    answer = await integration.post(f"{path}/reschedule", json={"slotId": own})
    assert (answer.status_code, answer.json()) == (200, kept)
    challenge = await agent.post(f"{path}/reschedule", json={"slotId": own})
    assert challenge.status_code == 428, "an agent's write is proposed first, whatever it would change"
    assert challenge.json()["readBack"]["start"] == before["start"]
    token = challenge.json()["confirmationToken"]
    for _ in range(2):
        answer = await agent.post(f"{path}/reschedule", json={"slotId": own, "confirmationToken": token})
        assert (answer.status_code, answer.json()) == (200, kept)
    assert (await integration.get(path)).json() == before
    assert await _events(world) == events
    await integration.post(f"{path}/cancel")
    refused = await integration.post(f"{path}/reschedule", json={"slotId": own})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_a_move_to_its_own_slot_keeps_a_confirmation_that_came_meanwhile(
    integration: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (await slots(integration))[0]["id"]
    body = {"patientId": await patient_id(integration), "slotId": own}
    path = f"/api/appointments/{(await _book(integration, **body)).json()['appointmentId']}"
    perform = NativeSystem.perform

    async def confirmed_before(*given: Any) -> Outcome:
        monkeypatch.undo()
        await integration.post(f"{path}/confirm")
        return await perform(*given)

    monkeypatch.setattr(NativeSystem, "perform", confirmed_before)
    answer = await integration.post(f"{path}/reschedule", json={"slotId": own})
    assert (answer.status_code, answer.json()["status"]) == (200, "confirmed")
    assert (await integration.get(path)).json()["status"] == "confirmed"


async def _events(world: World) -> int:
    async with world.database.transaction(1) as connection:
        count: int = await connection.fetchval("SELECT count(*) FROM outbox WHERE practice_id = 1")
    return count


async def test_an_appointment_can_move_into_a_time_that_overlaps_its_own(
    world: World, integration: httpx.AsyncClient
) -> None:
    long = (await slots(integration, procedureId=102))[0]
    ada = await patient_id(integration)
    appointment = (await _book(integration, patientId=ada, slotId=long["id"])).json()["appointmentId"]
    later = world.service.engine.slot_ids(1).encode_many(10, 1, 21, 102, 45, [_minutes(long["start"]) + 15])[0]
    answer = await integration.post(f"/api/appointments/{appointment}/reschedule", json={"slotId": later})
    assert answer.status_code == 200, answer.text


def _minutes(start: str) -> int:
    from datetime import datetime

    return minute_of(datetime.fromisoformat(start))


async def test_a_move_that_is_refused_keeps_the_old_time(integration: httpx.AsyncClient) -> None:
    first, second = (await slots(integration))[:2]
    ada, alan = await patient_id(integration), await patient_id(integration, "Alan")
    one = (await _book(integration, patientId=ada, slotId=first["id"])).json()["appointmentId"]
    await _book(integration, patientId=alan, slotId=second["id"])
    answer = await integration.post(f"/api/appointments/{one}/reschedule", json={"slotId": second["id"]})
    assert answer.json()["code"] == "slot_unavailable"
    read = (await integration.get(f"/api/appointments/{one}")).json()
    assert (read["start"], read["status"]) == (first["start"], "booked")
    assert "rescheduledFrom" not in read


@pytest.mark.parametrize("status", ["cancelled", "arrived", "completed", "noShow"])
async def test_no_step_leads_out_of_a_final_state(world: World, integration: httpx.AsyncClient, status: str) -> None:
    appointment = await book(await world.client())
    await _set_status(world, appointment, status)
    free = (await slots(integration))[4]["id"]
    for step, body in (("cancel", {}), ("confirm", {}), ("reschedule", {"slotId": free})):
        answer = await integration.post(f"/api/appointments/{appointment}/{step}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict"), step
    unknown = await integration.post(f"/api/appointments/{appointment}/reschedule", json={"slotId": "slt_unknown"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found"), "existence comes before state"


async def test_a_past_appointment_can_be_cancelled_but_not_confirmed_or_moved(
    world: World, integration: httpx.AsyncClient
) -> None:
    appointment = await book(await world.client())
    world.clock.now = world.clock.now.replace(day=16, hour=20)
    await world.renew(integration)
    tuesday = (MONDAY + timedelta(days=1)).isoformat()
    free = (await slots(integration, **{"from": tuesday, "to": tuesday}))[0]["id"]
    path = f"/api/appointments/{appointment}"
    assert (await integration.post(f"{path}/confirm")).json()["code"] == "conflict"
    assert (await integration.post(f"{path}/reschedule", json={"slotId": free})).json()["code"] == "conflict"
    assert (await integration.post(f"{path}/cancel")).status_code == 200


@pytest.mark.parametrize("blank", ["", "  ", "\u00a0\u3000", "\t\n", " " * 600])
async def test_a_blank_reason_counts_as_none(world: World, blank: str) -> None:
    agent = await world.client()
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}/cancel"
    challenge = (await agent.post(path, json={"reason": blank})).json()
    assert "reason" not in challenge["readBack"]
    cancelled = await agent.post(path, json={"confirmationToken": challenge["confirmationToken"]})
    assert cancelled.status_code == 200, "the same request as one without a reason"
    assert "cancellationReason" not in (await agent.get(f"/api/appointments/{appointment}")).json()
    again = await call(agent, "cancel_appointment", appointmentId=await book(agent), reason=blank)
    assert "reason" not in again["structuredContent"]["readBack"]


async def test_the_read_back_of_cancelling_tells_the_appointment(world: World) -> None:
    agent = await world.client()
    appointment = await book(agent)
    challenge = await agent.post(f"/api/appointments/{appointment}/cancel", json={"reason": "Travelling"})
    assert challenge.json()["readBack"] == {
        "firstName": "Ada",
        "lastName": "Lovelace",
        "appointmentId": appointment,
        "patientId": await patient_id(agent),
        "status": "booked",
        "start": "2026-11-16T09:00:00-05:00",
        "end": "2026-11-16T09:15:00-05:00",
        "providerName": "Dr. Robert Chen",
        "locationName": "Downtown",
        "visitTypeName": "Follow-up",
        "procedureName": "Follow-up visit",
        "timeZone": "America/New_York",
        "weekday": "Monday",
        "reason": "Travelling",
    }


@pytest.mark.parametrize(
    ("reason", "status", "rule"),
    [
        ("x" * 501, 422, "maxLength"),
        ("a\x00b", 422, "characters"),
        ("line\nbreak", 422, "characters"),
        (7, 400, "Binding"),
    ],
)
async def test_a_reason_keeps_its_rules(
    world: World, integration: httpx.AsyncClient, reason: Any, status: int, rule: str
) -> None:
    appointment = await book(await world.client())
    answer = await integration.post(f"/api/appointments/{appointment}/cancel", json={"reason": reason})
    assert (answer.status_code, answer.json()["errors"][0]["rule"]) == (status, rule)


async def test_a_directory_change_between_the_phases_is_noticed(world: World) -> None:
    """Hours shrink after the challenge: the confirmed booking is judged by the new ones."""
    from frontdesk.practice_file import parse
    from frontdesk.store.practices import import_practice
    from tests.support.world import PRACTICE

    agent = await world.client()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    shorter = PRACTICE.replace("SLUG", "harbor").replace('from: "09:00", to: "12:00"', 'from: "10:00", to: "12:00"')
    await import_practice(world.database, parse(shorter), world.clock.now)
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": token})
    assert (answer.status_code, answer.json()["code"]) == (409, "slot_unavailable")
    assert (await slots(agent))[0]["start"] == "2026-11-16T10:00:00-05:00"


async def test_confirming_writes_of_an_agent_answer_200(world: World) -> None:
    agent = await world.client()
    appointment = await book(agent)
    answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/confirm", {})
    assert (answer.status_code, answer.json()["status"]) == (200, "confirmed")
