"""What the tests of slots share: a search to vary, and ids of times that were never offered."""

from datetime import datetime
from typing import Any

import httpx

from frontdesk.domain.local_time import minute_of
from frontdesk.store.practices import practice_id_of
from tests.support.world import PRACTICE, World, slots

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
    return minute_of(datetime.fromisoformat(text))
