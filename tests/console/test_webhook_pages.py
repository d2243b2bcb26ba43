"""Webhooks at the console: who is told, what could not be delivered, and sending it once more."""

import httpx
import pytest

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.domain.errors import Problem
from frontdesk.outbound.webhooks.deliveries import list_deliveries
from frontdesk.outbound.webhooks.endpoints import add_endpoint, show_endpoint
from tests.console.admin_pages import practice_id, text_of
from tests.console.signing_in import TEST_STAFF, action_context, audited
from tests.world import World


async def endpoint(world: World, slug: str = "harbor") -> str:
    """An endpoint with one dead letter."""
    practice = await practice_id(world, slug)
    url = f"https://{slug}.example.com/hook?a=1&b=<i>"
    added, _ = await add_endpoint(world.database, KeyCipher(["k" * 43]), practice, url, [], world.clock.now)
    async with world.database.transaction(practice) as connection:
        event = await connection.fetchval(
            """INSERT INTO outbox (practice_id, type, subject, occurred_at)
               VALUES ($1, 'appointment.booked', '{}', $2) RETURNING event_id""",
            practice,
            world.clock.now,
        )
        await connection.execute(
            """INSERT INTO webhook_delivery (practice_id, endpoint_id, event_id, subject, state, attempts, due_at)
               VALUES ($1, $2, $3, 's', 'dead', 9, $4)""",
            practice,
            added.endpoint_id,
            event,
            world.clock.now,
        )
    return added.endpoint_id


async def test_a_practice_without_endpoints_is_told_how_to_add_one(admin: httpx.AsyncClient) -> None:
    said = text_of(await admin.get("/console/practice/webhooks"))
    assert "frontdesk webhook add --practice harbor" in said


async def test_dead_letters_are_shown_and_sent_once_more(world: World, admin: httpx.AsyncClient) -> None:
    endpoint_id = await endpoint(world)
    page = await admin.get("/console/practice/webhooks")
    assert "https://harbor.example.com/hook?a=1&b=<i>" in text_of(page)
    assert "<i>" not in page.text
    assert "Undeliverable 1" in text_of(page)
    answer = await admin.post(f"/console/practice/webhooks/{endpoint_id}/replay")
    assert answer.status_code == 303
    (delivery,) = await list_deliveries(world.database, endpoint_id, None, 10)
    assert (delivery.state, delivery.attempts) == ("pending", 0)


async def test_an_endpoint_is_paused_and_resumed_under_the_staff_id(world: World, admin: httpx.AsyncClient) -> None:
    endpoint_id = await endpoint(world)
    path = f"/console/practice/webhooks/{endpoint_id}"
    await admin.post(f"{path}/pause")
    assert (await show_endpoint(world.database, endpoint_id)).pause_reason == "operator"
    assert "manually" in text_of(await admin.get("/console/practice/webhooks"))
    await admin.post(f"{path}/resume")
    assert (await show_endpoint(world.database, endpoint_id)).paused_at is None
    mine = [record for record in await audited(world) if "webhook" in record[0]]
    assert mine == [
        (f"console.{action}_webhook", "executed", admin.headers[TEST_STAFF]) for action in ("pause", "resume")
    ]


async def test_another_practices_endpoint_does_not_exist(world: World, admin: httpx.AsyncClient) -> None:
    theirs = await endpoint(world, "other")
    assert "other.example.com" not in (await admin.get("/console/practice/webhooks")).text
    for action in ("replay", "pause", "resume"):
        for endpoint_id in (theirs, "whk_1_0000000000000000", "nothing"):
            answer = await admin.post(f"/console/practice/webhooks/{endpoint_id}/{action}")
            assert answer.status_code == 404, (action, endpoint_id)
    assert (await show_endpoint(world.database, theirs)).paused_at is None
    assert (await show_endpoint(world.database, theirs)).dead == 1


async def test_staff_reach_nothing_of_it_whatever_a_page_forgets(world: World, staff: httpx.AsyncClient) -> None:
    endpoint_id = await endpoint(world)
    assert (await staff.get("/console/practice/webhooks")).status_code == 403
    assert (await staff.post(f"/console/practice/webhooks/{endpoint_id}/pause")).status_code == 403
    context = await action_context(world)
    desk = world.service.desk.webhooks
    for attempt in (
        desk.all(context),
        desk.replay_dead(context, endpoint_id),
        desk.set_paused(context, endpoint_id, paused=True),
    ):
        with pytest.raises(Problem):
            await attempt
