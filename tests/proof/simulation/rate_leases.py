"""Rate limiters of several workers and the leases that they share: never above the cap, and never stuck below it."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.access.limits.rate_limiter import MINUTE_SECONDS, RateLimiter, Refused
from tests.proof.simulation.loop import BEGAN, Link, SimulatedLoop

MINUTE = timedelta(seconds=MINUTE_SECONDS)
REPORTING = timedelta(seconds=5)
CALLER = Caller("client", 1, "harbor", frozenset(), "agent", 1)


@dataclass
class Leases:
    """What lease_calls does, as a reader of its text would do it by hand."""

    link: Link
    loop: SimulatedLoop
    per_minute: int
    quota: int
    minute: datetime = BEGAN - MINUTE
    leased: int = 0
    used: int = 0
    late: int = 0
    quota_used: int = 0
    minutes: list[datetime] = field(default_factory=list)

    async def write(self, _sql: str, *given: Any) -> dict[str, Any]:
        return await self.link.write(lambda: self._lease(*given[2:]))

    def _lease(self, window: datetime, used: int, unused: int, waiting: int, asked: int) -> dict[str, Any]:
        now, granted = self.loop.wall(), 0
        if window == self.minute:
            self.used += used
            self.leased -= unused
        else:
            self.late = max(0, self.late - used - unused)
        self.quota_used += used
        if waiting + asked > 0:
            if not -MINUTE <= now - self.minute <= MINUTE:
                self.late = max(0, self.leased - self.used)
                self.minute, self.leased, self.used = now, 0, 0
                self.minutes.append(now)
            if now > self.minute + REPORTING:
                self.late = 0
            in_quota = self.quota - self.quota_used - self.late - (self.leased - self.used)
            free = max(0, min(self.per_minute - self.leased, in_quota))
            granted = min(free, max(waiting, min(asked, free // 8)))
            self.leased += granted
        return {
            "granted": granted, "minute_started_at": self.minute,
            "minute_seconds": (self.minute + MINUTE - now).total_seconds(), "minute_used": self.used,
            "per_minute": self.per_minute, "quota_seconds": 1e6, "quota_used": self.quota_used, "quota": self.quota,
        }  # fmt: skip


async def rate_leases(chance: Random) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    link = Link(chance)
    per_minute = chance.choice((1, 5, 20, 60))
    leases = Leases(link, loop, per_minute, quota=chance.choice((per_minute * 2, 10**6)))
    admitted: list[datetime] = []

    async def worker(calls: int) -> None:
        limiter = RateLimiter(leases, monotonic=loop.time)  # type: ignore[arg-type]
        reports = asyncio.create_task(_every(0.3, limiter))

        async def call() -> None:
            await asyncio.sleep(chance.uniform(0, 90))
            try:
                await asyncio.wait_for(limiter.charge(CALLER), chance.choice((None, None, 0.5)))
                admitted.append(loop.wall())
            except (Refused, TimeoutError):
                pass

        await asyncio.gather(*(call() for _ in range(calls)))
        reports.cancel()
        await asyncio.gather(reports, return_exceptions=True)
        if not is_killed:
            await asyncio.gather(limiter.return_leases(), return_exceptions=True)

    link.broken = chance.choice((0.0, 0.0, 0.05, 0.3))
    is_killed = chance.random() < 0.3
    await asyncio.gather(*(worker(chance.randrange(1, 3 * per_minute + 2)) for _ in range(chance.randrange(1, 4))))
    for began in leases.minutes:
        inside = sum(began <= moment < began + MINUTE for moment in admitted)
        assert inside <= per_minute, f"{inside} calls in a minute of {per_minute}"
    if not (link.broken or is_killed):  # calls that could not be reported are not charged to the quota
        assert len(admitted) <= leases.quota, "above the quota"
    await _is_usable(leases, per_minute, loop)


async def _every(seconds: float, limiter: RateLimiter) -> None:
    while True:
        await asyncio.sleep(seconds)
        await asyncio.gather(limiter._report(), return_exceptions=True)


async def _is_usable(leases: Leases, per_minute: int, loop: SimulatedLoop) -> None:
    """A minute after everything works again a fresh worker can use the whole cap."""
    leases.link.broken, leases.quota = 0.0, 10**6
    await asyncio.sleep(2 * MINUTE_SECONDS + 6)
    limiter, passed = RateLimiter(leases, monotonic=loop.time), 0  # type: ignore[arg-type]
    for _ in range(per_minute + 1):
        try:
            await limiter.charge(CALLER)
            passed += 1
        except Refused:
            break
    assert passed == per_minute, f"{passed} of {per_minute}"
