"""Identifies the caller from an access token and the current status of its client and practice.

The status is cached for a few seconds, so disabling, suspending and ending tokens take effect within
`STATUS_TTL_SECONDS`, or immediately when the notification arrives.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from frontdesk.access.clients.caller import Caller, CallerLimits, Grant
from frontdesk.access.clients.scopes import ROLE_SCOPES, usable_scopes
from frontdesk.access.clients.tokens import Claims, Tokens, microseconds
from frontdesk.access.outages import outage_as_problem
from frontdesk.cache import BoundedCache
from frontdesk.domain.consent import Consent, Demands
from frontdesk.domain.errors import Problem
from frontdesk.feature import features_of
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

FRESH_SECONDS = 2.0
STATUS_TTL_SECONDS = 5.0
_CACHED = 10_000

# The practice's limits on reading patients and on writing apply to agents: an integration has those that it was given.
EFFECTIVE_LIMITS = f"""
       coalesce(c.match_misses, p.match_misses) AS match_misses,
       coalesce(c.known_patients_only, p.known_patients_only) AS known_patients_only,
       CASE WHEN c.staff_id IS NULL THEN p.phone_match ELSE 'ending' END AS phone_match,
       {
    ", ".join(
        f"coalesce(c.{name}, CASE WHEN c.grant_kind = 'agent' THEN p.{name} ELSE 0 END) AS {name}"
        for name in ("patients_per_hour", "patients_per_day", "writes_per_hour", "upcoming_per_patient")
    )
}
"""
_STATUS = f"""
SELECT p.practice_id, p.slug AS practice_slug, p.version AS directory_version, c.disabled, p.suspended,
       c.grant_kind, c.scopes, c.tokens_not_before, p.consent AS demands, p.features, p.assistants,
       c.staff_id, s.role, s.disabled AS staff_disabled,
       c.trusted_to_ask OR coalesce(c.callback_host = ANY (p.trusted_hosts), false) AS trusted_to_ask,{EFFECTIVE_LIMITS}
FROM client c JOIN practice p USING (practice_id) LEFT JOIN staff s ON s.staff_id = c.staff_id
WHERE c.client_id = $1
"""  # noqa: S608 - columns of ours


class _ForbiddenTenant(Problem):
    """The token is valid, so the call counts like others."""

    def __init__(self, caller: Caller) -> None:
        super().__init__("forbidden_tenant")
        self.caller = caller


class _Checked(NamedTuple):
    caller: Caller
    status: "_Status"
    expires_at: float
    resources: frozenset[str]  # of the token


@dataclass(frozen=True, slots=True)
class _Status:
    read_at: float  # taken before the query was sent: later changes are not included
    practice_id: int
    practice_slug: str
    directory_version: int
    disabled: bool
    suspended: bool
    grant: Grant
    scopes: frozenset[str]
    tokens_not_before: int
    limits: CallerLimits
    staff_id: str | None  # who connected it, if it is an assistant
    reachable: frozenset[str]
    demands: Demands
    approvals: frozenset[Consent]
    trusted_to_ask: bool


class Authenticator:
    def __init__(
        self,
        database: Database,
        tokens: Tokens,
        *,
        seconds: Callable[[], float] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is the tokens' clock, where there is a faster way to read it."""
        self._database = database
        self._tokens = tokens
        self._seconds = seconds or (lambda: tokens.clock().timestamp())
        self._monotonic = monotonic
        self._statuses: BoundedCache[str, _Status] = BoundedCache(_CACHED)  # by client id
        self._checked: BoundedCache[str, _Checked] = BoundedCache(_CACHED)  # by token
        self._reading: dict[str, asyncio.Task[_Status]] = {}
        self._tasks: set[asyncio.Task[_Status]] = set()  # the event loop keeps only weak references to tasks

    def lookup(self, token: str, resource: str = "") -> Caller | None:
        """The caller of a token that was checked before, while the status it was checked against may be used."""
        known = self._checked.get(token)
        if known is None:
            return None
        caller, status, expires_at, resources = known
        age = self._monotonic() - status.read_at
        if (
            (resources and resource not in resources)
            or self._statuses.get(caller.client_id) is not status
            or age >= STATUS_TTL_SECONDS
            or expires_at <= self._seconds()
        ):
            return None
        if age >= FRESH_SECONDS:
            self._start_reading(caller.client_id)
        return caller

    async def identify(self, token: str | None, resource: str = "") -> Caller:
        """The caller; Problem `unauthorized` or `forbidden_tenant` if the call is not allowed.

        `resource` is the path of the door, which takes tokens that are for it or for every door.
        """
        if not token:
            raise Problem("unauthorized", "The request has no access token.")
        claims = await self._tokens.verify(token)
        if claims.resources and resource not in claims.resources:
            raise Problem("unauthorized", "The access token is for another resource.")
        status = await self._status_for(claims)
        if status.disabled:
            raise Problem("unauthorized", "The client of this access token has been disabled.")
        if claims.tokens_not_before < status.tokens_not_before or claims.grant != status.grant:
            raise Problem("unauthorized", "The access token has been revoked.")
        caller = Caller(
            claims.client_id,
            status.practice_id,
            status.practice_slug,
            claims.scopes & status.scopes,
            claims.grant,
            status.directory_version,
            status.limits,
            status.staff_id,
            status.reachable,
            demands=status.demands,
            approvals=status.approvals,
            trusted_to_ask=status.trusted_to_ask,
        )
        if status.suspended or status.practice_slug != claims.practice_slug:
            raise _ForbiddenTenant(caller)
        self._checked.put(token, _Checked(caller, status, claims.expires_at.timestamp(), claims.resources))
        return caller

    async def identify_or_none(
        self,
        token: str,
        resource: str = "",
        on_invalid: Callable[[], None] = lambda: None,
        *,
        even_forbidden: bool = False,
    ) -> Caller | None:
        """The caller, or None if the call is not allowed; Problem `upstream_unavailable` without the database.

        `on_invalid` is called if the token is not valid, and may raise. `even_forbidden`: also the caller of a valid
        token whose practice is suspended, or has another slug now.
        """
        with outage_as_problem("The access token cannot be checked at the moment; the call was not executed."):
            try:
                return await self.identify(token, resource)
            except Problem as problem:
                if even_forbidden and isinstance(problem, _ForbiddenTenant):
                    return problem.caller
                if problem.code == "unauthorized":
                    on_invalid()
                return None

    def on_change(self, kind: str, id: str) -> None:
        """A notification: the cached status is out of date, also one that is being read."""
        if kind == "client":
            self._statuses.discard(id)
            self._reading.pop(id, None)
        elif kind == "practice":
            for client_id in [client for client, status in self._statuses.items() if status.practice_slug == id]:
                self._statuses.discard(client_id)
            self._reading.clear()

    async def _status_for(self, claims: Claims) -> _Status:
        """The cached status while it may be used. It is read again before it must be."""
        status, now = self._statuses.get(claims.client_id), self._monotonic()
        if status is not None and claims.tokens_not_before > status.tokens_not_before:
            status = None  # the token was issued after a change that is not known here yet
        if status is not None and now - status.read_at < FRESH_SECONDS:
            return status
        reading = self._start_reading(claims.client_id)
        if status is not None and now - status.read_at < STATUS_TTL_SECONDS:
            return status
        return await asyncio.shield(reading)  # a cancelled waiter must not cancel the query that others wait for

    def _start_reading(self, client_id: str) -> asyncio.Task[_Status]:
        """Start a query; concurrent callers of a client share it."""
        task = self._reading.get(client_id)
        if task is None:
            task = self._reading[client_id] = asyncio.create_task(self._query(client_id))
            self._tasks.add(task)
            task.add_done_callback(self._finished)
        return task

    async def _query(self, client_id: str) -> _Status:
        read_at = self._monotonic()
        try:
            row = await self._database.fetchrow(_STATUS, client_id)
        finally:
            current = self._reading.get(client_id) is asyncio.current_task()  # no notification arrived in the meantime
            if current:
                del self._reading[client_id]
        if row is None:
            raise Problem("unauthorized", "The client of this access token does not exist.")
        stored_features = orjson.loads(row["features"])
        by_staff, scopes, reachable = row["staff_id"] is not None, row["scopes"], frozenset[str]()
        if by_staff:
            reachable = ROLE_SCOPES.get(row["role"], reachable)
            scopes = reachable.intersection(scopes)
        status = _Status(
            read_at=read_at,
            practice_id=row["practice_id"],
            practice_slug=row["practice_slug"],
            directory_version=row["directory_version"],
            disabled=row["disabled"] or (by_staff and (row["staff_disabled"] is not False or not row["assistants"])),
            suspended=row["suspended"],
            grant=row["grant_kind"],
            scopes=usable_scopes(scopes, stored_features),
            tokens_not_before=microseconds(row["tokens_not_before"]),
            limits=from_row(CallerLimits, row),
            staff_id=row["staff_id"],
            reachable=reachable,
            demands=orjson.loads(row["demands"]),
            approvals=frozenset(each for feature in features_of(stored_features) for each in feature.approvals),
            trusted_to_ask=row["trusted_to_ask"],
        )
        if current:
            self._statuses.put(client_id, status)
        return status

    def _finished(self, task: "asyncio.Task[_Status]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # waiters get the error; after a background read the next call tries again
