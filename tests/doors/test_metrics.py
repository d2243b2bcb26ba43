"""/metrics: what is counted, for whom, and what is never in it."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from frontdesk.app import Service, build_app
from frontdesk.doors.metrics import Metrics
from frontdesk.store import database as store
from tests.shared_database import world_of_a_module
from tests.world import World

MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
TOKEN = "a token for whoever scrapes"


world = world_of_a_module


@pytest.fixture
async def measured(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """The service with metrics on. A database that is slow to answer is up all the same."""
    monkeypatch.setattr(store, "_MEASURE_SECONDS", 30)
    settings = replace(world.service.settings, metrics_token=TOKEN, data_dir=tmp_path)
    service = replace(world.service, settings=settings, metrics=Metrics(world.database, settings))
    publishing = asyncio.create_task(service.metrics.keep_publishing())
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=build_app(service)), base_url="http://test")
    yield service, client
    await client.aclose()
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)


@pytest.fixture(autouse=True)
def request_log() -> Iterator[None]:
    """As it was, after a test has turned metrics on."""
    requests = logging.getLogger("frontdesk.request")
    before = (requests.propagate, requests.level, list(requests.handlers))
    yield
    requests.propagate, requests.level, requests.handlers = before


async def test_there_is_no_metrics_page_unless_a_token_was_set(world: World) -> None:
    answer = await world.anonymous().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_metrics_need_their_token(measured: tuple[Service, httpx.AsyncClient], world: World) -> None:
    _, client = measured
    other = (await world.client()).headers["Authorization"]
    for authorization in ("", f"Bearer {TOKEN}x", TOKEN, other):
        answer = await client.get("/metrics", headers={"Authorization": authorization})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


async def scrape(client: httpx.AsyncClient) -> dict[str, float]:
    answer = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.headers["cache-control"] == "no-store"
    series = {}
    for line in answer.text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) .+|[a-z_]+(\{[^}]*\})? [0-9.e+-]+", line), line
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name not in series
            series[name] = float(value)
    return series


async def test_metrics_count_by_door_operation_and_code(
    measured: tuple[Service, httpx.AsyncClient], world: World
) -> None:
    _, client = measured
    await asyncio.sleep(0)
    token = {"Authorization": (await world.client(per_minute=5)).headers["Authorization"]}
    for _ in range(2):
        await client.get("/api/capabilities", headers=token)
    await client.get("/api/slots", headers=token)
    await client.get("/api/nowhere", headers=token)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_practice", "arguments": {}}}
    await client.post("/mcp", json=call, headers={**MCP_HEADERS, **token})
    await client.get("/api/capabilities", headers=token)
    series = await scrape(client)
    counted = 'frontdesk_requests_total{door="%s",operation="%s",code="%s"}'
    assert series[counted % ("rest", "get_capabilities", "200")] == 2
    assert series[counted % ("rest", "search_slots", "422")] == 1
    assert series[counted % ("rest", "", "404")] == 1
    assert series[counted % ("mcp", "get_practice", "200")] == 1
    assert series[counted % ("gateway", "", "429")] == 1
    assert series[counted % ("oauth", "token", "200")] == 1
    timed = 'door="rest",operation="get_capabilities"'
    assert series[f'frontdesk_request_seconds_bucket{{{timed},le="+Inf"}}'] == 2
    assert series[f"frontdesk_request_seconds_count{{{timed}}}"] == 2
    assert 0 < series[f"frontdesk_request_seconds_sum{{{timed}}}"] < 10
    assert series["frontdesk_database_up"] == 1
    assert series["frontdesk_database_bytes"] > 1_000_000
    assert sum(value for name, value in series.items() if name.startswith("frontdesk_database_connections{")) == 16
    text = "\n".join(series)
    assert "harbor" not in text
    assert "fd_" not in text


async def test_metrics_add_up_what_all_workers_of_the_server_counted(
    measured: tuple[Service, httpx.AsyncClient], world: World
) -> None:
    service, client = measured
    await asyncio.sleep(0.1)
    (own,) = service.settings.data_dir.glob("metrics/*.json")
    assert own.parent.stat().st_mode & 0o077 == 0
    sibling = own.with_name(own.name.partition("-")[0] + "-999999999.json")
    counted = {
        "requests": [["rest", "get_slot", "200", 7]],
        "times": [["rest", "get_slot", [7, *[0] * 13, 0.002]]],
        "statements": 5,
        "connections": {"busy": 3},
    }
    sibling.write_text(json.dumps(counted))
    stranger = own.with_name("1-1.json")
    stranger.write_text(sibling.read_text())
    series = await scrape(client)
    assert series['frontdesk_requests_total{door="rest",operation="get_slot",code="200"}'] == 7
    assert series['frontdesk_request_seconds_count{door="rest",operation="get_slot"}'] == 7
    assert series['frontdesk_database_connections{state="busy"}'] < 3  # that worker has ended


async def test_metrics_say_when_the_database_is_down(measured: tuple[Service, httpx.AsyncClient], world: World) -> None:
    _, client = measured
    await world.database.close()
    try:
        async with asyncio.timeout(30):
            series = await scrape(client)
    finally:
        await world.database.open()
    assert series["frontdesk_database_up"] == 0
