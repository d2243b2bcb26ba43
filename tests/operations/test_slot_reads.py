"""One slot read live; and search, live read and booking agree about every time."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from tests.operations.slot_searches import HARBOR, QUERY, minute, slot_ids_at
from tests.support.world import MONDAY, World, book, page_through, patient_id, slots


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
        world.service.authenticator.on_change = lambda *_: None  # type: ignore[method-assign]
    await world.import_file(kept, prune=True)
    detail = (await agent.get(f"/api/slots/{slot['id']}")).json()
    assert (detail["available"], detail["providerName"]) == (False, "Dr. Robert Chen")
    assert await slots(agent) == []
    assert len(await slots(agent, providerId=12)) == 12


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
