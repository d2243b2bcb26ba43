"""The limiter against a real PostgreSQL: exact across workers, charged for what was made, healed by time."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.records import change_client
from frontdesk.access.keys.ring import KeyRing
from frontdesk.access.limits.rate_limiter import FIRST_LEASE, LEASE_SECONDS, RateLimiter, Refused
from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.store.hosts import Hosts
from frontdesk.store.notifications import NotificationListener
from tests.access.limiting import caller_of_new_client, made, pass_time, quota_used, refusal, remaining, workers
from tests.access.stopped_clock import StoppedClock
from tests.support.running import running
from tests.support.shared_database import new_database, opened

NewCaller = Callable[..., Awaitable[Caller]]


@pytest.fixture(scope="module")
async def database_dsn(cluster: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    async with new_database(cluster, template) as dsn:
        yield dsn


@pytest.fixture(scope="module")
async def database(database_dsn: str) -> AsyncIterator[Database]:
    async with opened(database_dsn, 8) as database:
        yield database


@pytest.fixture
def new_caller(database: Database, ring: KeyRing) -> NewCaller:
    async def make(per_minute: int = 600, quota: int = 1_000_000) -> Caller:
        return await caller_of_new_client(database, ring, per_minute, quota)

    return make


@pytest.fixture
def limiter(database: Database, clock: StoppedClock) -> RateLimiter:
    return RateLimiter(database, monotonic=clock.monotonic)


async def test_calls_up_to_the_cap_pass_and_the_next_is_refused(limiter: RateLimiter, new_caller: NewCaller) -> None:
    caller = await new_caller(per_minute=25)
    for _ in range(25):
        await limiter.charge(caller)
    with pytest.raises(Refused) as refused:
        await limiter.charge(caller)
    assert refused.value.problem.code == "rate_limited"
    assert 1 <= (refused.value.problem.retry_after or 0) <= 60


async def test_a_warm_call_asks_the_database_nothing(
    database: Database, limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller()
    await limiter.charge(caller)
    before = database.statements
    for _ in range(FIRST_LEASE // 2):
        await limiter.charge(caller)
    await asyncio.sleep(0)
    assert database.statements == before


async def test_the_next_lease_arrives_before_this_one_is_used_up(
    database: Database, limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=100_000)
    await limiter.charge(caller)
    began, waited = database.statements, 0
    for _ in range(600):
        before = database.statements
        await limiter.charge(caller)
        waited += database.statements - before  # a statement inside the call is one that the call waited for
        await asyncio.sleep(0.0001)
    assert waited <= 2
    assert database.statements - began < 100


async def test_leases_grow_with_the_rate(database: Database, limiter: RateLimiter, new_caller: NewCaller) -> None:
    caller = await new_caller(per_minute=1_000_000)
    before = database.statements
    for _ in range(5000):
        await limiter.charge(caller)
    assert database.statements - before < 20


async def test_the_cap_is_exact_across_workers(database_dsn: str, new_caller: NewCaller) -> None:
    caller = await new_caller(per_minute=137)
    async with workers(database_dsn, 6) as limiters:
        results = await asyncio.gather(*(made(limiter, caller, 60) for limiter in limiters))
        passed = sum(count for count, _ in results)
        assert passed <= 137  # some hold a little that they did not use
        for limiter in limiters:
            await limiter.return_leases()
        await asyncio.sleep(0.6)
        assert passed + (await made(limiters[0], caller, 60))[0] == 137
    assert {refusal.problem.code for _, refusals in results for refusal in refusals} == {"rate_limited"}


async def test_calls_that_trickle_in_at_many_workers_use_the_whole_cap(
    database_dsn: str, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=100)
    async with workers(database_dsn, 5) as limiters:
        passed = 0
        for at in range(400):
            try:
                await limiters[at % 5].charge(caller)
                passed += 1
            except Refused:
                pass
    assert passed == 100


async def test_what_an_idle_worker_holds_goes_back(database_dsn: str, new_caller: NewCaller) -> None:
    caller = await new_caller(per_minute=100)
    async with workers(database_dsn, 2) as (idle, busy):
        await idle.charge(caller)
        assert (await made(busy, caller, 200))[0] < 99
        await idle.return_leases()
        await asyncio.sleep(0.6)
        await made(busy, caller, 200)
        passed = remaining((await refusal(busy, caller)).headers)
    assert passed[0] == 0
    assert passed[1] == 1_000_000 - 100


async def test_the_minute_begins_with_the_first_call_and_heals_by_itself(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=10)
    assert (await made(limiter, caller, 30))[0] == 10
    await pass_time(database, clock, caller, 30)  # the database's own time goes on meanwhile: enough of it is left
    refused = await refusal(limiter, caller)
    assert refused.problem.code == "rate_limited"
    assert 1 <= (refused.problem.retry_after or 0) <= 30
    await pass_time(database, clock, caller, 30.1)
    assert (await made(limiter, caller, 30))[0] == 10


async def test_hammering_while_refused_neither_prolongs_the_minute_nor_reaches_the_database(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=5)
    await made(limiter, caller, 6)
    await refusal(limiter, caller)
    before = database.statements
    for _ in range(500):
        await refusal(limiter, caller)
    assert database.statements == before
    await pass_time(database, clock, caller, 60.1)
    await limiter.charge(caller)


async def test_a_clock_that_was_set_back_locks_nobody_out(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=5)
    await made(limiter, caller, 6)
    await limiter.return_leases()
    await pass_time(database, clock, caller, -3600)
    clock.advance(3600 + 61)
    assert (await made(limiter, caller, 6))[0] == 5


async def test_what_a_dead_worker_held_comes_back_with_the_next_minute(
    database: Database, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=20)
    dead = RateLimiter(database, monotonic=clock.monotonic)
    await made(dead, caller, 15)
    survivor = RateLimiter(database, monotonic=clock.monotonic)
    assert (await made(survivor, caller, 50))[0] <= 5
    await pass_time(database, clock, caller, 60.1)
    assert (await made(survivor, caller, 50))[0] == 20


async def test_the_quota_is_exact_across_workers(database_dsn: str, new_caller: NewCaller) -> None:
    caller = await new_caller(quota=150)
    async with workers(database_dsn, 4) as limiters:
        passed = 0
        for _ in range(4):
            results = await asyncio.gather(*(made(limiter, caller, 30) for limiter in limiters))
            passed += sum(count for count, _ in results)
            for limiter in limiters:
                await limiter.return_leases()
        assert passed == 150
        await asyncio.sleep(0.6)
        assert (await refusal(limiters[0], caller)).problem.code == "quota_exceeded"


async def test_an_exceeded_quota_says_when_it_resets_and_then_does(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(quota=3)
    await made(limiter, caller, 3)
    refused = await refusal(limiter, caller)
    assert refused.problem.code == "quota_exceeded"
    assert refused.problem.retry_after is None
    state = refused.headers[0][1].decode()
    assert re.search(r'"quota";r=0;t=(2592000|25919\d\d)$', state), state
    await pass_time(database, clock, caller, 29.9 * 24 * 3600)
    assert (await refusal(limiter, caller)).problem.code == "quota_exceeded"
    await pass_time(database, clock, caller, 0.2 * 24 * 3600)
    assert (await made(limiter, caller, 5))[0] == 3


async def test_the_quota_survives_a_killed_worker_and_never_charges_what_was_not_made(
    database: Database, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller()
    killed = RateLimiter(database, monotonic=clock.monotonic)
    async with running(killed.step):
        for _ in range(30):
            await killed.charge(caller)
        async with asyncio.timeout(30):
            while await quota_used(database, caller) < 30:  # what was made is reported by itself
                await asyncio.sleep(0.05)
        assert await quota_used(database, caller) == 30
        for _ in range(3):
            await killed.charge(caller)
        killed._accounts.clear()  # the process is gone before it settles
    assert await quota_used(database, caller) == 30
    await pass_time(database, clock, caller, 61)
    restarted = RateLimiter(database, monotonic=clock.monotonic)
    assert remaining(await restarted.charge(caller))[1] == 1_000_000 - 31
    await restarted.return_leases()
    assert await quota_used(database, caller) == 31


async def test_a_worker_that_ends_in_order_reports_everything(
    database: Database, limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller()
    async with running(limiter.step):
        for _ in range(7):
            await limiter.charge(caller)
    assert await quota_used(database, caller) == 7
    async with database.transaction(caller.practice_id) as connection:
        row = await connection.fetchrow("SELECT minute_leased, minute_used FROM client_usage")
    assert tuple(row) == (7, 7)


async def test_headers_count_down_call_by_call_in_the_syntax_of_the_draft(
    limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=600, quota=1_000_000)
    seen = [await limiter.charge(caller) for _ in range(50)]
    assert [remaining(headers) for headers in seen] == [(599 - n, 999_999 - n) for n in range(50)]
    assert seen[0][1] == (b"ratelimit-policy", b'"minute";q=600;w=60, "quota";q=1000000;w=2592000')
    assert re.fullmatch(rb'"minute";r=599;t=(60|59), "quota";r=999999;t=2592000', seen[0][0][1])


async def test_a_changed_limit_holds_at_once_where_the_notification_arrives(
    database: Database, database_dsn: str, limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=100)
    heard = asyncio.Event()

    def on_change(kind: str, id_: str) -> None:
        limiter.on_change(kind, id_)
        heard.set()

    listener = NotificationListener(Hosts(database_dsn), on_change)
    async with running(listener.step):
        await asyncio.wait_for(listener.listening.wait(), 30)
        assert (await made(limiter, caller, 10))[0] == 10
        await change_client(database, caller.client_id, per_minute=12)
        await asyncio.wait_for(heard.wait(), 30)
        heard.clear()
        assert (await made(limiter, caller, 10))[0] == 2
        await change_client(database, caller.client_id, per_minute=15)
        await asyncio.wait_for(heard.wait(), 30)
        assert (await made(limiter, caller, 10))[0] == 3


async def test_a_changed_limit_holds_within_five_seconds_where_it_does_not(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=100)
    assert (await made(limiter, caller, 10))[0] == 10
    await change_client(database, caller.client_id, per_minute=12)
    clock.advance(LEASE_SECONDS + 0.1)
    assert (await made(limiter, caller, 10))[0] == 2
    assert LEASE_SECONDS < 5


async def test_a_busy_client_hears_of_a_changed_limit_too(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=10_000)
    passed = 0
    for second in range(12):
        if second == 6:
            await change_client(database, caller.client_id, per_minute=passed)
        for _ in range(10):
            try:
                await limiter.charge(caller)
            except Refused:
                assert second >= 6
                continue
            assert second < 11  # no call is let through five seconds after the change
            passed += 1
            await asyncio.sleep(0.002)
        clock.advance(1)


async def test_without_the_database_nobody_is_let_through_and_nobody_hangs(
    database: Database, limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller()
    await database.close()
    async with asyncio.timeout(30):
        passed, refusals = await made(limiter, caller, 10)
    assert passed == 0
    assert {refused.problem.code for refused in refusals} == {"upstream_unavailable"}
    assert {refused.problem.retry_after for refused in refusals} == {2}
    await database.open()
    await limiter.charge(caller)


async def test_calls_made_from_a_lease_during_an_outage_are_charged_afterwards(
    database: Database, limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller()
    await limiter.charge(caller)
    await database.close()
    for _ in range(5):
        await limiter.charge(caller)
    with pytest.raises(DatabaseUnavailable):
        await limiter._report()
    await database.open()
    await limiter.return_leases()
    assert await quota_used(database, caller) == 6


async def test_clients_do_not_share_their_calls(limiter: RateLimiter, new_caller: NewCaller) -> None:
    one, other = await new_caller(per_minute=5), await new_caller(per_minute=5)
    assert (await made(limiter, one, 9))[0] == 5
    assert (await made(limiter, other, 9))[0] == 5


async def test_a_caller_that_gives_up_waiting_takes_nothing_from_the_others(
    limiter: RateLimiter, new_caller: NewCaller
) -> None:
    caller = await new_caller(per_minute=3)
    tasks = [asyncio.create_task(limiter.charge(caller)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(result, tuple) for result in results[1:])
    await limiter.charge(caller)


async def test_accounts_of_clients_that_stopped_calling_are_forgotten(
    limiter: RateLimiter, clock: StoppedClock, new_caller: NewCaller
) -> None:
    caller = await new_caller()
    await limiter.charge(caller)
    await limiter._report()
    clock.advance(120)
    await limiter._report()
    await limiter._report()
    clock.advance(120)
    await limiter._report()
    assert limiter._accounts == {}


async def test_an_outage_is_logged_once(
    limiter: RateLimiter,
    clock: StoppedClock,
    new_caller: NewCaller,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    callers = [await new_caller() for _ in range(3)]

    async def unavailable(*_: object) -> None:
        raise DatabaseUnavailable

    async def outage() -> int:
        caplog.clear()
        with monkeypatch.context() as patch:
            patch.setattr(database, "write", unavailable)
            for caller in callers * 5:
                with pytest.raises(Refused):
                    await limiter.charge(caller)
                clock.advance(1)
        return sum("could not be counted" in line.getMessage() for line in caplog.records)

    assert await outage() == 1
    await limiter.charge(callers[0])
    clock.advance(60)
    assert await outage() == 1, "the next outage is told, too"
