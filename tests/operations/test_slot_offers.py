"""What a slot search offers, what it does not, and in which order."""

from datetime import UTC, datetime
from typing import Any

import httpx

from tests.operations.slot_searches import FIRST, HARBOR, QUERY, search, starts
from tests.support.world import World, page_through, patient_id, rules, slots


async def test_a_slot_has_the_seven_specified_fields(world: World) -> None:
    agent = await world.client()
    page = (await search(agent, limit=1)).json()
    assert page.keys() == {"items", "limit", "nextCursor"}
    slot = page["items"][0]
    assert slot.pop("id").startswith("slt_")
    assert slot == {
        "start": "2026-11-16T09:00:00-05:00",
        "end": "2026-11-16T09:15:00-05:00",
        "providerId": 10,
        "locationId": 1,
        "visitTypeId": 21,
        "procedureId": 101,
    }


async def test_a_free_day_offers_the_whole_grid_in_order(world: World) -> None:
    agent = await world.client()
    expected = [
        f"2026-11-16T{hour:02}:{quarter:02}:00-05:00"
        for hour in (9, 10, 11, 13, 14, 15, 16)
        for quarter in (0, 15, 30, 45)
    ]
    assert await starts(agent) == expected
    long = await starts(agent, procedureId=102)
    assert long[-1] == "2026-11-16T16:15:00-05:00", "the whole slot lies in the opening hours"
    assert "2026-11-16T11:30:00-05:00" not in long


async def test_ids_that_do_not_belong_together_give_an_empty_page(world: World) -> None:
    agent = await world.client()
    for changed in (
        {"providerId": 99},
        {"locationId": 99},
        {"visitTypeId": 99},
        {"procedureId": 99},
        {"procedureId": 100},  # of another visit type
        {"visitTypeId": 20},  # to which the procedure does not belong
        {"locationId": 2},  # where the provider does not work
        {"providerId": 12, "procedureId": 102},  # which the provider does not perform
        {"providerId": 12, "visitTypeId": 20, "procedureId": 100},  # a provider who takes no new patients
    ):
        answer = await search(agent, **changed)
        assert (answer.status_code, answer.json()) == (200, {"items": [], "limit": 50}), changed


async def test_pages_put_together_are_one_big_page(world: World) -> None:
    agent = await world.client()
    window = {**QUERY, "to": "2026-11-20"}
    whole = (await agent.get("/api/slots", params={**window, "limit": 200})).json()
    assert "nextCursor" not in whole
    assert len(whole["items"]) == 140
    assert [slot["start"] for slot in whole["items"]] == sorted(slot["start"] for slot in whole["items"])
    for limit in (1, 7, 28, 50, 139, 140):
        if limit > 1:
            assert await page_through(agent, "/api/slots", **window, limit=limit) == whole["items"]
    assert await page_through(agent, "/api/slots", **QUERY, limit=1) == whole["items"][:28]


async def test_a_continued_search_skips_and_repeats_nothing_while_slots_are_taken(world: World) -> None:
    desk = await world.client(grant="integration")
    patient = await patient_id(desk)
    whole = (await search(desk, limit=200)).json()["items"]
    seen: list[dict[str, Any]] = []
    taken: set[str] = set()
    cursor: dict[str, str] = {}
    while True:
        page = (await search(desk, limit=5, **cursor)).json()
        seen += page["items"]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
        at = whole.index(page["items"][-1])
        for slot in (whole[at], *whole[at + 2 : at + 3]):  # the last one shown, and one still to come
            booked = await desk.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})
            assert booked.status_code == 201, booked.text
            taken.add(slot["id"])
    assert [slot["start"] for slot in seen] == sorted({slot["start"] for slot in seen})
    assert {slot["id"] for slot in seen} >= {slot["id"] for slot in whole} - taken


async def test_a_search_cursor_is_bound_to_its_whole_query(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    cursor = (await search(agent, limit=1, to="2026-11-17")).json()["nextCursor"]
    assert (await search(agent, to="2026-11-17", cursor=cursor)).status_code == 200
    for changed in (
        {},
        {"to": "2026-11-18"},
        {"to": "2026-11-17", "from": "2026-11-17"},
        {"to": "2026-11-17", "providerId": 11},
        {"to": "2026-11-17", "procedureId": 102},
    ):
        assert rules(await search(agent, **changed, cursor=cursor)) == {"cursor": "cursor"}, changed
    assert rules(await search(stranger, to="2026-11-17", cursor=cursor)) == {"cursor": "cursor"}


async def test_what_has_begun_or_lies_inside_the_notice_is_not_offered(world: World) -> None:
    world.clock.now = datetime(2026, 11, 16, 14, 14, 59, tzinfo=UTC)  # 09:14:59 in New York
    agent = await world.client()
    assert (await starts(agent))[0] == "2026-11-16T09:15:00-05:00"
    world.clock.now = datetime(2026, 11, 16, 14, 15, tzinfo=UTC)
    assert (await starts(agent))[0] == "2026-11-16T09:30:00-05:00", "a slot that begins now has begun"

    await world.import_file(HARBOR.replace("slug: harbor", "slug: harbor, minimumNoticeMinutes: 60"))
    assert (await starts(agent))[0] == "2026-11-16T10:15:00-05:00"
    world.clock.advance(seconds=1)
    assert (await starts(agent))[0] == "2026-11-16T10:30:00-05:00"
    world.clock.now = datetime(2026, 11, 17, 2, 0, tzinfo=UTC)  # still Monday there
    await world.renew(agent)
    assert await starts(agent) == []
    assert await starts(agent, **{"from": "2026-11-01", "to": "2026-11-15"}) == []


async def test_nothing_is_offered_past_the_booking_horizon(world: World) -> None:
    agent = await world.client()
    far = {"from": "2027-02-08", "to": "2027-02-19"}  # ninety days from Sunday lead to Saturday the 13th
    assert {start[:10] for start in await starts(agent, **far, limit=200)} == {f"2027-02-{d:02}" for d in range(8, 13)}
    await world.import_file(HARBOR.replace("slug: harbor", "slug: harbor, bookingHorizonDays: 1"))
    assert {start[:10] for start in await starts(agent, to="2026-11-20", limit=200)} == {"2026-11-16"}
    world.clock.advance(hours=24)
    await world.renew(agent)
    assert {start[:10] for start in await starts(agent, to="2026-11-20", limit=200)} == {"2026-11-16", "2026-11-17"}


async def test_extreme_dates_are_no_error(world: World) -> None:
    agent = await world.client()
    for first, last in (("0001-01-01", "0001-01-15"), ("9999-12-17", "9999-12-31"), ("1969-12-31", "1970-01-01")):
        assert await starts(agent, **{"from": first, "to": last}) == []
        found = await agent.get(FIRST, params={"visitTypeId": 21, "procedureId": 101, "from": first})
        assert found.status_code == 200
        assert (found.json()["items"] == []) == (first > "2027")


async def test_a_closed_day_offers_nothing(world: World) -> None:
    world.clock.now = datetime(2026, 12, 20, tzinfo=UTC)
    agent = await world.client()
    week = await starts(agent, **{"from": "2026-12-24", "to": "2026-12-26"}, limit=200)
    assert {start[:10] for start in week} == {"2026-12-24"}


async def test_hours_keep_the_wall_clock_across_daylight_saving(world: World) -> None:
    world.clock.now = datetime(2027, 3, 10, tzinfo=UTC)
    agent = await world.client()
    found = await starts(agent, **{"from": "2027-03-12", "to": "2027-03-15"}, limit=200)
    assert found[0] == "2027-03-12T09:00:00-05:00"
    assert found[28] == "2027-03-15T09:00:00-04:00"


async def test_a_provider_with_two_places_is_offered_until_both_are_taken(world: World) -> None:
    desk = await world.client(grant="integration")
    query = {"providerId": 11, "visitTypeId": 22, "procedureId": 103}
    nine = (await slots(desk, **query))[0]
    for patient in ("Ada", "Alan"):
        assert nine["start"] in await starts(desk, **query)
        body = {"patientId": await patient_id(desk, patient), "slotId": nine["id"]}
        assert (await desk.post("/api/appointments", json=body)).status_code == 201
    assert nine["start"] not in await starts(desk, **query)
    body = {"patientId": await patient_id(desk, "José"), "slotId": nine["id"]}
    assert (await desk.post("/api/appointments", json=body)).json()["code"] == "slot_unavailable"


async def test_the_buffer_after_an_appointment_is_kept_free_on_both_sides(world: World) -> None:
    desk = await world.client(grant="integration")
    exam = {"visitTypeId": 20, "procedureId": 100}
    half_past_ten = next(slot for slot in await slots(desk, **exam) if "T10:30" in slot["start"])
    body = {"patientId": await patient_id(desk, "Grace"), "slotId": half_past_ten["id"]}
    assert (await desk.post("/api/appointments", json=body)).status_code == 201

    def clocks(found: list[str]) -> list[str]:
        return [start[11:16] for start in found if "T10" in start or "T11" in start or "T09:4" in start]

    assert clocks(await starts(desk)) == ["09:45", "10:00", "10:15", "11:15", "11:30", "11:45"]
    # An exam needs 45 minutes with its buffer: from 10:00 it would run into the one at 10:30.
    assert clocks(await starts(desk, **exam)) == ["09:45", "11:15", "11:30"]


async def test_what_runs_past_midnight_is_held_against_the_next_day(world: World) -> None:
    always = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
locations: [{id: 1, name: Downtown}]
providers:
  - id: 10
    name: Dr. Night
    hours: [{location: 1, days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "24:00"}]
visitTypes:
  - id: 21
    name: Watch
    patientKind: any
    procedures:
      - {id: 101, name: Short, durationMinutes: 15}
      - {id: 104, name: Long, durationMinutes: 60, bufferAfterMinutes: 30}
"""
    await world.import_file(always, prune=True)
    desk = await world.client(grant="integration")
    await book_as_integration(desk, "Ada", **{"from": "2026-11-17", "to": "2026-11-17"})  # Tuesday at midnight
    evening = [s for s in await slots(desk, procedureId=104, limit=200) if s["start"] >= "2026-11-16T22:00"]
    assert [slot["start"][11:16] for slot in evening] == ["22:00", "22:15", "22:30"]
    for slot in evening:
        assert (await desk.get(f"/api/slots/{slot['id']}")).json()["available"] is True, slot["start"]


async def book_as_integration(desk: httpx.AsyncClient, first: str, **query: Any) -> None:
    slot = (await slots(desk, **query))[0]
    answer = await desk.post(
        "/api/appointments", json={"patientId": await patient_id(desk, first), "slotId": slot["id"]}
    )
    assert answer.status_code == 201, answer.text


async def test_dates_and_times_are_those_of_the_location(world: World) -> None:
    agent = await world.client()
    query = {"providerId": 11, "locationId": 2, "visitTypeId": 22, "procedureId": 103}
    found = await starts(agent, **query, **{"from": "2026-11-16", "to": "2026-11-20"})
    assert found[0] == "2026-11-18T09:00:00-08:00"
    assert found[-1] == "2026-11-18T11:45:00-08:00"
    world.clock.now = datetime(2026, 11, 18, 17, 0, tzinfo=UTC)  # 09:00 on the west coast, noon on the east coast
    await world.renew(agent)
    assert (await starts(agent, **query, **{"from": "2026-11-18", "to": "2026-11-18"}))[0][11:16] == "09:15"
