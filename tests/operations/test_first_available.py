"""The earliest slots anywhere in the practice."""

from datetime import datetime
from typing import Any

from tests.operations.slot_searches import FIRST, HARBOR
from tests.support.world import World, rules


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
