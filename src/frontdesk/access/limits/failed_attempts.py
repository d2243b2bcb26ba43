"""Limits failed token requests and failed console sign-ins per client id and per address, across all nodes.

Only hashes of client ids and addresses are stored, for a minute. A limited caller does not learn whether a guess was
right.
"""

import hashlib
import math
import time
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address
from typing import TypeVar

from frontdesk.background import Step
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

PER_CLIENT = 20
PER_ADDRESS = 100
_CACHED = 10_000
_PRUNE_SECONDS = 60.0
_DETAIL = "Too many token calls have failed for this client or from this address."

T = TypeVar("T")


class FailedAttempts:
    def __init__(self, database: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._refused: BoundedCache[bytes, float] = BoundedCache(_CACHED)  # end of the block, by subject
        self.step = Step("failed token pruning", self.prune, every=_PRUNE_SECONDS)

    async def guard(self, client_id: str, address: str | None, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of the attempt. Only `unauthorized` is a failure: other errors mean that the secret was right."""
        client, source = _hash("client", client_id), _hash("address", _network(address))
        await self._check(client, source)
        try:
            return await attempt()
        except Problem as problem:
            # Counted before it is answered, so that concurrent guesses cannot exceed the limit.
            if problem.code == "unauthorized" and not await self._count(client, source):
                await self._check(client, source)
            raise

    async def prune(self) -> None:
        """Removes expired counts, a bounded number at a time."""
        await self._database.write(
            """DELETE FROM token_failure WHERE subject IN (
                   SELECT subject FROM token_failure WHERE started_at < now() - interval '60 seconds'
                   LIMIT 10000 FOR UPDATE SKIP LOCKED)"""
        )

    async def _check(self, client: bytes, source: bytes) -> None:
        now = self._monotonic()
        until = max(self._refused.get(client) or 0.0, self._refused.get(source) or 0.0)
        if until <= now:
            sql = "SELECT * FROM token_calls_refused($1, $2, $3, $4)"
            try:
                rows = await self._database.fetch(sql, client, PER_CLIENT, source, PER_ADDRESS)
            except DatabaseUnavailable as error:
                raise _unavailable() from error
            for row in rows:
                self._refused.put(row["subject"], now + row["seconds"])
                until = max(until, now + row["seconds"])
        if until > now:
            raise Problem("rate_limited", _DETAIL, retry_after=max(1, math.ceil(until - now)))

    async def _count(self, client: bytes, source: bytes) -> bool:
        sql = "SELECT count_failed_token_call($1, $2, $3, $4) AS counted"
        try:
            row = await self._database.write(sql, client, PER_CLIENT, source, PER_ADDRESS)
        except (DatabaseUnavailable, OutcomeUnknown) as error:
            raise _unavailable() from error
        return row is not None and bool(row["counted"])


def _hash(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\n{text}".encode(errors="surrogatepass")).digest()


def _network(address: str | None) -> str:
    """The address; for IPv6 its /64, because one host can use all of it."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return ""
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or int(found) >> 64)
    return str(found)


def _unavailable() -> Problem:
    return Problem("upstream_unavailable", "Credentials cannot be checked at the moment.", retry_after=2)
