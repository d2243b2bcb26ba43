"""The limiter under any order of calls, reports, crashes and passing time, on any number of workers."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.access.clients.caller import Caller
from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.access.keys.ring import KeyRing
from frontdesk.access.limits.rate_limiter import RateLimiter
from frontdesk.store.database import Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.access.conftest import SECRET_KEY
from tests.access.limiting import caller_of_new_client, made, pass_time, quota_used
from tests.support.shared_database import new_database, opened

WORKERS = 3
STEPS = st.one_of(
    st.tuples(st.just("call"), st.integers(0, WORKERS - 1), st.integers(1, 12)),
    st.tuples(st.just("call"), st.integers(0, WORKERS - 1), st.integers(1, 60)),
    st.tuples(st.just("report"), st.integers(0, WORKERS - 1), st.just(0)),
    st.tuples(st.just("settle"), st.integers(0, WORKERS - 1), st.just(0)),
    st.tuples(st.just("crash"), st.integers(0, WORKERS - 1), st.just(0)),
    st.tuples(st.just("pass"), st.just(0), st.sampled_from([1, 4, 10, 30, 61, 66])),
)


class HurriedClock:
    """Goes on by itself, as the database's does, and jumps ahead when told to."""

    hurried = timedelta(0)

    def monotonic(self) -> float:
        return time.monotonic() + self.hurried.total_seconds()

    def advance(self, seconds: float) -> None:
        self.hurried += timedelta(seconds=seconds)


async def minute_of(database: Database, caller: Caller) -> datetime:
    async with database.transaction(caller.practice_id) as connection:
        started: datetime = await connection.fetchval("SELECT minute_started_at FROM client_usage")
    return started


@pytest.fixture(scope="module")
async def database(cluster: EmbeddedPostgres, template: str) -> AsyncIterator[Database]:
    async with new_database(cluster, template) as dsn, opened(dsn) as database:
        yield database


@pytest.fixture(scope="module")
async def ring(database: Database) -> KeyRing:
    ring = KeyRing(database, KeyCipher([SECRET_KEY]))
    await ring.load()
    return ring


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(per_minute=st.integers(1, 80), quota=st.integers(1, 200), steps=st.lists(STEPS, max_size=25))
async def test_no_order_of_events_lets_a_call_through_too_many_or_charges_one_that_was_not_made(
    database: Database, ring: KeyRing, per_minute: int, quota: int, steps: list[tuple[str, int, int]]
) -> None:
    caller = await caller_of_new_client(database, ring, per_minute, quota)
    clock = HurriedClock()
    limiters = [RateLimiter(database, monotonic=clock.monotonic) for _ in range(WORKERS)]
    calls: Counter[datetime] = Counter()  # let through, by the minute they belong to
    lost = 0  # calls that a crash kept from being reported
    for action, worker, amount in steps:
        limiter = limiters[worker]
        if action == "call":
            passed, _ = await made(limiter, caller, amount)
            if passed:
                calls[await minute_of(database, caller) + clock.hurried] += passed
        elif action == "report":
            await limiter._report()
        elif action == "settle":
            await limiter.return_leases()
        elif action == "crash":
            while limiter._tasks:  # what is under way arrives; what is not, never does
                await asyncio.wait(limiter._tasks)
            lost += sum(account.lease.used for account in limiter._accounts.values())
            limiters[worker] = RateLimiter(database, monotonic=clock.monotonic)
        elif calls:
            for living in limiters:  # who lives reports more often than that
                await living._report()
            await pass_time(database, clock, caller, amount)
        assert max(calls.values(), default=0) <= per_minute
        assert calls.total() <= quota + lost
        if calls:
            assert await quota_used(database, caller) <= calls.total()
    for limiter in limiters:
        await limiter.return_leases()
    if calls:
        assert await quota_used(database, caller) == calls.total() - lost
    minutes = sorted(calls)
    assert all(later - earlier >= timedelta(seconds=60) for earlier, later in pairwise(minutes))
