"""Limits failed token requests, sign-ins and guesses of secret addresses per name and per network, across all nodes.

The credentials are checked first: right ones are refused only where the same address has failed too often with the same
name. Only hashes of names and addresses are stored, for a minute.
"""

import asyncio
import contextlib
import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from asyncpg import Record

from frontdesk.access.limits.addresses import network_of
from frontdesk.access.outages import CREDENTIALS, outage_as_problem
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database

PER_CLIENT = 20
PER_ADDRESS = 100
MIN_TOKENS = 20  # a minute, for clients with a lower limit of calls
REGISTRATIONS_PER_ADDRESS = 10  # a minute; hosted assistants register from few addresses
REGISTRATIONS = 100
REVOCATIONS_PER_ADDRESS = 100  # a minute
MAILS_PER_RECIPIENT = 3  # a minute
MAILS_PER_ADDRESS = 20
_CACHED = 10_000
_MINUTE = timedelta(minutes=1)
_CONCURRENT_CHECKS = 4
_FAILED = "Too many attempts have failed with these credentials or from this address."
_ISSUED = "This client has requested too many tokens in this minute. A token can be used until it expires."
_MAILED = "Too many sign-in links have been requested in this minute."
_REVOKED = "Too many tokens have been revoked from this address in this minute."
_REGISTERED = "Too many applications have been registered in this minute."
_PRUNE = """
DELETE FROM token_failure WHERE subject IN (
    SELECT subject FROM token_failure WHERE started_at < $1 ORDER BY started_at LIMIT $2 FOR UPDATE SKIP LOCKED)
RETURNING true
"""

Door = str  # such as "token" and "sign-in"; each has counters of its own
T = TypeVar("T")


class FailedAttempts:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._refused: BoundedCache[bytes, float] = BoundedCache(_CACHED)  # end of the block, by subject
        # Of each door: one asks an identity provider, which may take seconds.
        self._checking: defaultdict[Door, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(_CONCURRENT_CHECKS)
        )

    async def guard(
        self,
        door: Door,
        name: str,
        address: str | None,
        attempt: Callable[[], Awaitable[T]],
        *,
        secret: str | None = None,
    ) -> T:
        """The result of the attempt. Only `unauthorized` is a failure: other errors mean that the secret was right.

        `secret` is what the attempt presents, where many share name and address, as those who connect a hosted
        assistant do: a right one is then refused only for failures with itself.
        """
        network = network_of(address)
        client, source = _hash(door, "client", name), _hash(door, "address", network)
        both = _hash(door, "client at address", f"{name if secret is None else secret}\n{network}")
        if self._blocked_until(both) or await self._is_capped(both):
            raise self._limited(_FAILED, both)
        capped = bool(self._blocked_until(client, source))
        try:
            # A flood of guesses gets few connections to the database.
            async with self._checking[door] if capped else contextlib.nullcontext():
                return await attempt()
        except Problem as problem:
            if problem.code != "unauthorized":
                raise
            # Counted before it is answered, so that concurrent guesses cannot exceed the limit.
            subjects, caps = [client, source, both], [PER_CLIENT, PER_ADDRESS, PER_CLIENT]
            if self._blocked_until(client, source) or not await self._count(subjects, caps):
                raise self._limited(_FAILED, *subjects) from None
            raise

    async def count_token(self, client_id: str, per_minute: int) -> None:
        """Count a token that is to be issued: a client gets as many in a minute as it may make calls."""
        issued = _hash("token", "issued", client_id)
        await self._count_or_refuse(_ISSUED, {issued: max(per_minute, MIN_TOKENS)})

    async def count_registration(self, address: str | None) -> None:
        """Count an application that registers itself."""
        source = _hash("token", "registrations from", network_of(address))
        everybody = _hash("token", "registrations", "")
        await self._count_or_refuse(_REGISTERED, {source: REGISTRATIONS_PER_ADDRESS, everybody: REGISTRATIONS})

    async def count_revocation(self, address: str | None) -> None:
        """Count a request to revoke a token, whether or not there is such a token."""
        source = _hash("token", "revocations from", network_of(address))
        await self._count_or_refuse(_REVOKED, {source: REVOCATIONS_PER_ADDRESS})

    async def count_mail(self, email: str, address: str | None) -> None:
        """Count a request for a sign-in link by mail, whether or not the e-mail address belongs to staff."""
        recipient = _hash("sign-in", "mails to", email.strip().lower())
        source = _hash("sign-in", "mails from", network_of(address))
        await self._count_or_refuse(_MAILED, {recipient: MAILS_PER_RECIPIENT, source: MAILS_PER_ADDRESS})

    async def count_use(self, door: Door, name: str, per_minute: int, detail: str) -> None:
        """Count a use of what has a secret address, and refuse one too many with the sentence `detail`."""
        await self._count_or_refuse(detail, {_hash(door, "uses", name): per_minute})

    async def _count_or_refuse(self, detail: str, caps: Mapping[bytes, int]) -> None:
        """Counts for each subject, or raises `rate_limited` if one of them is at its cap."""
        if self._blocked_until(*caps) or not await self._count(list(caps), list(caps.values())):
            raise self._limited(detail, *caps)

    async def _is_capped(self, subject: bytes) -> bool:
        sql = "SELECT * FROM attempts_at_cap($1, $2)"
        return await self._remember(self._database.fetchrow(sql, [subject], [PER_CLIENT]))

    async def _count(self, subjects: Sequence[bytes], caps: Sequence[int]) -> bool:
        """False, and nothing counted, if a subject is at its cap."""
        return not await self._remember(self._database.write("SELECT * FROM count_attempt($1, $2)", subjects, caps))

    async def _remember(self, query: Awaitable[Record | None]) -> bool:
        """Whether the query found a subject at its cap, which is remembered."""
        now = time.monotonic()
        with outage_as_problem(CREDENTIALS):
            row = await query
        if row is not None:
            self._refused.put(row["capped"], now + row["seconds"])
        return row is not None

    def _blocked_until(self, *subjects: bytes) -> float:
        """0 if none of them is blocked."""
        until = max(self._refused.get(subject) or 0.0 for subject in subjects)
        return until if until > time.monotonic() else 0.0

    def _limited(self, detail: str, *subjects: bytes) -> Problem:
        seconds = math.ceil(self._blocked_until(*subjects) - time.monotonic())
        return Problem("rate_limited", detail, retry_after=max(1, seconds))


async def prune_attempts(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` counts of minutes that are over; returns how many."""
    return len(await database.fetch(_PRUNE, now - _MINUTE, limit))


def _hash(door: Door, kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{door}\n{kind}\n{text}".encode(errors="surrogatepass")).digest()
