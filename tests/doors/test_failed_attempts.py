"""Brute force on the token endpoint: failed calls are rate-limited, and that limit locks out nobody else."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from frontdesk.access.limits import failed_attempts
from frontdesk.access.limits.failed_attempts import PER_ADDRESS, PER_CLIENT, FailedAttempts, prune_attempts
from frontdesk.domain.errors import Problem
from tests.console.signing_in import browser_at, csrf_in
from tests.doors.gateway_answers import check_gateway_problem
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module


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


async def test_guesses_from_an_address_lock_out_neither_right_secrets_nor_staff_behind_it(
    world: World, caller_at: Any
) -> None:
    known = (await world.client()).headers["X-Test-Client"]
    client = caller_at("203.0.113.90")
    for n in range(PER_ADDRESS):
        await failed_token_call(client, f"fd_lever{n:015}")
    check_gateway_problem(await failed_token_call(client, "fd_" + "7" * 20), 429, "rate_limited")
    form = {"grant_type": "client_credentials", "client_id": known, "client_secret": world.secrets[known]}
    assert (await client.post("/oauth/token", data=form)).status_code == 200
    staff = browser_at(world, "203.0.113.90")
    page = csrf_in((await staff.get("/console/sign-in")).text)
    guess = await staff.post("/console/sign-in", data={"csrf": page, "link": "guess"})
    assert guess.status_code == 401, "sign-ins have counters of their own"


async def test_somebody_elsewhere_cannot_lock_a_client_out_by_failing_in_its_name(world: World, caller_at: Any) -> None:
    known = (await world.client()).headers["X-Test-Client"]
    for n in range(PER_CLIENT + 5):
        await failed_token_call(caller_at(f"198.18.0.{n % 3}"), known)
    form = {"grant_type": "client_credentials", "client_id": known, "client_secret": world.secrets[known]}
    assert (await caller_at("203.0.113.91").post("/oauth/token", data=form)).status_code == 200
    check_gateway_problem(await failed_token_call(caller_at("203.0.113.91"), known), 429, "rate_limited")


async def test_a_client_that_hammers_the_token_endpoint_is_refused(world: World, caller_at: Any) -> None:
    known = (await world.client(per_minute=25)).headers["X-Test-Client"]  # the first of its tokens
    form = {"grant_type": "client_credentials", "client_id": known, "client_secret": world.secrets[known]}
    callers = [caller_at(f"203.0.113.{n}") for n in (1, 2)]
    answers = [await callers[n % 2].post("/oauth/token", data=form) for n in range(27)]
    assert [answer.status_code for answer in answers] == [200] * 24 + [429] * 3
    body = check_gateway_problem(answers[-1], 429, "rate_limited")
    assert "too many tokens" in body["detail"]
    assert (await world.client()).headers["Authorization"], "another client is not concerned"


async def test_a_flood_of_guesses_gets_few_connections_to_the_database(world: World) -> None:
    attempts = FailedAttempts(world.database)
    running, most, asked = 0, 0, 0

    async def guess() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        async with asyncio.timeout(30):
            while world.database.statements < asked:  # until everybody has come as far as they get
                await asyncio.sleep(0.01)
        running -= 1
        raise Problem("unauthorized")

    async def refusal(n: int) -> str:
        with pytest.raises(Problem) as raised:
            await attempts.guard("token", f"flood {n}", "203.0.113.80", guess)
        return raised.value.code

    assert [await refusal(n) for n in range(PER_ADDRESS + 1)] == ["unauthorized"] * PER_ADDRESS + ["rate_limited"]
    most, before = 0, world.database.statements
    asked = before + 50
    assert set(await asyncio.gather(*(refusal(1000 + n) for n in range(50)))) == {"rate_limited"}
    assert most == 4
    assert world.database.statements == before + 50, "nothing more is written"


async def test_guesses_that_take_long_at_one_door_hold_up_no_right_credentials_at_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts, all_begun, over = FailedAttempts(world.database), asyncio.Barrier(5), asyncio.Event()

    async def wrong() -> str:
        raise Problem("unauthorized")

    async def wrong_in_the_end() -> str:
        await all_begun.wait()
        await over.wait()
        return await wrong()

    async def right() -> str:
        return "in"

    monkeypatch.setattr(failed_attempts, "PER_ADDRESS", 1)
    monkeypatch.setattr(failed_attempts, "PER_CLIENT", 1)
    for number in (1, 2):
        with pytest.raises(Problem):
            await attempts.guard("sign-in", f"identity {number}", "203.0.113.95", wrong)
        with pytest.raises(Problem):
            await attempts.guard("token", "a client elsewhere", f"198.18.1.{number}", wrong)
    slow = [
        asyncio.create_task(attempts.guard("sign-in", f"slow {number}", "203.0.113.95", wrong_in_the_end))
        for number in range(4)
    ]
    try:
        async with asyncio.timeout(5):
            await all_begun.wait()
            assert await attempts.guard("token", "a client elsewhere", "203.0.113.97", right) == "in"
    finally:
        over.set()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_an_ipv6_host_is_capped_as_one_whatever_address_it_chooses(caller_at: Any) -> None:
    statuses = [
        (await failed_token_call(caller_at(f"2001:db8:7::{n:x}"), f"fd_six{n:017}")).status_code
        for n in range(PER_ADDRESS + 1)
    ]
    assert statuses == [401] * PER_ADDRESS + [429]
    assert (await failed_token_call(caller_at("2001:db8:8::1"), "fd_" + "3" * 20)).status_code == 401


async def test_successful_token_calls_are_not_capped(world: World, caller_at: Any) -> None:
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
    assert await prune_attempts(world.database, datetime.now(UTC), 1000) > 0
    assert await world.database.fetchval("SELECT count(*) FROM token_failure") == 0
