"""Agents that may read their receipts, and the published keys."""

from typing import Any

import httpx
import pytest

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.features.receipts.verifying import verify_receipt
from tests.console.conftest import staff
from tests.support.world import World, patient_id

__all__ = ["staff"]

WITH_RECEIPTS = (*SCOPES, "receipts:read")


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client(scopes=WITH_RECEIPTS)


async def published(world: World) -> dict[str, Any]:
    keys: dict[str, Any] = (await world.anonymous().get("/.well-known/jwks.json")).json()
    return keys


async def listed(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/patients/{await patient_id(client)}/receipts", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def issued(client: httpx.AsyncClient, receipt_id: str) -> str:
    answer = await client.get(f"/api/receipts/{receipt_id}")
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["receipt"]
    return text


async def newest(world: World, client: httpx.AsyncClient) -> dict[str, Any]:
    """What the receipt of the client's newest write about Ada states."""
    return verify_receipt(await issued(client, (await listed(client))[0]["id"]), await published(world))
