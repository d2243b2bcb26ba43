"""Listing and reading appointments."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from tests.support.world import MONDAY, World, book, page_through, patient_id, rules, slots

# Two coasts, open around the hours when it is already tomorrow on one of them.
COASTS = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
locations: [{id: 1, name: East}, {id: 2, name: West, timeZone: America/Los_Angeles}]
providers:
  - {id: 10, name: Dr. East, hours: [{location: 1, days: [ALL], from: "00:00", to: "24:00"}]}
  - {id: 11, name: Dr. West, hours: [{location: 2, days: [ALL], from: "00:00", to: "24:00"}]}
visitTypes: [{id: 22, name: Visit, procedures: [{id: 103, name: Visit, durationMinutes: 15}]}]
""".replace("ALL", "mon, tue, wed, thu, fri, sat, sun")


async def book_at(desk: httpx.AsyncClient, start: str, first: str = "Ada", **query: Any) -> str:
    """Books exactly this time; returns the appointment's id."""
    day = start[:10]
    offered = await slots(desk, **query, **{"from": day, "to": day, "limit": 200})
    slot = next(slot for slot in offered if slot["start"].startswith(start))
    body = {"patientId": await patient_id(desk, first), "slotId": slot["id"]}
    answer = await desk.post("/api/appointments", json=body)
    assert answer.status_code == 201, answer.text
    booked: str = answer.json()["appointmentId"]
    return booked


async def ids(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get("/api/appointments", params=query)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_an_appointment_is_listed_in_short_and_read_in_full(world: World) -> None:
    agent = await world.client()
    appointment_id = await book(agent)
    summary = {
        "id": appointment_id,
        "status": "booked",
        "start": "2026-11-16T09:00:00-05:00",
        "end": "2026-11-16T09:15:00-05:00",
        "patientId": await patient_id(agent),
        "providerId": 10,
        "locationId": 1,
        "visitTypeId": 21,
        "procedureId": 101,
    }
    assert (await agent.get("/api/appointments")).json() == {"items": [summary], "limit": 50}
    assert (await agent.get(f"/api/appointments/{appointment_id}")).json() == {
        **summary,
        "providerName": "Dr. Robert Chen",
        "locationName": "Downtown",
        "visitTypeName": "Follow-up",
        "procedureName": "Follow-up visit",
        "timeZone": "America/New_York",
        "createdAt": "2026-11-15T08:00:00Z",
        "updatedAt": "2026-11-15T08:00:00Z",
    }


async def test_what_happened_to_an_appointment_is_in_its_record(world: World) -> None:
    desk = await world.client(grant="integration")
    appointment_id = await book_at(desk, "2026-11-16T09:00")
    path = f"/api/appointments/{appointment_id}"
    world.clock.advance(minutes=1)
    assert (await desk.post(f"{path}/confirm")).status_code == 200
    confirmed = (await desk.get(path)).json()
    assert (confirmed["status"], confirmed["attendanceConfirmedAt"]) == ("confirmed", "2026-11-15T08:01:00Z")

    world.clock.advance(minutes=1)
    west = {"providerId": 11, "locationId": 2, "visitTypeId": 22, "procedureId": 103}
    slot = (await slots(desk, **west, to="2026-11-18"))[0]
    assert (await desk.post(f"{path}/reschedule", json={"slotId": slot["id"]})).status_code == 200
    moved = (await desk.get(path)).json()
    assert moved["status"] == "booked"
    assert moved["start"] == "2026-11-18T09:00:00-08:00"
    assert moved["rescheduledFrom"] == "2026-11-16T06:00:00-08:00", "the same moment, as the new location tells time"
    assert moved["timeZone"] == "America/Los_Angeles"
    assert "attendanceConfirmedAt" not in moved

    world.clock.advance(minutes=1)
    assert (await desk.post(f"{path}/cancel", json={"reason": "Feels better"})).status_code == 200
    cancelled = (await desk.get(path)).json()
    assert cancelled["status"] == "cancelled"
    assert cancelled["cancelledAt"] == cancelled["updatedAt"] == "2026-11-15T08:03:00Z"
    assert cancelled["cancellationReason"] == "Feels better"
    assert cancelled["createdAt"] == "2026-11-15T08:00:00Z"
    assert await ids(desk) == [appointment_id], "cancelled ones are listed, too"


async def test_an_unknown_malformed_or_foreign_appointment_is_not_found(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    known = await book(agent)
    for unknown in (
        "apt_" + "0" * 22,
        known[:-1],
        known + "0",
        "x",
        known.lower() + "!",
        "pat_" + known[4:],
        "%00",
        "%ff",
    ):
        answer = await agent.get(f"/api/appointments/{unknown}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), unknown
    foreign, nobody = (
        await stranger.get(f"/api/appointments/{known}"),
        await stranger.get("/api/appointments/apt_" + "0" * 22),
    )
    assert {**foreign.json(), "requestId": ""} == {**nobody.json(), "requestId": ""}
    assert await ids(stranger) == []


async def test_appointments_are_filtered_by_every_id_together_and_alone(world: World) -> None:
    desk = await world.client(grant="integration")
    flu = {"visitTypeId": 22, "procedureId": 103}
    a = await book_at(desk, "2026-11-16T09:00", "Ada")
    b = await book_at(desk, "2026-11-16T10:00", "Alan", procedureId=102)
    c = await book_at(desk, "2026-11-17T09:00", "Ada", providerId=11, **flu)
    d = await book_at(desk, "2026-11-18T09:00", "José", providerId=11, locationId=2, **flu)
    assert await ids(desk) == [a, b, c, d]
    ada = await patient_id(desk, "Ada")
    for query, expected in (
        ({"patientId": ada}, [a, c]),
        ({"PatientId": "1"}, [a, c]),
        ({"PatientId": "0000000001"}, [a, c]),
        ({"PATIENTID": 4}, [b]),
        ({"PatientId": 2}, []),
        ({"ProviderId": 11}, [c, d]),
        ({"LocationId": 1}, [a, b, c]),
        ({"VisitTypeId": 21}, [a, b]),
        ({"ProcedureId": 102}, [b]),
        ({"PatientId": 1, "ProviderId": 11}, [c]),
        ({"From": "2026-11-17"}, [c, d]),
        ({"To": "2026-11-16"}, [a, b]),
        ({"From": "2026-11-17", "To": "2026-11-17", "PatientId": ada}, [c]),
        ({"ProviderId": 99}, []),
        ({"LocationId": 99}, []),
        ({"VisitTypeId": 99, "ProcedureId": 99}, []),
    ):
        assert await ids(desk, **query) == expected, query


async def test_an_unknown_patient_is_not_found_and_anything_else_cannot_be_read(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    foreign = await patient_id(stranger)
    for unknown in ("pat_" + "0" * 22, foreign, "99", "2147483647", "0"):
        answer = await agent.get("/api/appointments", params={"PatientId": unknown})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), unknown
    for garbage in (
        "2147483648",
        "99999999999",
        "pat_",
        "pat_short",
        "ada",
        "1.5",
        "",
        " 1",
        "１",
        "pat_" + "-" * 22,
        "\x00",
    ):
        answer = await agent.get("/api/appointments", params={"PatientId": garbage})
        assert (answer.status_code, rules(answer)) == (400, {"patientId": "Binding"}), garbage


async def test_the_rules_of_a_list(world: World) -> None:
    agent = await world.client()
    backwards = await agent.get("/api/appointments", params={"From": "2026-11-17", "To": "2026-11-16"})
    assert (backwards.status_code, rules(backwards)) == (422, {"to": "order"})
    broken = await agent.get(
        "/api/appointments",
        params={
            "From": "2026-11-16T00:00",
            "To": "x",
            "ProviderId": 0,
            "limit": 201,
            "status": "booked",
            "cursor": "y",
        },
    )
    assert broken.status_code == 400
    assert rules(broken) == {
        "from": "Binding",
        "to": "Binding",
        "providerId": "greaterThanZero",
        "limit": "range",
        "status": "unknown",
        "cursor": "cursor",
    }
    first = await agent.get("/api/appointments", params={"PatientId": 99, "cursor": "y"})
    assert (first.status_code, rules(first)) == (422, {"cursor": "cursor"}), "a rule is judged before existence"
    assert (await agent.get("/api/appointments", params={"From": "2020-01-01", "To": "2030-01-01"})).status_code == 200


async def test_dates_of_a_list_are_those_of_each_location(world: World) -> None:
    await world.import_file(COASTS, prune=True)
    desk = await world.client(grant="integration")
    east = {"providerId": 10, "locationId": 1, "visitTypeId": 22, "procedureId": 103}
    west = {"providerId": 11, "locationId": 2, "visitTypeId": 22, "procedureId": 103}
    # In the order in which they happen: 23:45 in the east comes before 21:00 in the west of the same date.
    e16 = await book_at(desk, "2026-11-16T23:45", "Ada", **east)
    e17 = await book_at(desk, "2026-11-17T00:00", "Alan", **east)
    w16 = await book_at(desk, "2026-11-16T23:45", "José", **west)
    w17 = await book_at(desk, "2026-11-17T00:00", "Grace", **west)
    assert await ids(desk) == [e16, e17, w16, w17]
    assert await ids(desk, From="2026-11-16", To="2026-11-16") == [e16, w16]
    assert await ids(desk, From="2026-11-17", To="2026-11-17") == [e17, w17]
    assert await ids(desk, To="2026-11-16") == [e16, w16]
    assert await ids(desk, From="2026-11-17") == [e17, w17]
    assert await ids(desk, From="2026-11-17", LocationId=2) == [w17]
    paged = await page_through(desk, "/api/appointments", From="2026-11-16", To="2026-11-17", limit=1)
    assert [item["id"] for item in paged] == [e16, e17, w16, w17]


async def test_extreme_dates_are_no_error(world: World) -> None:
    desk = await world.client(grant="integration")
    booked = await book_at(desk, "2026-11-16T09:00")
    assert await ids(desk, From="0001-01-01", To="9999-12-31") == [booked]
    assert await ids(desk, From="0001-01-01") == [booked]
    assert await ids(desk, To="9999-12-31") == [booked]
    for query in (
        {"From": "9999-12-31"},
        {"To": "0001-01-01"},
        {"From": "9999-12-31", "To": "9999-12-31"},
        {"From": "0001-01-01", "To": "0001-01-01"},
        {"From": "1899-12-31", "To": "1900-01-01"},
        {"From": "8999-12-31", "To": "9000-01-02"},
    ):
        assert await ids(desk, **query) == [], query
    await world.import_file(
        "practice: {slug: harbor, name: Harbor, timeZone: Pacific/Kiritimati}\n"
        "locations: [{id: 1, name: East, timeZone: Pacific/Kiritimati}, {id: 2, name: West, timeZone: Etc/GMT+12}]"
    )
    assert await ids(desk, From="0001-01-01", To="9999-12-31") == [booked]
    for day in ("0001-01-01", "9999-12-31"):
        assert await ids(desk, From=day, To=day) == []


async def test_pages_put_together_are_the_whole_list(world: World) -> None:
    desk = await world.client(grant="integration")
    flu = {"visitTypeId": 22, "procedureId": 103}
    for hour in (9, 10, 11):  # three at a time: pages end between appointments that start together
        for provider, first in ((10, "Ada"), (11, "Alan"), (11, "José")):
            await book_at(desk, f"2026-11-16T{hour:02}:00", first, providerId=provider, **flu)
    whole = await ids(desk)
    assert len(set(whole)) == 9
    for limit in (1, 2, 3, 4, 8, 9):
        items = await page_through(desk, "/api/appointments", limit=limit)
        assert [item["id"] for item in items] == whole, limit
    order = [(item["start"], item["id"]) for item in (await desk.get("/api/appointments")).json()["items"]]
    assert order == sorted(order)


async def test_paging_neither_skips_nor_repeats_while_appointments_come_and_go(world: World) -> None:
    desk = await world.client(grant="integration")
    flu = {"visitTypeId": 22, "procedureId": 103, "providerId": 11}
    throughout = [await book_at(desk, f"2026-11-16T{hour:02}:30", **flu) for hour in (9, 10, 11)]
    throughout += [await book_at(desk, f"2026-11-17T{hour:02}:30", **flu) for hour in (9, 10, 11)]
    others = iter([("16", "09:00"), ("16", "10:45"), ("17", "09:15"), ("17", "11:00"), ("17", "11:15")])
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await desk.get("/api/appointments", params={"limit": 2, **cursor})).json()
        seen += [item["id"] for item in page["items"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
        day, clock = next(others)
        await book_at(desk, f"2026-11-{day}T{clock}", "Alan", **flu)
        await desk.post(f"/api/appointments/{seen[-1]}/cancel")
    assert len(seen) == len(set(seen))
    assert [appointment for appointment in seen if appointment in throughout] == throughout


async def test_a_list_cursor_is_bound_to_its_filters(world: World) -> None:
    desk, stranger = await world.client(grant="integration"), await world.client("other")
    for hour in (9, 10):
        await book_at(desk, f"2026-11-16T{hour:02}:00")
    query = {"PatientId": 1, "From": "2026-11-16", "limit": 1}
    cursor = (await desk.get("/api/appointments", params=query)).json()["nextCursor"]
    assert (await desk.get("/api/appointments", params={**query, "cursor": cursor})).status_code == 200
    for client, changed in (
        (desk, {"PatientId": 2}),
        (desk, {"From": "2026-11-15"}),
        (desk, {"To": "2026-11-20"}),
        (desk, {"ProviderId": 10}),
        (stranger, {}),
    ):
        answer = await client.get("/api/appointments", params={**query, **changed, "cursor": cursor})
        assert (answer.status_code, rules(answer)) == (422, {"cursor": "cursor"}), changed


async def test_past_appointments_stay_listed(world: World) -> None:
    desk = await world.client(grant="integration")
    booked = await book_at(desk, "2026-11-16T09:00")
    world.clock.now = datetime(2026, 11, 16, tzinfo=UTC) + timedelta(days=400)
    await world.renew(desk)
    assert await ids(desk, To=MONDAY.isoformat()) == [booked]
