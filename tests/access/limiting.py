"""What the tests of the limiter share: callers of new clients, passing time, workers that share only a database."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import pytest

from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.records import add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.keys.ring import KeyRing
from frontdesk.access.limits.rate_limiter import RateLimiter, Refused
from frontdesk.store.database import Database

_numbers = itertools.count(1)


class Clock(Protocol):
    def advance(self, seconds: float) -> None: ...


async def caller_of_new_client(database: Database, ring: KeyRing, per_minute: int, quota: int) -> Caller:
    practice = f"metered-{next(_numbers)}"
    row = await database.write(
        """INSERT INTO practice (slug, name, time_zone, minimum_notice_minutes, booking_horizon_days,
               slot_interval_minutes, scheduling_system, sandbox, created_at)
           VALUES ($1, $1, 'America/New_York', 0, 90, 15, '{"kind": "native"}', false, now())
           RETURNING practice_id""",
        practice,
    )
    assert row is not None
    record, _ = await add_client(
        database,
        ring,
        practice=practice,
        name="Agent",
        grant="agent",
        scopes=SCOPES,
        per_minute=per_minute,
        quota=quota,
    )
    return Caller(record.client_id, row["practice_id"], practice, frozenset(), "agent", 1)


async def pass_time(database: Database, clock: Clock, caller: Caller, seconds: float) -> None:
    """For the limiter by its clock, for the database by ageing what it has stored."""
    clock.advance(seconds)
    async with database.transaction(caller.practice_id) as connection:
        await connection.execute(
            """UPDATE client_usage SET minute_started_at = minute_started_at - make_interval(secs => $2),
                   quota_started_at = quota_started_at - make_interval(secs => $2) WHERE client_id = $1""",
            caller.client_id,
            seconds,
        )


async def made(limiter: RateLimiter, caller: Caller, calls: int) -> tuple[int, list[Refused]]:
    """How many of so many simultaneous calls were let through, and the refusals of the others."""
    answers = await asyncio.gather(*(limiter.charge(caller) for _ in range(calls)), return_exceptions=True)
    refusals = [answer for answer in answers if isinstance(answer, Refused)]
    others = [answer for answer in answers if isinstance(answer, BaseException) and not isinstance(answer, Refused)]
    assert others == []
    return len(answers) - len(refusals), refusals


async def quota_used(database: Database, caller: Caller) -> int:
    async with database.transaction(caller.practice_id) as connection:
        used: int = await connection.fetchval(
            "SELECT quota_used FROM client_usage WHERE client_id = $1", caller.client_id
        )
    return used


def remaining(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[int, int]:
    found = re.fullmatch(r'"minute";r=(\d+);t=\d+, "quota";r=(\d+);t=\d+', headers[0][1].decode())
    assert found
    return int(found[1]), int(found[2])


@asynccontextmanager
async def workers(dsn: str, number: int) -> AsyncIterator[list[RateLimiter]]:
    """Meters that share nothing but the database."""
    databases = [Database(dsn, pool_size=2) for _ in range(number)]
    for database in databases:
        await database.open()
    try:
        yield [RateLimiter(database) for database in databases]
    finally:
        for database in databases:
            await database.close()


async def refusal(limiter: RateLimiter, caller: Caller) -> Refused:
    with pytest.raises(Refused) as refused:
        await limiter.charge(caller)
    return refused.value
