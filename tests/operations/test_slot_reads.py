"""Open slots: the rules of a search, what is offered and what is not, and single slots read live."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from frontdesk.store.practices import practice_id_of
from tests.world import MONDAY, PRACTICE, World, book, page_through, patient_id, rules, slots

HARBOR = PRACTICE.replace("SLUG", "harbor")
QUERY = {
    "providerId": "10",
    "locationId": "1",
    "visitTypeId": "21",
    "procedureId": "101",
    "from": "2026-11-16",
    "to": "2026-11-16",
}
FIRST = "/api/slots/first-available"


async def search(client: httpx.AsyncClient, **changed: Any) -> httpx.Response:
    return await client.get("/api/slots", params={**QUERY, **changed})


async def starts(client: httpx.AsyncClient, **changed: Any) -> list[str]:
    return [slot["start"] for slot in await slots(client, **{**QUERY, **changed})]


async def slot_ids_at(world: World, minutes: list[int], **ids: int) -> list[str]:
    """Ids of these very times, offered or not, as only the service can write them."""
    practice = await practice_id_of(world.database, "harbor")
    assert practice is not None
    wanted = {"provider": 10, "location": 1, "visit_type": 21, "procedure": 101, "duration": 15, **ids}
    return world.service.engine.slot_ids(practice).encode_many(*wanted.values(), minutes)


def minute(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) // 60


# The rules of a search


async def test_a_search_needs_four_ids_and_a_window(world: World) -> None:
    answer = await (await world.client()).get("/api/slots")
    assert answer.status_code == 422
    assert rules(answer) == dict.fromkeys(QUERY, "required")


async def test_every_offending_field_is_listed_at_once(world: World) -> None:
    agent = await world.client()
    broken = await search(agent, providerId=0, locationId=-5, to="2026-11-15", limit=0, colour="red")
    assert broken.status_code == 422
    assert rules(broken) == {
        "providerId": "greaterThanZero",
        "locationId": "greaterThanZero",
        "to": "order",
        "limit": "range",
        "colour": "unknown",
    }
    mixed = await agent.get(
        "/api/slots", params={"providerId": "ten", "locationId": 0, "from": "soon", "to": "2026-11-16", "x": ""}
    )
    assert mixed.status_code == 400, "one value that cannot be read makes it a 400"
    assert rules(mixed) == {
        "providerId": "Binding",
        "locationId": "greaterThanZero",
        "visitTypeId": "required",
        "procedureId": "required",
        "from": "Binding",
        "x": "unknown",
    }


async def test_a_window_is_at_most_fourteen_days_and_in_order(world: World) -> None:
    agent = await world.client()
    assert (await search(agent, to="2026-11-30")).status_code == 200
    assert rules(await search(agent, to="2026-12-01")) == {"to": "maxWindow"}
    assert rules(await search(agent, **{"from": "0001-01-01", "to": "9999-12-31"})) == {"to": "maxWindow"}
    backwards = await search(agent, **{"from": "2026-11-17"})
    assert (backwards.status_code, rules(backwards)) == (422, {"to": "order"})


async def test_a_date_is_a_date_and_nothing_else(world: World) -> None:
    agent = await world.client()
    for text in (
        "2026-11-16T00:00:00", "2026-11-16T00:00:00Z", "2026-11-16 ", "2026-11-31", "2026-W47-1", "20261116",
        "16.11.2026", "2026-1-6", "", "today", "0000-01-01", "10000-01-01", "-2026-11-16", "２０２６-11-16",
    ):  # fmt: skip
        for field in ("from", "to"):
            answer = await search(agent, **{field: text})
            assert (answer.status_code, rules(answer)) == (400, {field: "Binding"}), text


async def test_an_id_is_a_positive_32_bit_integer(world: World) -> None:
    agent = await world.client()
    for field in ("providerId", "locationId", "visitTypeId", "procedureId"):
        await assert_positive_int32(agent, field)


async def assert_positive_int32(agent: httpx.AsyncClient, field: str) -> None:
    for text in (
        "2147483648",
        "-2147483649",
        "9" * 30,
        "1.0",
        "1e3",
        "0x1",
        "+1",
        " 1",
        "１",
        "true",
        "null",
        "",
        "1,2",
    ):
        answer = await search(agent, **{field: text})
        assert (answer.status_code, rules(answer)) == (400, {field: "Binding"}), text
    for text in ("0", "-1", "-2147483648", "-0"):
        answer = await search(agent, **{field: text})
        assert (answer.status_code, rules(answer)) == (422, {field: "greaterThanZero"}), text
    for text in ("2147483647", "0000000000000000010"):
        assert (await search(agent, **{field: text})).status_code == 200, text


async def test_a_repeated_parameter_cannot_be_read(world: World) -> None:
    agent = await world.client()
    for repeated in ("providerId=10", "PROVIDERID=11", "providerid=10&providerId=10&ProviderId=12"):
        answer = await agent.get("/api/slots", params=[*QUERY.items(), *httpx.QueryParams(repeated).multi_items()])
        assert (answer.status_code, rules(answer)) == (400, {"providerId": "Binding"})


async def test_names_of_parameters_are_read_without_regard_to_case(world: World) -> None:
    agent = await world.client()
    expected = (await search(agent)).json()
    for spell in (str.upper, str.lower, str.title):
        answer = await agent.get("/api/slots", params={spell(name): value for name, value in QUERY.items()})
        assert answer.json() == expected


async def test_a_parameter_that_a_search_does_not_have_is_named(world: World) -> None:
    agent = await world.client()
    assert rules(await search(agent, provider_id=10)) == {"provider_id": "unknown"}
    answer = await search(agent, **{"<script>alert(1)</script>": 1, "x" * 500: 1, "": 1, "Zoë\x00": 1})
    assert answer.status_code == 422
    assert set(rules(answer)) == {"?script?alert?1???script?", "x" * 64, "?", "Zoë?"}


async def test_a_flood_of_parameters_is_refused_and_no_fault(world: World) -> None:
    agent = await world.client()
    answer = await agent.get("/api/slots", params=[(f"p{number}", "1") for number in range(101)])
    assert (answer.status_code, rules(answer)) == (400, {"$": "Binding"})


# What is offered


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


async def test_extreme_dates_are_no_fault(world: World) -> None:
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


# One slot


async def test_one_slot_is_read_with_its_names(world: World) -> None:
    agent = await world.client()
    item = (await slots(agent, providerId=11, locationId=2, visitTypeId=22, procedureId=103, to="2026-11-18"))[0]
    detail = (await agent.get(f"/api/slots/{item['id']}")).json()
    assert detail == {
        **item,
        "providerName": "Dr. María Núñez",
        "locationName": "Westside",
        "visitTypeName": "Vaccination",
        "procedureName": "Flu shot",
        "timeZone": "America/Los_Angeles",
        "available": True,
    }


async def test_availability_of_one_slot_is_answered_live(world: World) -> None:
    agent = await world.client()
    slot = (await slots(agent))[0]

    async def available() -> bool:
        answer: bool = (await agent.get(f"/api/slots/{slot['id']}")).json()["available"]
        return answer

    assert await available()
    appointment = await book(agent)
    assert not await available()
    desk = await world.client(grant="integration")
    assert (await desk.post(f"/api/appointments/{appointment}/cancel")).status_code == 200
    assert await available()
    world.clock.now = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)
    await world.renew(agent)
    assert not await available()


async def test_a_forged_altered_or_foreign_slot_id_is_not_found(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    slot_id: str = (await slots(agent))[0]["id"]
    forged = [slot_id[:at] + ("A" if slot_id[at] != "A" else "B") + slot_id[at + 1 :] for at in range(len(slot_id))]
    forged += [slot_id[:-1], slot_id + "A", slot_id.upper(), slot_id.replace("slt_", "apt_"), "slt_", "slt_" + "A" * 40]
    forged += ["x", "%00", "%ff", "slt_%ff", slot_id + "%0A", slot_id + "=", "A" * 3000]
    for text in forged:
        answer = await agent.get(f"/api/slots/{text}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), text
    foreign = await stranger.get(f"/api/slots/{slot_id}")
    unknown = await stranger.get("/api/slots/slt_" + "A" * 40)
    assert foreign.status_code == 404
    assert {**foreign.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}


async def test_a_slot_whose_procedure_changed_length_is_no_longer_available(world: World) -> None:
    agent = await world.client()
    slot = (await slots(agent))[0]
    await world.import_file(
        HARBOR.replace("name: Follow-up visit, durationMinutes: 15", "name: Visit, durationMinutes: 30")
    )
    detail = (await agent.get(f"/api/slots/{slot['id']}")).json()
    assert (detail["available"], detail["end"]) == (False, slot["end"])
    refused = await agent.post("/api/appointments", json={"patientId": await patient_id(agent), "slotId": slot["id"]})
    assert refused.json()["code"] == "slot_unavailable"


@pytest.mark.parametrize("announced", [True, False])
async def test_a_slot_of_a_pruned_provider_is_no_longer_available(world: World, announced: bool) -> None:
    agent = await world.client()
    slot = (await slots(agent))[0]
    kept = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
locations: [{id: 1, name: Downtown}]
providers: [{id: 12, name: Dr. Okafor, hours: [{location: 1, days: [mon], from: "09:00", to: "12:00"}]}]
visitTypes:
  - {id: 21, name: Follow-up, patientKind: existing, procedures: [{id: 101, name: Visit, durationMinutes: 15}]}
"""
    if not announced:
        world.service.callers.on_change = lambda *_: None  # type: ignore[method-assign]
    await world.import_file(kept, prune=True)
    detail = (await agent.get(f"/api/slots/{slot['id']}")).json()
    assert (detail["available"], detail["providerName"]) == (False, "Dr. Robert Chen")
    assert await slots(agent) == []
    assert len(await slots(agent, providerId=12)) == 12


# The earliest slots anywhere


async def test_the_earliest_slots_of_every_provider_and_location_come_first(world: World) -> None:
    agent = await world.client()
    page = (await agent.get(FIRST, params={"visitTypeId": 22, "procedureId": 103})).json()
    assert page["limit"] == 5
    assert page.keys() == {"items", "limit"}
    assert [(s["start"][:16], s["providerId"], s["locationId"]) for s in page["items"]] == [
        ("2026-11-16T09:00", 10, 1),
        ("2026-11-16T09:00", 11, 1),
        ("2026-11-16T09:15", 10, 1),
        ("2026-11-16T09:15", 11, 1),
        ("2026-11-16T09:30", 10, 1),
    ]
    fifty = (await agent.get(FIRST, params={"visitTypeId": 22, "procedureId": 103, "limit": 50})).json()
    moments = [datetime.fromisoformat(slot["start"]) for slot in fifty["items"]]
    assert len(moments) == 50
    assert moments == sorted(moments)


async def test_the_earliest_slots_may_be_narrowed(world: World) -> None:
    agent = await world.client()

    async def found(**query: Any) -> list[dict[str, Any]]:
        answer = await agent.get(FIRST, params={"visitTypeId": 22, "procedureId": 103, **query})
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    assert {slot["providerId"] for slot in await found(providerId=11)} == {11}
    assert (await found(locationId=2))[0]["start"] == "2026-11-18T09:00:00-08:00"
    assert (await found(**{"from": "2026-11-19"}))[0]["start"] == "2026-11-19T09:00:00-05:00"
    assert (await found(**{"from": "2026-11-01"}))[0]["start"] == "2026-11-16T09:00:00-05:00"
    assert len(await found(limit=1)) == 1
    for unrelated in ({"providerId": 99}, {"locationId": 99}, {"procedureId": 101}, {"visitTypeId": 99}):
        assert await found(**unrelated) == [], unrelated
    assert await found(**{"from": "2027-03-01"}) == [], "past the horizon"


async def test_the_rules_of_the_earliest_slots(world: World) -> None:
    agent = await world.client()
    assert rules(await agent.get(FIRST)) == {"visitTypeId": "required", "procedureId": "required"}
    needed = {"visitTypeId": 22, "procedureId": 103}
    for query, expected in (
        ({"limit": 0}, {"limit": "range"}),
        ({"limit": 51}, {"limit": "range"}),
        ({"limit": 2**31}, {"limit": "Binding"}),
        ({"from": "2026-11-16T09:00"}, {"from": "Binding"}),
        ({"to": "2026-11-16"}, {"to": "unknown"}),
        ({"cursor": "x"}, {"cursor": "unknown"}),
        ({"providerId": 0, "locationId": "x"}, {"providerId": "greaterThanZero", "locationId": "Binding"}),
    ):
        assert rules(await agent.get(FIRST, params={**needed, **query})) == expected, query


async def test_the_earliest_slot_may_lie_at_the_far_end_of_the_horizon(world: World) -> None:
    desk = await world.client(grant="integration")
    rare = HARBOR.replace(
        '{location: 2, days: [wed], from: "09:00", to: "12:00"}',
        '{location: 2, days: [fri], from: "09:00", to: "10:00", effectiveFrom: 2027-02-12}',
    )
    await world.import_file(rare)
    query = {"visitTypeId": 22, "procedureId": 103, "locationId": 2}
    items = (await desk.get(FIRST, params=query)).json()["items"]
    assert [slot["start"] for slot in items] == [f"2027-02-12T09:{q:02}:00-08:00" for q in (0, 15, 30, 45)]


async def test_the_earliest_slots_are_earliest_across_distant_zones(world: World) -> None:
    # The same date ends in Auckland almost a day before it ends in Honolulu.
    distant = """
practice: {slug: harbor, name: Harbor, timeZone: Pacific/Auckland}
locations: [{id: 1, name: Auckland}, {id: 2, name: Honolulu, timeZone: Pacific/Honolulu}]
providers:
  - {id: 10, name: A, hours: [{location: 1, days: [DAYS], from: "09:00", to: "09:15"}]}
  - {id: 11, name: H, hours: [{location: 2, days: [DAYS], from: "12:00", to: "12:15"}]}
visitTypes: [{id: 21, name: Visit, procedures: [{id: 101, name: Visit, durationMinutes: 15}]}]
""".replace("DAYS", "mon, tue, wed, thu, fri, sat, sun")
    await world.import_file(distant, prune=True)
    agent = await world.client()
    query: dict[str, Any] = {"visitTypeId": 21, "procedureId": 101}
    everything = (await agent.get(FIRST, params={**query, "limit": 50})).json()["items"]
    moments = [datetime.fromisoformat(slot["start"]) for slot in everything]
    assert moments == sorted(moments)
    assert [slot["providerId"] for slot in everything] == [10, 11] * 25
    for limit in range(1, 30):
        few = (await agent.get(FIRST, params={**query, "limit": limit})).json()["items"]
        assert few == everything[:limit], limit


# Search, live read and booking agree


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_is_offered_is_bookable_and_nothing_bookable_is_missing(world: World, seed: int) -> None:
    dice = random.Random(seed)
    crowded = HARBOR.replace("slug: harbor", "slug: harbor, minimumNoticeMinutes: 90").replace(
        "  - id: 11\n", '    timeOff: [{from: "2026-11-18T10:20", to: "2026-11-19T14:10"}]\n  - id: 11\n'
    )
    await world.import_file(crowded)
    world.clock.now = datetime(2026, 11, 16, 13, 20, 30, tzinfo=UTC)
    desk, agent = await world.client(grant="integration"), await world.client()
    last = MONDAY + timedelta(days=11)
    # Appointments of every length, buffers too, wherever there is room.
    patients = {"new": await patient_id(desk, "Grace"), "existing": await patient_id(desk, "Ada")}
    for _ in range(25):
        visit_type, procedure, kind = dice.choice(
            [(20, 100, "new"), (21, 101, "existing"), (21, 102, "existing"), (22, 103, "existing")]
        )
        day = (MONDAY + timedelta(days=dice.randrange(12))).isoformat()
        offered = await slots(desk, visitTypeId=visit_type, procedureId=procedure, **{"from": day, "to": day})
        if offered:
            body = {"patientId": patients[kind], "slotId": dice.choice(offered)["id"]}
            assert (await desk.post("/api/appointments", json=body)).status_code in (201, 422)

    procedure, duration = dice.choice([(101, 15), (102, 45)])
    query = {**QUERY, "procedureId": procedure, "to": last.isoformat(), "limit": 150}
    found = await page_through(agent, "/api/slots", **query)
    assert len(found) > 50
    patient = await patient_id(agent, "Alan")
    for slot in dice.sample(found, 40):
        answer = await agent.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})
        assert answer.status_code == 428, (slot["start"], answer.text)

    grid = [
        minute(f"{day.isoformat()}T{clock // 60:02}:{clock % 60:02}:00-05:00")
        for day in (MONDAY + timedelta(days=number) for number in range(12))
        for clock in range(8 * 60 + 45, 17 * 60 + 15, 15)
    ]
    ids = await slot_ids_at(world, grid, procedure=procedure, duration=duration)
    live = [slot_id for slot_id in ids if (await agent.get(f"/api/slots/{slot_id}")).json()["available"]]
    assert live == [slot["id"] for slot in found]


async def test_times_off_the_grid_are_not_available(world: World) -> None:
    agent = await world.client()
    nine = minute("2026-11-16T09:00:00-05:00")
    for slot_id in await slot_ids_at(world, [nine + 5, nine - 15, nine + 180, nine + 8 * 60]):
        assert (await agent.get(f"/api/slots/{slot_id}")).json()["available"] is False
    [wrong_length] = await slot_ids_at(world, [nine], duration=30)
    assert (await agent.get(f"/api/slots/{wrong_length}")).json()["available"] is False
