"""Blocked time: made and taken back at the desk, in force at once, told with whom it hits, kept by an import."""

import asyncio
from typing import Any

import httpx
import orjson
import pytest

from frontdesk.practice_file import dump, parse
from frontdesk.store.practices import export_practice, import_practice
from tests.console.desk import Document, calendar, records, stored, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

MORNING = {"who": "provider-10", "from": "2026-11-16", "from_time": "09:00", "to_time": "12:00", "reason": "Dentist"}


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


async def block(browser: httpx.AsyncClient, **form: str) -> httpx.Response:
    return await browser.post("/console/blocks", data=form)


async def first_open(agent: httpx.AsyncClient, **query: object) -> str:
    return (await slots(agent, **query))[0]["start"][:16]


async def blocks_of(world: World, provider: int = 10) -> list[dict[str, object]]:
    sql = "SELECT time_off FROM provider WHERE practice_id = $1 AND provider_id = $2"
    found: list[dict[str, object]] = orjson.loads((await stored(world, sql, provider))[0]["time_off"])
    return found


async def test_blocked_time_is_not_offered_from_then_on(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    assert await first_open(agent) == "2026-11-16T09:00"
    assert (await block(staff, **MORNING)).headers["Location"] == "/console/blocks?notice=time_blocked"
    assert await first_open(agent) == "2026-11-16T13:00"
    [shade] = Document(await calendar(staff)).of_class("shade-off")
    assert words(shade.text) == "09:00–12:00 Dentist"
    [made] = await records(world, operation="console.block_time")
    assert (made["outcome"], made["actor"], made["subject_ids"]) == (
        "executed", staff.headers[TEST_STAFF], ["provider 10"],
    )  # fmt: skip


async def test_a_challenge_from_before_cannot_be_confirmed_into_blocked_time(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    challenge = (await agent.post("/api/appointments", json=body)).json()
    await block(staff, **MORNING)
    answer = await agent.post("/api/appointments", json={**body, "confirmationToken": challenge["confirmationToken"]})
    assert answer.status_code == 409
    assert answer.json()["code"] == "slot_unavailable"


async def test_what_was_blocked_can_be_opened_again(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await block(staff, **MORNING)
    page = Document((await staff.get("/console/blocks")).text)
    assert "Blocked by Ana" in words(page.having("aria-labelledby", "ahead")[0].text)
    form = {
        each.attributes["name"]: each.attributes["value"]
        for each in page.tagged("input")
        if each.attributes["name"] in ("who", "starts", "ends") and each.attributes.get("type") == "hidden"
    }
    form |= {"who": "provider-10", "starts": "2026-11-16T09:00", "ends": "2026-11-16T12:00"}
    answer = await staff.post("/console/blocks/remove", data=form)
    assert answer.headers["Location"] == "/console/blocks?notice=time_unblocked"
    assert await first_open(agent) == "2026-11-16T09:00"
    assert [each["outcome"] for each in await records(world, operation="console.unblock_time")] == ["executed"]
    await staff.post("/console/blocks/remove", data=form)
    assert [each["outcome"] for each in await records(world, operation="console.unblock_time")][1:] == ["unchanged"]


async def test_blocking_the_same_time_twice_blocks_it_once(world: World, staff: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert (await block(staff, **MORNING)).status_code == 303
    assert len(await blocks_of(world)) == 1
    assert [each["outcome"] for each in await records(world, operation="console.block_time")] == [
        "executed", "unchanged",
    ]  # fmt: skip


async def test_a_location_closes_for_whole_days(staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    whole = {"who": "location-1", "from": "2026-11-16", "to": "2026-11-17", "reason": "Flood"}
    refused = await block(staff, **whole, from_time="10:00")
    assert refused.status_code == 422
    assert "whole day" in refused.text
    assert (await block(staff, **whole)).status_code == 303
    assert await first_open(agent, to="2026-11-20") == "2026-11-18T09:00"
    assert {words(each.text) for each in Document(await calendar(staff)).of_class("shade-closure")} == {"Flood"}


async def test_a_provider_without_times_is_away_for_whole_days(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await block(staff, who="provider-10", **{"from": "2026-11-16", "to": "2026-11-17"})
    assert await first_open(agent, to="2026-11-20") == "2026-11-18T09:00"
    assert "Mon 16 Nov 2026 – Tue 17 Nov 2026" in (await staff.get("/console/blocks")).text


async def test_appointments_in_the_way_are_told_first_and_stay(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    inside = await book(agent)
    cancelled = await book(agent, "Alan")
    await confirmed(agent, "POST", f"/api/appointments/{cancelled}/cancel", {})
    asked = await block(staff, **MORNING)
    assert asked.status_code == 200
    assert f"/console/appointments/{inside}" in asked.text
    assert "Ada Lovelace" in asked.text
    assert cancelled not in asked.text
    assert await blocks_of(world) == []
    assert len(await records(world, operation="console.blocked_appointments")) == 1
    assert (await block(staff, **MORNING, anyway="yes")).status_code == 303
    assert len(await blocks_of(world)) == 1
    assert inside in await calendar(staff)


async def test_every_live_appointment_in_the_way_is_counted(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    """More than a page of them, with cancelled ones before and between."""
    copies = """
    INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id,
        procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
    SELECT practice_id, 'apt_' || lpad(n::text, 22, '0'), patient_id, provider_id, location_id, visit_type_id,
        procedure_id, n, starts_at, ends_at, busy_until, CASE WHEN n % 3 = 0 THEN 'booked' ELSE 'cancelled' END,
        booked_by, created_at, updated_at
    FROM appointment, generate_series(1, 780) AS n WHERE practice_id = $1 AND appointment_id = $2 RETURNING 1
    """
    original = await book(agent)
    await stored(world, copies, original)
    await confirmed(agent, "POST", f"/api/appointments/{original}/cancel", {})
    page = Document((await block(staff, **MORNING)).text)
    [warning] = page.having("aria-labelledby", "affected")
    assert "260 appointments are booked in this time" in words(warning.text)
    assert "Only the first 50 are listed." in words(warning.text)
    links = [each for each in page.tagged("a") if each.attributes["href"].startswith("/console/appointments/")]
    assert len(links) == 50


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"who": ""}, "who"),
        ({"who": "practice-1"}, "who"),
        ({"from": ""}, "from"),
        ({"from": "16.11.2026"}, "from"),
        ({"from_time": "25:00"}, "from"),
        ({"to": "2026-11-15"}, "to"),
        ({"to_time": "08:00"}, "to"),
        ({"from": "2026-11-01", "to": "2026-11-02"}, "to"),
        ({"to": "2029-11-16"}, "to"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
async def test_what_cannot_be_blocked_is_told_beside_the_field(
    world: World, staff: httpx.AsyncClient, form: dict[str, str], field: str
) -> None:
    answer = await block(staff, **{**MORNING, **form})
    assert answer.status_code in (400, 422), answer.text
    assert Document(answer.text).having("id", f"{field}-error"), answer.text
    assert await blocks_of(world) == []


async def test_who_does_not_exist_cannot_be_blocked(world: World, staff: httpx.AsyncClient) -> None:
    assert (await block(staff, **{**MORNING, "who": "provider-99"})).status_code == 404
    assert (await block(staff, **{**MORNING, "who": "location-99", "from_time": "", "to_time": ""})).status_code == 404
    stranger = await signed_in(world, practice="other")
    await block(stranger, **MORNING)
    assert await blocks_of(world) == []


async def test_an_import_keeps_what_the_desk_blocked(world: World, staff: httpx.AsyncClient) -> None:
    await block(staff, **MORNING)
    await block(staff, who="location-1", **{"from": "2026-12-31", "reason": "Stocktaking"})
    for prune in (False, True):
        await world.import_file(PRACTICE.replace("SLUG", "harbor"), prune=prune)
        assert [each["reason"] for each in await blocks_of(world)] == ["Dentist"]
        html = (await staff.get("/console/blocks")).text
        assert "Stocktaking" in html
        assert "Christmas Day" in html


async def test_an_export_holds_blocked_time_and_its_import_changes_nothing(
    world: World, staff: httpx.AsyncClient
) -> None:
    await block(staff, **MORNING)
    before = await blocks_of(world)
    exported = await export_practice(world.database, "harbor", with_patients=False)
    assert exported is not None
    text = dump(exported)
    assert "reason: Dentist" in text
    await import_practice(world.database, parse(text), world.clock.now)
    assert await blocks_of(world) == before
    again = await export_practice(world.database, "harbor", with_patients=False)
    assert again is not None
    assert dump(again) == text


async def test_what_the_file_says_can_be_opened_until_the_next_import(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    off = (
        'timeOff: [{from: "2026-11-16T09:00", to: "2026-11-16T11:00", reason: Course}]\n    specialty: Family medicine'
    )
    file = PRACTICE.replace("SLUG", "harbor").replace("specialty: Family medicine", off)
    await world.import_file(file)
    assert await first_open(agent) == "2026-11-16T11:00"
    form = {"who": "provider-10", "starts": "2026-11-16T09:00", "ends": "2026-11-16T11:00"}
    assert (await staff.post("/console/blocks/remove", data=form)).status_code == 303
    assert await first_open(agent) == "2026-11-16T09:00"
    await world.import_file(file)
    assert await first_open(agent) == "2026-11-16T11:00"


async def blocked_behind(opened: Any, answer: asyncio.Task[httpx.Response]) -> None:
    """Returns once the block waits for the open transaction."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
    while not await opened.fetchval(waiting):
        assert not answer.done(), "it did not wait"
        await asyncio.sleep(0.01)


async def test_closing_a_location_waits_for_a_booking_in_progress(world: World, staff: httpx.AsyncClient) -> None:
    """The booking has seen the location open. It is committed before the location closes, never after."""
    async with asyncio.timeout(30), world.database.transaction(1) as booking:
        await booking.execute("SELECT pg_current_xact_id() FROM provider WHERE provider_id = 10 FOR NO KEY UPDATE")
        answer = asyncio.create_task(block(staff, who="location-1", **{"from": "2026-11-16", "to": "2026-11-17"}))
        await blocked_behind(booking, answer)
    assert (await answer).headers["Location"] == "/console/blocks?notice=time_blocked"


async def test_a_block_and_an_import_do_not_deadlock(world: World, staff: httpx.AsyncClient) -> None:
    async with asyncio.timeout(30), world.database.transaction(1) as importing:
        await importing.execute("SELECT pg_current_xact_id() FROM practice WHERE practice_id = 1 FOR NO KEY UPDATE")
        answer = asyncio.create_task(block(staff, **MORNING))
        await blocked_behind(importing, answer)
        await importing.execute("SELECT FROM provider WHERE provider_id = 10 FOR NO KEY UPDATE NOWAIT")
    assert (await answer).headers["Location"] == "/console/blocks?notice=time_blocked"
