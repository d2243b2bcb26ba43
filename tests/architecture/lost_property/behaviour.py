"""Becomes the test of the feature that is added: each part that it brings, in use."""

from dataclasses import replace

import httpx

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import build_background
from frontdesk.feature import features
from frontdesk.outbound.webhooks.events import event_types
from frontdesk.practice_file import dump, parse
from frontdesk.store.practices import export_practice
from tests.console.desk import records, stored
from tests.support.world import World

ITEM = {"what": "A red umbrella", "key": "a key of a form"}


async def test_what_staff_write_down_reaches_agents_and_webhooks(world: World, staff: httpx.AsyncClient) -> None:
    assert 'href="/console/lost-property"' in (await staff.get("/console/account")).text
    assert (await staff.post("/console/lost-property", data={**ITEM, "what": " "})).status_code == 422
    assert (await staff.post("/console/lost-property", data=ITEM)).status_code == 303
    assert ITEM["what"] in (await staff.get("/console/lost-property")).text
    reader = await world.client(scopes=(*SCOPES, "lostItems:read"))
    answer = await reader.get("/api/lost-items")
    assert answer.json() == {"items": [{"what": ITEM["what"], "foundAt": "2026-11-15T08:00:00Z"}]}
    assert (await (await world.client()).get("/api/lost-items")).status_code == 403
    [event] = await stored(world, "SELECT type, subject::text FROM outbox WHERE practice_id = $1")
    assert (event["type"], event["subject"]) == ("lostItem.found", '{"itemId": "a key of a form"}')
    assert "lostItem.found" in event_types()
    assert len(await records(world, operation="console.add_lost_item")) == 1


async def test_the_step_keeps_items_for_as_long_as_the_practice_file_says(
    world: World, staff: httpx.AsyncClient
) -> None:
    file = await export_practice(world.database, "harbor", with_patients=False)
    assert file is not None
    practice = replace(file.directory.practice, features={"lost_property": {"keep_days": 2}})
    text = dump(replace(file, directory=replace(file.directory, practice=practice)))
    assert "lostProperty: {keepDays: 2}" in text
    assert parse(text).directory.practice.features == practice.features
    await world.import_file(text)
    await staff.post("/console/lost-property", data=ITEM)
    (step,) = (step for step in build_background(world.service).steps if step.name == "lost item pruning")
    for days, left in ((1, 1), (2, 0)):
        world.clock.advance(days=days)
        await step.run()
        assert len(await stored(world, "SELECT FROM lost_item WHERE practice_id = $1")) == left


async def test_a_practice_that_switches_it_off_has_no_page(world: World, staff: httpx.AsyncClient) -> None:
    file = await export_practice(world.database, "harbor", with_patients=False)
    assert file is not None
    off = replace(file.directory.practice, features={features()[-1].name: {"enabled": False}})
    await world.import_file(dump(replace(file, directory=replace(file.directory, practice=off))))
    assert (await staff.get("/console/lost-property")).status_code == 404
    assert "lost-property" not in (await staff.get("/console/account")).text
