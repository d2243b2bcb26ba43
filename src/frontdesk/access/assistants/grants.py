"""Authorization codes and refresh tokens, exchanged for access tokens.

A refresh token is rotated with every use. Its successor is derived from it, so that clients that race for a moment, or
lose an answer, get the same one; used again later, it ends everything that came from the same consent.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from asyncpg import Record

from frontdesk.access.assistants.applications import REGISTERED, is_document
from frontdesk.access.clients.records import end_access_tokens
from frontdesk.access.clients.resources import MCP_RESOURCE
from frontdesk.access.clients.scopes import ROLE_SCOPES
from frontdesk.access.clients.secrets import AuthenticatedClient
from frontdesk.access.clients.tokens import IssuedToken, Tokens, microseconds
from frontdesk.access.clients.validation import ordered
from frontdesk.access.keys.ring import CLIENT_SECRETS, KeyRing
from frontdesk.access.opaque_tokens import digest_of
from frontdesk.access.outages import outage_as_problem, transaction_or_problem
from frontdesk.audit.trail import AuditEntry, append_audit
from frontdesk.domain.errors import Problem
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.notifications import notify

REFRESH_LIFETIME = timedelta(days=30)  # since its last use
GRACE = timedelta(seconds=60)
_OUTAGE = "Tokens cannot be issued at the moment."
_VERIFIER = re.compile(r"[\w.~-]{43,128}\Z", re.ASCII)
_CLIENT = """
SELECT c.client_id, c.practice_id, c.application_id, c.staff_id, c.grant_kind, c.scopes, c.tokens_not_before,
       c.per_minute, p.slug, p.suspended, s.role,
       (c.disabled OR s.disabled OR NOT p.assistants) IS NOT FALSE AS disabled
FROM client c JOIN practice p USING (practice_id) LEFT JOIN staff s ON s.staff_id = c.staff_id
WHERE c.client_id = $1 FOR UPDATE OF c
"""
_CODE = "SELECT * FROM authorization_code WHERE digest = $1"
_REFRESH = "SELECT * FROM refresh_token WHERE digest = $1"
_CLIENT_OF = """
SELECT client_id FROM authorization_code WHERE digest = $1
UNION ALL SELECT client_id FROM refresh_token WHERE digest = $1
"""
_ADD_REFRESH = "INSERT INTO refresh_token (digest, client_id, family, expires_at) VALUES ($1, $2, $3, $4)"
_PRUNE = """
DELETE FROM {table} WHERE digest = ANY (ARRAY(
    SELECT digest FROM {table} WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING true
"""
_KEEP_CODES = timedelta(days=1)  # so that a replay is noticed


class ScopeRefused(Exception):
    """None of the scopes that a refresh asks for was granted."""


class GrantRefused(Exception):
    """The code or refresh token is not valid for this client."""


@dataclass(frozen=True, slots=True)
class Granted:
    client_id: str
    access: IssuedToken
    refresh_token: str


class AssistantGrants:
    """`on_audit` is called with each practice that has a new audit record to seal."""

    def __init__(self, database: Database, ring: KeyRing, tokens: Tokens, on_audit: Callable[[int], None]) -> None:
        self._database = database
        self._ring = ring
        self._tokens = tokens
        self._on_audit = on_audit

    async def redeem(
        self, code: str, *, application_id: str, verifier: str, redirect_uri: str | None, request_id: str
    ) -> Granted:
        """Exchanges a code, which works once. A second use ends what the first one gave."""
        now = self._tokens.clock()
        async with self._held(_CODE, code) as (connection, held):
            found, client = _checked_open(held)
            if found["used_at"] is not None:
                await self._revoke_family(connection, client, found, "oauth.code_reused", request_id, now)
                refused = True
            else:
                # One attempt: a code that leaked cannot be tried with one verifier after another.
                await connection.execute(
                    "UPDATE authorization_code SET used_at = $2 WHERE digest = $1", found["digest"], now
                )
                refused = (
                    found["expires_at"] <= now
                    or client["application_id"] != application_id
                    or redirect_uri not in (None, found["redirect_uri"])
                    or not _proves(verifier, found["challenge"])
                    or client["disabled"]
                )
            if not refused:
                refresh_token = self._derived(self._ring.secrets(CLIENT_SECRETS)[0], code)
                await self._add_refresh(connection, refresh_token, found, now)
        if refused:
            raise GrantRefused
        return self._granted(client, refresh_token, None)

    async def client_of(self, token: str) -> str | None:
        """The client that a code or refresh token was given to."""
        with outage_as_problem(_OUTAGE):
            found: str | None = await self._database.fetchval(_CLIENT_OF, digest_of(token))
        return found

    async def refresh(self, token: str, *, application_id: str, scope: str | None, request_id: str) -> Granted:
        now = self._tokens.clock()
        async with self._held(_REFRESH, token) as (connection, held):
            found, client = _checked_open(held)
            if client["application_id"] != application_id or found["expires_at"] <= now or client["disabled"]:
                raise GrantRefused
            if scope is not None and not _scopes(client, scope):
                raise ScopeRefused
            rotated_at, successor = found["rotated_at"], None
            if rotated_at is None:
                successor = self._derived(self._ring.secrets(CLIENT_SECRETS)[0], token)
                await connection.execute(
                    "UPDATE refresh_token SET rotated_at = $2 WHERE digest = $1", found["digest"], now
                )
                await self._add_refresh(connection, successor, found, now)
            elif now - rotated_at <= GRACE:
                successor = await self._successor(connection, token)
            if successor is None:
                await self._revoke_family(connection, client, found, "oauth.refresh_token_reused", request_id, now)
        if successor is None:
            raise GrantRefused
        return self._granted(client, successor, scope)

    async def revoke(self, token: str, *, application_id: str | None, request_id: str) -> None:
        """Ends what came from the same consent as a refresh token, or every access token of the connection."""
        async with self._held(_REFRESH, token) as (connection, held):
            if held is not None:
                found, client = held
                _check_owner(client, application_id)
                operation = "oauth.revoke_token"
                await self._revoke_family(connection, client, found, operation, request_id, self._tokens.clock())
                return
        try:
            claims = await self._tokens.verify(token)
        except Problem:
            return
        client_id, now = claims.client_id, self._tokens.clock()
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            client = _check_owner(await connection.fetchrow(_CLIENT, client_id), application_id)
            if claims.tokens_not_before < microseconds(client["tokens_not_before"]):  # ended: it ends no others
                return
            await end_access_tokens(connection, client_id, client, now)
            await self._record(connection, client, "oauth.revoke_token", request_id, now)
            await notify(connection, "client", client_id)

    async def exists(self, application_id: str) -> bool:
        """Whether an application is still registered; one with a document needs no registration."""
        if is_document(application_id):
            return True
        if not REGISTERED.match(application_id):
            return False
        select = "SELECT EXISTS (SELECT FROM application WHERE application_id = $1)"
        with outage_as_problem(_OUTAGE):
            return bool(await self._database.fetchval(select, application_id))

    def _granted(self, client: Record, refresh_token: str, scope: str | None) -> Granted:
        scopes = _scopes(client, scope)
        authenticated = AuthenticatedClient(
            client["client_id"], client["slug"], client["grant_kind"], ordered(scopes), client["tokens_not_before"],
            client["per_minute"],
        )  # fmt: skip
        return Granted(
            client["client_id"], self._tokens.issue(authenticated, scopes, resources=(MCP_RESOURCE,)), refresh_token
        )

    @asynccontextmanager
    async def _held(self, select: str, token: str) -> AsyncIterator[tuple[Connection, tuple[Record, Record] | None]]:
        """The row of a code or refresh token and its client, locked; None if there is none.

        The client is locked first, as where a connection ends, so that the two cannot deadlock.
        """
        digest = digest_of(token)
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            found, client = await connection.fetchrow(select, digest), None
            if found is not None:
                client = await connection.fetchrow(_CLIENT, found["client_id"])
                found = await connection.fetchrow(f"{select} FOR UPDATE", digest)
            yield connection, None if found is None or client is None else (found, client)

    async def _add_refresh(self, connection: Connection, token: str, found: Record, now: datetime) -> None:
        await connection.execute(
            _ADD_REFRESH, digest_of(token), found["client_id"], found["family"], now + REFRESH_LIFETIME
        )

    async def _successor(self, connection: Connection, token: str) -> str | None:
        """The successor of a token that was rotated a moment ago; None if that has been used, too."""
        for key in self._ring.secrets(CLIENT_SECRETS):
            successor = self._derived(key, token)
            row = await connection.fetchrow(_REFRESH, digest_of(successor))
            if row is not None and row["rotated_at"] is None:
                return successor
        return None

    def _derived(self, key: bytes, token: str) -> str:
        digest = hmac.digest(key, b"refresh token after\n" + token.encode(errors="surrogatepass"), "sha256")
        return "fdr_" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    async def _revoke_family(
        self, connection: Connection, client: Record, found: Record, operation: str, request_id: str, now: datetime
    ) -> None:
        client_id = client["client_id"]
        await connection.execute(
            "DELETE FROM refresh_token WHERE client_id = $1 AND family = $2", client_id, found["family"]
        )
        await end_access_tokens(connection, client_id, client, now)
        await self._record(connection, client, operation, request_id, now)
        await notify(connection, "client", client_id)

    async def _record(
        self, connection: Connection, client: Record, operation: str, request_id: str, now: datetime
    ) -> None:
        client_id, practice_id = client["client_id"], client["practice_id"]
        entry = AuditEntry(practice_id, now, client_id, operation, "executed", [client_id], request_id)
        await append_audit(connection, entry)
        self._on_audit(practice_id)


async def prune_grants(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` expired codes, and as many expired refresh tokens; returns the larger number."""
    codes = await database.fetch(_PRUNE.format(table="authorization_code"), now - _KEEP_CODES, limit)
    tokens = await database.fetch(_PRUNE.format(table="refresh_token"), now, limit)
    return max(len(codes), len(tokens))


def _scopes(client: Record, requested: str | None) -> frozenset[str]:
    scopes = ROLE_SCOPES[client["role"]] & set(client["scopes"])
    return scopes if requested is None else scopes & set(requested.split())


def _checked_open(held: tuple[Record, Record] | None) -> tuple[Record, Record]:
    if held is None:
        raise GrantRefused
    _, client = held
    if client["suspended"]:
        raise Problem("forbidden_tenant")
    return held


def _check_owner(client: Record | None, application_id: str | None) -> Record:
    if client is None or client["application_id"] is None or application_id not in (None, client["application_id"]):
        raise GrantRefused
    return client


def _proves(verifier: str, challenge: str) -> bool:
    if not _VERIFIER.match(verifier):
        return False
    digest = hashlib.sha256(verifier.encode()).digest()
    made = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return hmac.compare_digest(made, challenge)
