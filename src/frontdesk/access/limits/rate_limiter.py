"""The rate limiter: calls per minute and per 30 days for each client, exact across workers and nodes.

PostgreSQL leases calls to workers in batches (decision 5). Without the database no call is let through.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from asyncpg import Record

from frontdesk.access.clients.caller import Caller
from frontdesk.background import Step
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

MINUTE_SECONDS = 60
QUOTA_SECONDS = 30 * 24 * 3600
LEASE_SECONDS = 4.0  # how long an outdated limit may apply if a notification was lost
REPORT_SECONDS = 0.3
FIRST_LEASE = 20

_LEASE_AHEAD_SECONDS = 2.0
_REFUSED_SECONDS = 0.5  # a refused client does not query the database with every call
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_MEASURED_SECONDS = 0.05
_CONCURRENT_REPORTS = 4
_ATTEMPTS = 3
_OUTAGE_SECONDS = 10.0  # failures closer together than this belong to one outage, whatever succeeds between them
_UNCOUNTED = "Calls cannot be counted at the moment; this one was not executed."
_log = logging.getLogger(__name__)

Headers = tuple[tuple[bytes, bytes], tuple[bytes, bytes]]


@dataclass(slots=True)
class _Lease:
    """Leased calls of one minute. `used` and `unused` are not yet reported to the database."""

    minute: datetime
    ends: float = 0.0
    deadline: float = 0.0
    renew: float = 0.0
    low: int = -1  # fetch the next lease when this many calls are left
    left: int = 0
    used: int = 0
    unused: int = 0

    def return_calls(self) -> None:
        self.unused += self.left
        self.left = 0


@dataclass(slots=True)
class _Account:
    """The state of one client in this process."""

    practice_id: int
    client_id: str
    lease: _Lease
    asked_at: float
    per_minute: int = 0
    quota: int = 0
    minute_used: int = 0
    quota_used: int = 0
    quota_ends: float = 0.0
    policy: bytes = b""
    waiting: int = 0
    asking: "asyncio.Task[object] | None" = None
    refused_until: float = 0.0
    times: tuple[str, str] = ("", "")  # seconds left of the minute and the quota, for the headers
    times_until: float = 0.0  # when to update them

    def headers(self, now: float, *, refused: bool = False) -> Headers:
        """The RateLimit and RateLimit-Policy headers (draft-ietf-httpapi-ratelimit-headers)."""
        used = self.lease.used
        # A refused client has 0 left, even if other workers still hold unused calls.
        minute = 0 if refused else self.per_minute - self.minute_used - used
        quota = self.quota - self.quota_used - used
        if minute < 0 or quota < 0:
            minute, quota = max(0, minute), max(0, quota)
        if now >= self.times_until:
            self._format_times(now)
        minute_ends, quota_ends = self.times
        state = f'"minute";r={minute}{minute_ends}, "quota";r={quota}{quota_ends}'
        return (b"ratelimit", state.encode()), (b"ratelimit-policy", self.policy)

    def _format_times(self, now: float) -> None:
        """Update the remaining times, at most once a second."""
        minute, quota = max(0.0, self.lease.ends - now), max(0.0, self.quota_ends - now)
        self.times = (f";t={ceil(minute)}", f";t={ceil(quota)}")
        self.times_until = now + min(minute % 1 or 1, quota % 1 or 1)

    def refusal(self, now: float) -> "Refused":
        if self.quota_used + self.lease.used >= self.quota:
            return Refused(Problem("quota_exceeded"), self.headers(now))
        retry_after = max(1, ceil(self.lease.ends - now))
        return Refused(Problem("rate_limited", retry_after=retry_after), self.headers(now, refused=True))


class Refused(Exception):
    """The call is refused; carries the rate limit headers if they are known."""

    def __init__(self, problem: Problem, headers: Headers | tuple[()] = ()) -> None:
        super().__init__(problem.code)
        self.problem = problem
        self.headers = headers


class RateLimiter:
    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._accounts: dict[str, _Account] = {}
        self._failed_at = float("-inf")
        self.renewals = self.failures = 0  # of leases
        self._tasks: set[asyncio.Task[object]] = set()  # the event loop keeps only weak references to tasks
        self.step = Step("rate limiter reports", self._report, every=REPORT_SECONDS, close=self.return_leases)

    async def charge(self, caller: Caller) -> Headers:
        """Count one call and return the rate limit headers; raises `Refused` if none is left."""
        now = self._monotonic()
        account = self._accounts.get(caller.client_id)
        if account is None:
            account = _Account(caller.practice_id, caller.client_id, _Lease(_NEVER), now)
            self._accounts[caller.client_id] = account
        return self._take(account, await self._wait(account, now))

    def try_charge(self, caller: Caller) -> Headers | None:
        """The same without waiting: None, and nothing counted, if the lease has to be renewed first."""
        account, now = self._accounts.get(caller.client_id), self._monotonic()
        if account is None or account.lease.left <= 0 or now >= account.lease.deadline:
            return None
        return self._take(account, now)

    def _take(self, account: _Account, now: float) -> Headers:
        lease = account.lease
        lease.left -= 1
        lease.used += 1
        if (lease.left <= lease.low or now >= lease.renew) and account.asking is None:
            self._renew_lease(account)
        return account.headers(now)

    @property
    def leased(self) -> int:
        """The calls that clients may make before their leases are renewed."""
        return sum(account.lease.left for account in self._accounts.values())

    def on_change(self, kind: str, id: str) -> None:
        """A client changed: read its limits again before its next call."""
        account = self._accounts.get(id) if kind == "client" else None
        if account is not None:
            account.lease.deadline = account.refused_until = 0.0

    async def return_leases(self) -> None:
        """Report all calls and return all leases."""
        for account in self._accounts.values():
            account.lease.deadline = 0.0
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._report()

    async def _report(self) -> None:
        now = self._monotonic()
        due = []
        for account in list(self._accounts.values()):
            lease = account.lease
            over = now >= lease.deadline
            if lease.used or lease.unused or (over and lease.left):
                due.append(account)
            elif over and account.asking is None and now - account.asked_at > MINUTE_SECONDS:
                del self._accounts[account.client_id]
        tasks: list[asyncio.Task[object]] = []
        for at in range(0, len(due), _CONCURRENT_REPORTS):
            batch = [
                self._renew_lease(one, more=False) for one in due[at : at + _CONCURRENT_REPORTS] if one.asking is None
            ]
            if batch:
                await asyncio.wait(batch)
                tasks += batch
        errors = [error for task in tasks if (error := task.exception()) is not None]
        if errors and len(errors) == len(tasks) and isinstance(errors[-1], DatabaseUnavailable | OutcomeUnknown):
            raise errors[-1]

    async def _wait(self, account: _Account, now: float) -> float:
        """Wait until the account's lease has a call for this caller."""
        while account.lease.left <= 0 or now >= account.lease.deadline:
            if now < account.refused_until:
                raise account.refusal(now)
            account.waiting += 1
            try:
                # A cancelled waiter must not cancel the request that others wait for.
                await asyncio.shield(account.asking or self._renew_lease(account))
            except (DatabaseUnavailable, OutcomeUnknown) as error:
                problem = Problem("upstream_unavailable", _UNCOUNTED, retry_after=2)
                raise Refused(problem, account.headers(now) if account.policy else ()) from error
            finally:
                account.waiting -= 1
            now = self._monotonic()
        return now

    def _renew_lease(self, account: _Account, *, more: bool = True) -> "asyncio.Task[object]":
        account.asking = self._start(self._exchange(account, more=more))
        return account.asking

    def _start(self, work: Coroutine[object, object, object]) -> "asyncio.Task[object]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Waiters get the error; after a background fetch the next call tries again.
            self.failures += 1
            now = self._monotonic()
            if now - self._failed_at > _OUTAGE_SECONDS:
                _log.warning("calls could not be counted: %s", type(error).__name__)
            self._failed_at = now

    async def _exchange(self, account: _Account, *, more: bool) -> None:
        """Report used calls and take a new lease, in one round trip."""
        try:
            await asyncio.sleep(0)  # one request for calls that arrive together
            sent_at = self._monotonic()
            lease = account.lease
            if sent_at >= lease.deadline:
                lease.return_calls()
            waiting, asked = 0, 0
            if more:
                rate = lease.used / max(sent_at - account.asked_at, _MIN_MEASURED_SECONDS)
                waiting = account.waiting
                asked = max(0, max(FIRST_LEASE, int(rate * _LEASE_AHEAD_SECONDS)) - lease.left)
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    row = await self._send_report(account, lease, waiting, asked)
                    break
                except OutcomeUnknown:  # a lost lease returns with the next minute
                    if attempt == _ATTEMPTS:
                        raise
            self.renewals += 1
            account.asked_at = sent_at
            self._apply(account, row, sent_at)
            if more:
                _extend(account, row["granted"], sent_at, waiting=waiting, asked=asked)
        finally:
            account.asking = None

    async def _send_report(self, account: _Account, lease: _Lease, waiting: int = 0, asked: int = 0) -> Record:
        used, unused, counted = lease.used, lease.unused, True
        arguments = (account.practice_id, account.client_id, lease.minute, used, unused, waiting, asked)
        try:
            row = await self._database.write("SELECT * FROM lease_calls($1, $2, $3, $4, $5, $6, $7)", *arguments)
            assert row is not None
            return row
        except DatabaseUnavailable:
            counted = False  # report it again; after any other error it may have been counted: never count twice
            raise
        finally:
            if counted:
                lease.used -= used
                lease.unused -= unused

    def _apply(self, account: _Account, row: Record, sent_at: float) -> None:
        per_minute, quota, lease = row["per_minute"], row["quota"], account.lease
        if row["minute_started_at"] != lease.minute:
            lease.return_calls()
            if lease.used:  # the last calls of the previous minute
                self._start(self._send_report(account, lease))
            lease = account.lease = _Lease(row["minute_started_at"])
        elif (per_minute, quota) != (account.per_minute, account.quota):
            lease.return_calls()
        # Our minute must never end later than the database's.
        lease.ends = sent_at + row["minute_seconds"]
        account.times_until = 0.0
        account.per_minute, account.minute_used = per_minute, row["minute_used"]
        account.quota, account.quota_used = quota, row["quota_used"]
        account.quota_ends = sent_at + row["quota_seconds"]
        account.policy = f'"minute";q={per_minute};w={MINUTE_SECONDS}, "quota";q={quota};w={QUOTA_SECONDS}'.encode()


def _extend(account: _Account, granted: int, sent_at: float, *, waiting: int, asked: int) -> None:
    lease = account.lease
    lease.left += granted
    lease.low = lease.left // 4 if granted or not asked else -1  # no fetching ahead near the limit
    lease.deadline = min(lease.ends, sent_at + LEASE_SECONDS)
    lease.renew = sent_at + LEASE_SECONDS / 2
    if granted < waiting:
        account.refused_until = sent_at + _REFUSED_SECONDS
