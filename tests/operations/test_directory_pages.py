"""Pages of the directory's lists: limits, cursors, and records that come and go meanwhile."""

import itertools

from tests.support.world import World, page_through, rules

LISTS = ("/api/locations", "/api/providers", "/api/visit-types", "/api/visit-types/21/procedures")


async def test_limit_is_fifty_by_default_and_from_one_to_two_hundred(world: World) -> None:
    agent = await world.client()
    for path in LISTS:
        assert (await agent.get(path)).json()["limit"] == 50
        for limit in (1, 200):
            answer = await agent.get(path, params={"limit": limit})
            assert (answer.status_code, answer.json()["limit"]) == (200, limit)
        for text, status, rule in (
            ("0", 422, "range"),
            ("201", 422, "range"),
            ("-1", 422, "range"),
            ("2147483648", 400, "Binding"),
            ("-2147483649", 400, "Binding"),
            ("ten", 400, "Binding"),
            ("", 400, "Binding"),
            ("1e2", 400, "Binding"),
        ):
            answer = await agent.get(path, params={"limit": text})
            assert (answer.status_code, rules(answer)) == (status, {"limit": rule}), text


async def test_pages_put_together_are_the_whole_list(world: World) -> None:
    agent = await world.client()
    for path in LISTS:
        whole = (await agent.get(path)).json()
        assert "nextCursor" not in whole
        for limit in (1, 2, 3):
            assert await page_through(agent, path, limit=limit) == whole["items"]


async def test_a_last_page_that_is_exactly_full_has_no_cursor(world: World) -> None:
    agent = await world.client()
    page = (await agent.get("/api/providers", params={"limit": 3})).json()
    assert len(page["items"]) == 3
    assert "nextCursor" not in page


async def test_the_limit_may_change_between_pages(world: World) -> None:
    agent = await world.client()
    first = (await agent.get("/api/providers", params={"limit": 1})).json()
    rest = (await agent.get("/api/providers", params={"limit": 2, "cursor": first["nextCursor"]})).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == [10, 11, 12]


async def test_a_cursor_is_good_for_its_own_query_practice_and_operation_only(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    query = {"limit": 1, "locationId": 1, "name": "dr"}
    cursor = (await agent.get("/api/providers", params=query)).json()["nextCursor"]
    assert (await agent.get("/api/providers", params={**query, "cursor": cursor})).status_code == 200
    colleague = await world.client("harbor", "integration")
    assert (await colleague.get("/api/providers", params={**query, "cursor": cursor})).status_code == 200

    refused = [
        await agent.get("/api/providers", params={**query, "name": "do", "cursor": cursor}),
        await agent.get("/api/providers", params={**query, "locationId": 2, "cursor": cursor}),
        await agent.get("/api/providers", params={"cursor": cursor}),
        await agent.get("/api/locations", params={"cursor": cursor}),
        await agent.get("/api/visit-types/21/procedures", params={"cursor": cursor}),
        await agent.get("/api/visit-types/99/procedures", params={"cursor": cursor}),
        await agent.get("/api/appointments", params={"cursor": cursor}),
        await stranger.get("/api/providers", params={**query, "cursor": cursor}),
    ]
    for answer in refused:
        assert (answer.status_code, rules(answer)) == (422, {"cursor": "cursor"})
    of_one = (await agent.get("/api/visit-types/21/procedures", params={"limit": 1})).json()["nextCursor"]
    other = await agent.get("/api/visit-types/20/procedures", params={"cursor": of_one})
    assert rules(other) == {"cursor": "cursor"}


async def test_a_cursor_with_any_character_changed_is_refused(world: World) -> None:
    agent = await world.client()
    cursor = (await agent.get("/api/providers", params={"limit": 1})).json()["nextCursor"]
    altered = [cursor[:at] + other + cursor[at + 1 :] for at in range(len(cursor)) for other in "Aw"]
    altered += [cursor[:-1] + other for other in "BCDEFGHIJKLMNOPQRSTUVXYZabcdefghijklmnopqrstuvxyz0123456789-_+/"]
    altered += [cursor[:-1], cursor + "A", cursor + "=", f" {cursor}", cursor + "\n", cursor[::-1], cursor * 2]
    altered += ["", "x", "====", "null", "/w==", "_" * 30, "-" * 31, "é", "\x00", "A" * 5000, "%ff"]
    for text in set(altered) - {cursor}:
        answer = await agent.get("/api/providers", params={"cursor": text})
        assert (answer.status_code, rules(answer)) == (422, {"cursor": "cursor"}), text


async def test_paging_neither_skips_nor_repeats_while_records_come_and_go(world: World) -> None:
    agent = await world.client()
    template = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
locations: [LOCATIONS]
providers: []
visitTypes: []
"""

    async def now_there_are(ids: set[int]) -> None:
        records = ", ".join(f"{{id: {number}, name: Place {number}}}" for number in sorted(ids))
        await world.import_file(template.replace("LOCATIONS", records), prune=True)

    throughout = {3, 6, 9, 12, 15, 18, 21}
    come_and_go = [{1, 4, 7, 10}, set(), {5, 8, 13, 20}, {2, 3, 19, 22}, {17}, set(), {1, 2, 4, 5}]
    seen: list[int] = []
    cursor: dict[str, str] = {}
    for others in itertools.cycle(come_and_go):
        await now_there_are(throughout | others)
        page = (await agent.get("/api/locations", params={"limit": 2, **cursor})).json()
        seen += [item["id"] for item in page["items"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert seen == sorted(set(seen)), "in order, nothing twice"
    assert throughout <= set(seen)


async def test_directory_lists_refuse_parameters_they_do_not_have(world: World) -> None:
    agent = await world.client()
    answer = await agent.get("/api/locations", params={"nam": "x", "locationId": 1, "limit": 0, "cursor": "x"})
    assert answer.status_code == 422
    assert rules(answer) == {"nam": "unknown", "locationId": "unknown", "limit": "range", "cursor": "cursor"}
    assert rules(await agent.get("/api/practice", params={"id": "other"})) == {"id": "unknown"}
