"""Brute force on the token endpoint: failed calls are rate-limited per client id and per address."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from frontdesk.access.limits.failed_attempts import PER_ADDRESS, PER_CLIENT
from frontdesk.app import build_app
from frontdesk.store import database as store
from tests.doors.gateway_answers import check_gateway_problem
from tests.shared_database import world_of_a_module
from tests.world import World

world = world_of_a_module


@pytest.fixture
async def caller_at(world: World) -> AsyncIterator[Any]:
    """Clients of a service with other settings, coming from an address."""
    opened = []

    def make(address: str = "198.51.100.7", **settings: Any) -> httpx.AsyncClient:
        service = replace(world.service, settings=world.service.settings.model_copy(update=settings))
        transport = httpx.ASGITransport(app=build_app(service), client=(address, 4711))
        client = httpx.AsyncClient(transport=transport, base_url="http://test")
        opened.append(client)
        return client

    yield make
    for client in opened:
        await client.aclose()


async def failed_token_call(client: httpx.AsyncClient, client_id: str, **headers: str) -> httpx.Response:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "fds_" + "x" * 43}
    return await client.post("/oauth/token", data=form, headers=headers)


async def test_failed_token_calls_are_capped_per_client_id(world: World, caller_at: Any) -> None:
    known = (await world.client()).headers["X-Test-Client"]
    for client_id in (known, "fd_" + "0" * 20, "no client at all \N{SNOWMAN}"):
        callers = [caller_at(f"203.0.113.{n}") for n in range(5)]
        answers = await asyncio.gather(*(failed_token_call(callers[n % 5], client_id) for n in range(PER_CLIENT + 10)))
        statuses = [answer.status_code for answer in answers]
        assert (statuses.count(401), statuses.count(429)) == (PER_CLIENT, 10)
        refused = await failed_token_call(callers[0], client_id)
        body = check_gateway_problem(refused, 429, "rate_limited")
        assert body["error"] == "temporarily_unavailable"
        assert 1 <= int(refused.headers["retry-after"]) <= 60


async def test_an_unknown_client_and_a_wrong_secret_look_alike_and_cost_alike(world: World, caller_at: Any) -> None:
    known = (await world.client()).headers["X-Test-Client"]
    seen = []
    for client_id in (known, "fd_" + "5" * 20, "fd_" + "6" * 20, known):
        before = world.database.statements
        answer = await failed_token_call(caller_at("203.0.113.61"), client_id)
        headers = {name: value for name, value in answer.headers.items() if name != "x-svc-trace-id"}
        body = {name: value for name, value in answer.json().items() if name != "requestId"}
        seen.append((answer.status_code, headers, body, world.database.statements - before))
    assert seen[0][0] == 401
    assert seen == [seen[0]] * 4


async def test_the_right_secret_tells_a_capped_guesser_nothing(world: World, caller_at: Any) -> None:
    known = (await world.client()).headers["X-Test-Client"]
    client = caller_at("203.0.113.60")
    for _ in range(PER_CLIENT):
        await failed_token_call(client, known)
    form = {"grant_type": "client_credentials", "client_id": known, "client_secret": world.secrets[known]}
    check_gateway_problem(await client.post("/oauth/token", data=form), 429, "rate_limited")


async def test_failed_token_calls_are_capped_per_address(world: World, caller_at: Any) -> None:
    client = caller_at("203.0.113.99")
    for n in range(PER_ADDRESS):
        assert (await failed_token_call(client, f"fd_guess{n:015}")).status_code == 401
    check_gateway_problem(await failed_token_call(client, "fd_" + "1" * 20), 429, "rate_limited")
    assert (await failed_token_call(caller_at("203.0.113.98"), "fd_" + "2" * 20)).status_code == 401


async def test_an_ipv6_host_is_capped_as_one_whatever_address_it_chooses(caller_at: Any) -> None:
    statuses = [
        (await failed_token_call(caller_at(f"2001:db8:7::{n:x}"), f"fd_six{n:017}")).status_code
        for n in range(PER_ADDRESS + 1)
    ]
    assert statuses == [401] * PER_ADDRESS + [429]
    assert (await failed_token_call(caller_at("2001:db8:8::1"), "fd_" + "3" * 20)).status_code == 401


async def test_successful_token_calls_are_not_capped(
    world: World, caller_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ACQUIRE_SECONDS", 60)  # so many wait their turn for a connection
    known = (await world.client()).headers["X-Test-Client"]
    form = {"grant_type": "client_credentials", "client_id": known, "client_secret": world.secrets[known]}
    client = caller_at("203.0.113.44")
    answers = await asyncio.gather(*(client.post("/oauth/token", data=form) for _ in range(PER_ADDRESS + 50)))
    assert {answer.status_code for answer in answers} == {200}


async def test_the_cap_on_failures_heals_and_leaves_nothing_behind(world: World, caller_at: Any) -> None:
    client, client_id = caller_at("203.0.113.70"), "fd_" + "4" * 20
    for _ in range(PER_CLIENT + 1):
        await failed_token_call(client, client_id)
    await world.database.write("UPDATE token_failure SET started_at = started_at - interval '61 seconds'")
    world.service.failed_attempts._refused.clear()
    assert (await failed_token_call(client, client_id)).status_code == 401
    await world.database.write("UPDATE token_failure SET started_at = started_at - interval '61 seconds'")
    await world.service.failed_attempts.prune()
    assert await world.database.fetchval("SELECT count(*) FROM token_failure") == 0
