"""One appointment at the desk: every step, the states it is legal from, who may, and its history."""

import asyncio
from datetime import timedelta

import httpx
import pytest

from frontdesk.console.pages.appointments import DONE
from tests.console.desk import Document, key_in, records, stored, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.support.world import World, book, confirmed, patient_id, slots

NEW = "a-key-of-a-form"


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


async def page(browser: httpx.AsyncClient, appointment: str) -> str:
    answer = await browser.get(f"/console/appointments/{appointment}")
    assert answer.status_code == 200, answer.text
    return answer.text


async def status_of(world: World, appointment: str) -> str:
    sql = "SELECT status FROM appointment WHERE practice_id = $1 AND appointment_id = $2"
    return str((await stored(world, sql, appointment))[0]["status"])


async def set_status(world: World, appointment: str, status: str) -> None:
    sql = "UPDATE appointment SET status = $3 WHERE practice_id = $1 AND appointment_id = $2 RETURNING 1"
    await stored(world, sql, appointment, status)


async def record(browser: httpx.AsyncClient, appointment: str, status: str, key: str = NEW) -> httpx.Response:
    return await browser.post(f"/console/appointments/{appointment}/record", data={"status": status, "key": key})


async def on_the_day(world: World, hours: float = 30.5) -> httpx.AsyncClient:
    """Half past nine on Monday at the location, and somebody who signs in then."""
    world.clock.advance(hours=hours)
    return await signed_in(world, name="Ana")


async def test_the_page_tells_who_what_when_and_who_booked_it(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    text = words(Document(await page(staff, await book(agent))).having("id", "appointment")[0].text)
    for part in ("Ada Lovelace", "Monday, 16 November 2026", "09:00–09:15 EST", "Dr. Robert Chen",
                 "Follow-up: Follow-up visit", "Downtown", "+1 555 010 0199", "10 Dec 1985",
                 "agent of harbor (agent)", "Booked by agent of harbor · Sun 15 Nov 2026, 03:00"):  # fmt: skip
        assert part in text


async def test_the_desk_confirms_attendance_once_however_often_the_form_is_sent(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    action = f"/console/appointments/{booked}/confirm"
    form = {"key": key_in(await page(staff, booked), action)}
    for _ in range(2):
        answer = await staff.post(action, data=form)
        assert answer.headers["Location"] == f"/console/appointments/{booked}?notice=attendance_confirmed"
    assert await status_of(world, booked) == "confirmed"
    assert len(await records(world, operation="confirm_attendance", outcome="executed")) == 1


async def test_the_desk_cancels_with_a_reason(world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    answer = await staff.post(
        f"/console/appointments/{booked}/cancel", data={"key": NEW, "reason": '<b>ill</b> & "tired"'}
    )
    assert answer.status_code == 303
    assert await status_of(world, booked) == "cancelled"
    html = await page(staff, booked)
    assert "&lt;b&gt;ill&lt;/b&gt; &amp; &#34;tired&#34;" in html
    assert "<b>ill" not in html
    [executed] = await records(world, operation="cancel_appointment", outcome="executed")
    assert executed["actor"] == staff.headers[TEST_STAFF]


async def test_a_refused_step_is_told_on_the_page_and_what_was_typed_stays(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})
    answer = await staff.post(f"/console/appointments/{booked}/confirm", data={"key": NEW})
    assert answer.status_code == 409
    assert "The appointment is already cancelled." in answer.text
    too_long = await staff.post(f"/console/appointments/{await book(agent)}/cancel", data={"reason": "x" * 501})
    assert too_long.status_code == 422
    assert "x" * 501 in too_long.text


LEGAL = {
    "arrived": {"booked", "confirmed", "completed", "noShow"},
    "completed": {"booked", "confirmed", "arrived"},
    "noShow": {"booked", "confirmed", "arrived"},
}


@pytest.mark.parametrize("before", ["booked", "confirmed", "arrived", "completed", "noShow", "cancelled"])
@pytest.mark.parametrize("status", ["arrived", "completed", "noShow"])
async def test_every_recorded_state_follows_from_its_legal_states_only(
    world: World, agent: httpx.AsyncClient, before: str, status: str
) -> None:
    booked = await book(agent)
    staff = await on_the_day(world)
    await set_status(world, booked, before)
    offered = f'name="status" value="{status}"' in await page(staff, booked)
    answer = await record(staff, booked, status)
    if before == status:  # once more changes nothing
        assert answer.status_code == 303
        assert not offered
    elif before in LEGAL[status]:
        assert answer.status_code == 303, answer.text
        assert offered
        assert await status_of(world, booked) == status
        events = await stored(world, "SELECT type FROM outbox WHERE practice_id = $1 ORDER BY event_id")
        assert [each["type"] for each in events] == ["appointment.booked", f"appointment.{status}"]
    else:
        assert answer.status_code == 409
        assert not offered
        assert await status_of(world, booked) == before


async def test_nobody_has_arrived_the_day_before_or_missed_what_has_not_begun(
    world: World, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    staff = await signed_in(world)
    for status in LEGAL:
        assert (await record(staff, booked, status)).status_code == 409
    staff = await on_the_day(world, hours=29)  # eight o'clock on the day, an hour before
    assert (await record(staff, booked, "noShow")).status_code == 409
    assert (await record(staff, booked, "completed")).status_code == 409
    assert (await record(staff, booked, "arrived")).status_code == 303


async def test_a_recorded_arrival_is_audited_with_the_person_and_happens_once(
    world: World, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    staff = await on_the_day(world)
    for _ in range(3):
        assert (await record(staff, booked, "arrived")).status_code == 303
    [executed] = await records(world, operation="console.record_arrived")
    assert (executed["outcome"], executed["actor"]) == ("executed", staff.headers[TEST_STAFF])
    assert booked in executed["subject_ids"]


async def test_a_patient_who_came_is_an_existing_patient_from_then_on(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent, "Grace", visitTypeId=20, procedureId=100)
    grace = await patient_id(agent, "Grace")
    staff = await on_the_day(world)
    await record(staff, booked, "noShow")
    sql = "SELECT seen FROM patient WHERE practice_id = $1 AND patient_id = $2"
    assert (await stored(world, sql, grace))[0]["seen"] is False
    await record(staff, booked, "arrived", "another")
    assert (await stored(world, sql, grace))[0]["seen"] is True


async def test_a_status_that_is_no_record_of_the_practice_is_refused(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    staff = await on_the_day(world)
    for status in ("booked", "cancelled", "", "paid"):
        assert (await record(staff, booked, status)).status_code == 404
    assert await status_of(world, booked) == "booked"


async def test_an_appointment_moves_to_a_chosen_open_time(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    listed = await staff.get(f"/console/appointments/{booked}/move?date=2026-11-17")
    assert listed.status_code == 200
    times = Document(listed.text).of_class("slot")
    assert words(times[0].text) == "09:00"
    summary = await staff.get(times[2].attributes["href"])
    assert "Tuesday, 17 November 2026, 09:30–09:45" in summary.text
    slot = dict(pair for pair in _hidden(summary.text))["slot"]
    action = f"/console/appointments/{booked}/move"
    form = {"slot": slot, "key": key_in(summary.text, action)}
    for _ in range(2):
        answer = await staff.post(action, data=form)
        assert answer.status_code == 303, answer.text
    html = await page(staff, booked)
    assert "Tuesday, 17 November 2026" in html
    assert "Moved from" in html
    assert len(await records(world, operation="reschedule_appointment", outcome="executed")) == 1


async def test_moving_into_a_taken_time_is_told_and_the_old_time_is_kept(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    free = (await slots(agent))[0]
    await confirmed(
        agent, "POST", "/api/appointments", {"patientId": await patient_id(agent, "Alan"), "slotId": free["id"]}
    )
    answer = await staff.post(f"/console/appointments/{booked}/move", data={"slot": free["id"], "key": NEW})
    assert answer.status_code == 409
    assert "no longer offered, since the search" in answer.text
    assert "09:00–09:15" in await page(staff, booked)


async def test_what_is_over_cannot_be_moved(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    staff = await on_the_day(world)
    assert "/move" not in await page(staff, booked)
    assert (await staff.get(f"/console/appointments/{booked}/move")).status_code == 409


async def test_the_history_names_everybody_in_order_whether_sealed_or_not(
    world: World, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await confirmed(agent, "POST", f"/api/appointments/{booked}/confirm", {})
    integration = await world.client(grant="integration")
    slot = (await slots(integration))[3]
    await integration.post(f"/api/appointments/{booked}/reschedule", json={"slotId": slot["id"]})
    staff = await on_the_day(world)
    await world.service.engine.audit.seal_pending()
    await record(staff, booked, "arrived")
    lines = [
        words(each.text).partition(" · ")[0]
        for each in Document(await page(staff, booked)).tagged("li")
        if " · " in each.text
    ]
    assert lines == [
        "Arrived by Ana",
        "Moved by integration of harbor",
        "Attendance confirmed by agent of harbor",
        "Confirming attendance was proposed by agent of harbor",
        "Booked by agent of harbor",
    ]
    assert words(await page(staff, booked)).count("· confirmed by the agent") == 2


async def test_the_history_is_found_without_reading_the_trail_of_others(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    await world.service.engine.audit.seal_pending()
    plan = await stored(
        world,
        """EXPLAIN SELECT * FROM appointment_trail t JOIN audit_record r
             ON r.practice_id = t.practice_id AND r.record_id = t.record_id
           WHERE t.practice_id = $1 AND t.appointment_id = ANY ($2)""",
        [booked],
    )
    assert any("appointment_trail_pkey" in row["QUERY PLAN"] for row in plan)


async def test_looking_at_an_appointment_is_recorded(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await page(staff, booked)
    [look] = await records(world, operation="console.appointment")
    assert look["subject_ids"] == [booked, await patient_id(agent)]


@pytest.mark.parametrize("step", ["", "/move", "/confirm", "/cancel", "/record"])
async def test_another_practices_appointment_is_not_found_whatever_is_tried(
    world: World, agent: httpx.AsyncClient, step: str
) -> None:
    booked = await book(agent)
    stranger = await signed_in(world, role="admin", practice="other")
    path = f"/console/appointments/{booked}{step}"
    if step in ("", "/move"):
        assert (await stranger.get(path)).status_code == 404
    if step:
        form = {"status": "arrived", "key": NEW, "slot": "slt_x"}
        assert (await stranger.post(path, data=form)).status_code == 404
    assert await status_of(world, booked) == "booked"


async def test_an_appointment_that_nobody_has_is_not_found(staff: httpx.AsyncClient) -> None:
    for name in ("apt_0123456789ABCDEFGHIJKL", "apt_", "<script>"):
        assert (await staff.get(f"/console/appointments/{name}")).status_code == 404


async def test_what_is_too_late_is_not_offered(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    world.clock.now += timedelta(days=3)
    html = await page(await signed_in(world), booked)
    for gone in (f"/appointments/{booked}/confirm", f"/appointments/{booked}/move"):
        assert gone not in html
    assert f"/appointments/{booked}/cancel" in html


def _hidden(html: str) -> list[tuple[str, str]]:
    return [
        (each.attributes["name"], each.attributes["value"])
        for each in Document(html).tagged("input")
        if each.attributes.get("type") == "hidden"
    ]


# Undo


async def undo(browser: httpx.AsyncClient, appointment: str, reason: str = "", key: str = NEW) -> httpx.Response:
    return await browser.post(f"/console/appointments/{appointment}/undo", data={"reason": reason, "key": key})


async def test_every_step_is_taken_back_at_once_without_a_reason_and_later_with_one(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    assert (await undo(staff, booked)).status_code == 409, "a booking is no step"
    await staff.post(f"/console/appointments/{booked}/confirm", data={"key": "k1"})
    assert "data-undo" in (await staff.get(f"/console/appointments/{booked}?notice=attendance_confirmed")).text
    assert (await undo(staff, booked, key="u1")).headers["Location"].endswith("notice=appointment_restored")
    assert await status_of(world, booked) == "booked"
    await staff.post(f"/console/appointments/{booked}/confirm", data={"key": "k2"})
    ana = await on_the_day(world)
    for number, status in enumerate(("arrived", "completed", "noShow")):
        await record(ana, booked, status, key=f"r{number}")
        assert await status_of(world, booked) == status
        if status == "arrived":
            continue  # and on to the visit
        world.clock.advance(minutes=2)
        assert "data-undo" not in (await ana.get(f"/console/appointments/{booked}?notice=arrival_recorded")).text
        refused = await undo(ana, booked, key=f"a{number}")
        assert refused.status_code == 422, "a while later somebody may have acted on it"
        assert await status_of(world, booked) == status
        await undo(ana, booked, reason=f"Wrong row <{number}>", key=f"b{number}")
        assert await status_of(world, booked) == "confirmed", "as it was before"
    text = words(Document(await page(ana, booked)).having("id", "appointment")[0].text)
    assert "Undone: booked again by Ana" in text
    assert "Wrong row <1>" in text
    assert len(await records(world, operation="console.restore_appointment", outcome="executed")) == 3


async def test_an_arrival_ahead_of_time_can_be_taken_back(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    """Until the visit begins there is no other step to go to."""
    booked = await book(agent)
    ana = await on_the_day(world, hours=29)  # at eight
    await record(ana, booked, "arrived")
    assert f"/console/appointments/{booked}/undo" in await page(ana, booked)
    await undo(ana, booked, key="u")
    assert await status_of(world, booked) == "booked"


async def test_a_cancellation_is_taken_back_only_while_the_time_is_free(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await staff.post(f"/console/appointments/{booked}/cancel", data={"key": "c1", "reason": "Mistake"})
    await undo(staff, booked, key="u1")
    assert await status_of(world, booked) == "booked"
    assert "Mistake" not in await page(staff, booked)
    events = await stored(world, "SELECT type FROM outbox WHERE practice_id = $1 ORDER BY event_id")
    assert [each["type"] for each in events][-2:] == ["appointment.cancelled", "appointment.booked"]
    await staff.post(f"/console/appointments/{booked}/cancel", data={"key": "c2"})
    # The same slot for somebody else, while the desk takes the cancellation back: one of the two has it.
    slot = (await slots(agent))[0]
    body = {"patientId": await patient_id(agent, "Alan"), "slotId": slot["id"]}
    challenge = (await agent.post("/api/appointments", json=body)).json()
    again = {**body, "confirmationToken": challenge["confirmationToken"]}
    taken, restored = await asyncio.gather(agent.post("/api/appointments", json=again), undo(staff, booked, key="u2"))
    assert (taken.status_code, restored.status_code) in ((201, 409), (409, 303))
    live = "SELECT 1 FROM appointment WHERE practice_id = $1 AND provider_id = 10 AND status <> 'cancelled'"
    assert len(await stored(world, live)) == 1


async def test_undo_is_no_operation_of_a_door(agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    for path in (f"/api/appointments/{booked}/undo", f"/api/appointments/{booked}/restore"):
        assert (await agent.post(path, json={})).status_code == 404


async def test_every_step_that_has_words_is_part_of_the_history(world: World) -> None:
    left_out = "SELECT name FROM unnest($1::text[]) name WHERE NOT is_appointment_change(name)"
    assert await world.database.fetch(left_out, list(DONE)) == []
