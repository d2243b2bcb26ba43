"""What the desk may book and no client may: against the rules, read back, with a reason, and visible as such."""

import re
from datetime import UTC, datetime

import httpx
import pytest

from frontdesk.operations import OVERRIDE_BOOKING, OVERRIDE_MOVE
from tests.console.desk import NINE, Document, calendar, entries, form_in, labels, overbooked, records, stored, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.doors.mcp_speech import framed, send
from tests.support.world import World, book, patient_id, slots

FULL = "Dr. Robert Chen has 1 of 1 places taken at 09:00."


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


def main_text(html: str) -> str:
    return words(Document(html).having("id", "chosen-time")[0].text)


async def test_a_full_time_is_booked_after_its_rules_were_named_a_reason_given_and_all_read_back(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    nine = (await slots(agent))[0]["id"]
    ordinary = await book(agent, "Alan")
    offered = await slots(agent)
    ada = await patient_id(agent)
    form = {**NINE, "search": "lovel", "patient": ada, "visit": "21-101", "key": "k1"}
    refused = await staff.post("/console/book/at", data=form)
    assert refused.status_code == 409
    assert FULL in main_text(refused.text)
    asked = form_in(refused.text)
    taken = await staff.get(f"/console/book/{ada}/confirm", params={"slot": nine})
    assert form_in(taken.text) == asked, "the booking step by step leads there, too"
    blank = await staff.post("/console/override", data=asked)
    assert "Book anyway" not in blank.text, "a reason is asked for first"
    shown = await staff.post("/console/override", data={**asked, "reason": "In pain <b>"})
    assert shown.status_code == 200
    for part in ("Ada Lovelace", "Monday, 16 November 2026, 09:00–09:15", FULL, "In pain <b>"):
        assert part in main_text(shown.text)
    assert len(entries(await calendar(staff))) == 1, "nothing is booked by looking"
    for _ in range(2):
        booked = await staff.post("/console/override", data=form_in(shown.text))
        assert booked.headers["Location"].endswith("?notice=override_booked"), booked.text
    over = re.search("apt_[0-9A-Za-z]+", booked.headers["Location"])[0]  # type: ignore[index]

    rows = await stored(world, "SELECT lane FROM appointment WHERE practice_id = $1 ORDER BY lane")
    assert [row["lane"] for row in rows] == [1, 1001]
    found = entries(await calendar(staff))
    assert "is-override" in found[over].classes
    assert "is-override" not in found[ordinary].classes
    assert "lane-2" in found[over].classes
    assert ", Override · Follow-up, Booked, booked by " in labels(await calendar(staff))[over]
    assert "override: overbooked" in words(Document(await calendar(staff, "/day-sheet")).tagged("main")[0].text)
    panel = words(Document((await staff.get(f"/console/appointments/{over}")).text).having("id", "appointment")[0].text)
    assert "Against the rulesoverbookedIn pain <b> by" in panel
    assert "Booked against the rules by" in panel
    assert "overbooked · In pain <b>" in panel
    [executed] = await records(world, operation=OVERRIDE_BOOKING.name, outcome="executed")
    assert (executed["actor"], set(executed["subject_ids"])) == (staff.headers[TEST_STAFF], {over, ada})
    audit = words(Document((await admin.get("/console/audit")).text).tagged("main")[0].text)
    assert "booked an appointment for Ada Lovelace against the rules (overbooked: In pain <b>)" in audit

    assert await slots(agent) == offered, "what is offered is the same as before"
    [event] = await stored(
        world, "SELECT * FROM outbox WHERE practice_id = $1 AND subject ->> 'appointmentId' = $2", over
    )
    assert event["type"] == "appointment.booked"
    assert "In pain" not in str(event)
    body = (await agent.get(f"/api/appointments/{over}")).json()
    plain = (await agent.get(f"/api/appointments/{ordinary}")).json()
    assert body.keys() == plain.keys()


async def test_every_broken_rule_is_named_and_one_that_was_not_shown_stops_the_booking(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    grace = await patient_id(agent, "Grace")  # new, and the visit is for those we know
    given = {**NINE, "provider": "12", "time": "08:10", "patient": grace, "visit": "21-102", "reason": "Asked by Dr. O"}
    shown = await staff.post("/console/override", data=given)
    for part in (
        "This is outside the hours of Dr. Amara Okafor at Downtown.",
        "This visit type is for existing patients, and the practice has not seen this patient yet.",
        "This provider does not accept new patients.",
        "Dr. Amara Okafor does not perform Long follow-up.",
    ):
        assert part in main_text(shown.text)
    form = form_in(shown.text)
    assert form["rule"] == ["hours", "patient", "new_patients", "procedure"]
    stale = await staff.post("/console/override", data={**form, "rule": ["hours"]})
    assert stale.status_code == 409
    assert "another rule would be broken" in main_text(stale.text)
    assert form_in(stale.text)["rule"] == form["rule"], "and it is read again"
    assert (await staff.post("/console/override", data=form)).status_code == 303
    far = {**given, "date": "2027-06-01", "time": "09:00", "provider": "10", "visit": "22-103"}
    assert "more than 90 days ahead" in main_text((await staff.post("/console/override", data=far)).text)
    for odd, words_of_it in (
        ({"date": "2026-11-14"}, "began more than 15 minutes ago"),
        ({"date": "2031-01-01"}, "further than anybody can book"),
        ({"time": "08:20"}, "The patient already has an appointment that overlaps this time."),
    ):
        refused = await staff.post("/console/override", data={**given, **odd})
        assert refused.status_code == 422
        assert words_of_it in main_text(refused.text)
        assert 'name="sure"' not in refused.text, "there is nothing to confirm"
    assert len(await records(world, operation=OVERRIDE_BOOKING.name, outcome="executed")) == 1


async def test_a_move_to_a_full_time_needs_an_override_and_one_to_an_open_time_ends_it(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await book(agent, "Alan")
    moved = await book(agent)  # a quarter past
    address = f"/console/appointments/{moved}/move/at"
    full = await staff.get(address, params={"time": "09:00"})
    assert FULL in main_text(full.text)
    assert "Move appointment</button>" not in full.text
    shown = await staff.post("/console/override", data={**form_in(full.text), "reason": "Has to leave early"})
    assert "Until nowMonday, 16 November 2026, 09:15–09:30" in main_text(shown.text)
    done = await staff.post("/console/override", data=form_in(shown.text))
    assert done.headers["Location"].endswith(f"/appointments/{moved}?notice=override_moved")
    assert "Moved against the rules" in (await staff.get(f"/console/appointments/{moved}")).text
    [record] = await records(world, operation=OVERRIDE_MOVE.name)
    assert record["outcome"] == "executed"
    assert "is-override" in entries(await calendar(staff))[moved].classes
    free = await staff.get(address, params={"time": "11:00"})
    moving = f"/console/appointments/{moved}/move"
    assert (await staff.post(moving, data=form_in(free.text, moving))).status_code == 303
    assert "is-override" not in entries(await calendar(staff))[moved].classes
    panel = words((await staff.get(f"/console/appointments/{moved}")).text)
    assert "Against the rules</dt>" not in panel
    assert "Has to leave early" in panel, "its history keeps the reason"


async def test_a_walk_in_is_booked_now_and_has_arrived(world: World, agent: httpx.AsyncClient) -> None:
    world.clock.now = datetime(2026, 11, 16, 14, 8, 30, tzinfo=UTC)  # eight past nine on Monday
    staff = await signed_in(world)
    assert 'href="/console/walk-in' in (await staff.get("/console/arrivals")).text
    page = Document((await staff.get("/console/walk-in", params={"location": "1"})).text)
    assert page.having("name", "time")[0].attributes["value"] == "09:05"
    given = {**NINE, "time": "09:05", "visit": "21-101", "reason": "Walk-in", "arrived": "yes", "search": "lovel"}
    found = Document((await staff.post("/console/walk-in", data=given)).text)
    [ada] = [each.attributes["value"] for each in found.having("name", "patient")]
    shown = await staff.post("/console/walk-in", data={**given, "patient": ada})
    assert "09:05 has already begun." in main_text(shown.text)
    assert "Visits begin every 15 minutes from the start of the hours, not at 09:05." in main_text(shown.text)
    assert "Recorded as arrived" in main_text(shown.text)
    for _ in range(2):
        done = await staff.post("/console/override", data=form_in(shown.text))
        assert "notice=walk_in_arrived" in done.headers["Location"], done.text
    [row] = await stored(world, "SELECT status, lane FROM appointment WHERE practice_id = $1")
    assert (row["status"], row["lane"]) == ("arrived", 1001)
    board = words((await staff.get("/console/arrivals")).text)
    assert "begun when it was booked, between the usual times: <bdi>Walk-in</bdi>" in board
    await world.renew(agent)
    assert "2026-11-16T09:15:00-05:00" not in [each["start"] for each in await slots(agent)], "the doctor is busy"


async def test_no_client_can_override_at_any_door(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    integration = await world.client(grant="integration")
    nine = (await slots(agent))[0]["id"]
    await book(agent, "Alan")
    by_the_desk = await overbooked(staff, agent)
    other = await book(agent, "Grace", visitTypeId=22, procedureId=103)
    tried = {"patientId": await patient_id(integration, "José"), "slotId": nine}
    moved = {"slotId": nine}
    override = {"rules": ["full"], "reason": "Urgent"}
    for client in (agent, integration):
        for extra in ({}, override, {"override": override}):
            for path, body in (("/api/appointments", tried), (f"/api/appointments/{other}/reschedule", moved)):
                answer = await client.post(path, json={**body, **extra})
                assert answer.json()["code"] in ("slot_unavailable", "validation"), answer.text
            for name, body in (
                ("book_appointment", tried),
                ("reschedule_appointment", {**moved, "appointmentId": other}),
                (OVERRIDE_BOOKING.name, tried),
                (OVERRIDE_MOVE.name, {**moved, "appointmentId": other}),
            ):
                said_no = await send(client, "tools/call", {"name": name, "arguments": {**body, **extra}})
                message = framed(said_no)
                assert "error" in message or message["result"]["isError"], message
        for path in ("/api/overrides", "/console/override", "/console/walk-in"):
            assert (await client.post(path, json={**tried, **override})).status_code in (401, 404)
    listed = await stored(world, "SELECT appointment_id FROM appointment WHERE practice_id = $1 AND lane > 1000")
    assert [row["appointment_id"] for row in listed] == [by_the_desk]
