"""Connections: the clients through which applications act for staff, from consent to disconnecting."""

import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from asyncpg import Record

from frontdesk.access.assistants.applications import Application
from frontdesk.access.assistants.redirects import host_of
from frontdesk.access.clients.records import DEFAULT_PER_MINUTE, DEFAULT_QUOTA, end_tokens
from frontdesk.access.clients.scopes import ROLE_SCOPES
from frontdesk.access.clients.validation import ordered
from frontdesk.access.opaque_tokens import digest_of, new_token
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import random_base62
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.notifications import notify
from frontdesk.texts import N_

NOT_ALLOWED = N_("This practice does not connect assistants.")
CODE_LIFETIME = timedelta(seconds=60)
_STAFF = """
SELECT s.role, s.disabled, p.assistants FROM staff s JOIN practice p USING (practice_id)
WHERE s.staff_id = $1 AND s.practice_id = $2 FOR UPDATE OF s
"""
_CLIENT = """
SELECT client_id, scopes, tokens_not_before, disabled, revoked_at, callback_host FROM client
WHERE staff_id = $1 AND application_id = $2 FOR UPDATE
"""
_ADD = """
INSERT INTO client (client_id, practice_id, name, grant_kind, scopes, per_minute, quota, created_at,
    known_patients_only, staff_id, application_id, callback_host, connected_at)
VALUES ($1, $2, $3, 'agent', $4, $5, $6, $7, true, $8, $9, $10, $7)
"""
_RECONNECT = """
UPDATE client SET name = $2, scopes = $3, trusted_to_ask = trusted_to_ask AND callback_host = $4, callback_host = $4,
    connected_at = $5, disabled = false, revoked_at = NULL
WHERE client_id = $1
"""
_ADD_CODE = """
INSERT INTO authorization_code (digest, client_id, family, redirect_uri, challenge, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
"""
_LIST = """
SELECT c.client_id, c.name, coalesce(s.name, 'a removed staff member') AS staff_name, c.callback_host, c.scopes, s.role,
       c.disabled, c.connected_at, c.revoked_at,
       c.trusted_to_ask OR c.callback_host = ANY (p.trusted_hosts) AS trusted_to_ask,
       EXISTS (SELECT FROM refresh_token r
               WHERE r.client_id = c.client_id AND r.rotated_at IS NULL AND r.expires_at > $2)
           OR EXISTS (SELECT FROM authorization_code a
                      WHERE a.client_id = c.client_id AND a.used_at IS NULL AND a.expires_at > $2) AS can_continue,
       (SELECT max(r.began_at) FROM request_count r
        WHERE r.practice_id = c.practice_id AND r.minutes = 60 AND r.client_id = c.client_id) AS used_at
FROM client c JOIN practice p USING (practice_id) LEFT JOIN staff s ON s.staff_id = c.staff_id
WHERE c.practice_id = $1 AND c.staff_id IS NOT NULL
  AND ($3::text IS NULL OR c.staff_id = $3) AND ($4::text IS NULL OR c.client_id = $4)
ORDER BY c.revoked_at NULLS FIRST, c.connected_at DESC, c.client_id
"""
_END = """
UPDATE client SET disabled = true, revoked_at = CASE WHEN disabled AND $3 THEN NULL ELSE $2::timestamptz END
WHERE client_id = $1
"""
_HOLD = """
SELECT client_id, practice_id, staff_id, tokens_not_before FROM client
WHERE client_id = $1 AND practice_id = $2 AND revoked_at IS NULL AND ($3::text IS NULL OR staff_id = $3)
  AND staff_id IS NOT NULL FOR UPDATE
"""


@dataclass(frozen=True, slots=True)
class Consent:
    """What a staff member agrees to."""

    staff_id: str
    practice_id: int
    application: Application
    redirect_uri: str
    challenge: str
    scopes: Collection[str]


@dataclass(frozen=True, slots=True)
class AssistantConnection:
    client_id: str
    name: str
    staff_name: str
    callback_host: str
    scopes: tuple[str, ...]  # within the present role of the staff member
    disabled: bool
    connected_at: datetime
    revoked_at: datetime | None
    can_continue: bool  # else it must be connected again: no code or refresh token is left
    used_at: datetime | None  # the hour of the last call
    trusted_to_ask: bool  # itself, or its host


async def are_allowed(database: Database, practice_id: int) -> bool:
    """Whether the practice lets its staff connect assistants."""
    return bool(await database.fetchval("SELECT assistants FROM practice WHERE practice_id = $1", practice_id))


async def connect(
    database: Database, consent: Consent, audit: AuditContext, check: Callable[[Connection], Awaitable[None]]
) -> str:
    """Stores the consent in place of an earlier one, and returns an authorization code. `check` may refuse, given the
    connection of the transaction."""
    application, now = consent.application, audit.now
    async with database.transaction() as connection:
        await check(connection)
        member = await connection.fetchrow(_STAFF, consent.staff_id, consent.practice_id)
        if member is None or member["disabled"]:
            raise Problem("unauthorized", "You may no longer sign in here.")
        if not member["assistants"]:
            raise Problem("forbidden_scope", NOT_ALLOWED)
        scopes = ordered(ROLE_SCOPES[member["role"]] & set(consent.scopes))
        if not scopes:
            raise Problem("forbidden_scope", "Your role does not include anything that was asked for.")
        held = await connection.fetchrow(_CLIENT, consent.staff_id, application.application_id)
        host = host_of(consent.redirect_uri)
        if held is None:
            client_id = "fd_as_" + random_base62(20)
            await connection.execute(
                _ADD, client_id, consent.practice_id, application.name, list(scopes), DEFAULT_PER_MINUTE,
                DEFAULT_QUOTA, now, consent.staff_id, application.application_id, host,
            )  # fmt: skip
        else:
            client_id = held["client_id"]
            if held["disabled"] and held["revoked_at"] is None:
                raise Problem("forbidden_scope", "An admin of your practice has disabled this assistant.")
            await connection.execute(_RECONNECT, client_id, application.name, list(scopes), host, now)
            # Else tokens of the earlier consent would get the new scopes, or the trust in the new host.
            if set(held["scopes"]) != set(scopes) or held["callback_host"] != host:
                await end_tokens(connection, client_id, held, now)
        code = new_token()
        await connection.execute(
            _ADD_CODE, digest_of(code), client_id, secrets.token_bytes(16), consent.redirect_uri, consent.challenge,
            now + CODE_LIFETIME,
        )  # fmt: skip
        await append_audit(connection, audit.entry(consent.practice_id, "console.connect_assistant", [client_id]))
        await notify(connection, "client", client_id)
    return code


async def list_connections(
    database: Database, practice_id: int, now: datetime, *, staff_id: str | None = None, client_id: str | None = None
) -> list[AssistantConnection]:
    """Lists the connections of the practice, of one staff member, or of one client; disconnected ones last."""
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_LIST, practice_id, now, staff_id, client_id)
    return [_record(row) for row in rows]


async def disconnect(
    database: Database, practice_id: int, client_id: str, audit: AuditContext, staff_id: str | None = None
) -> bool:
    """Ends every token of a connection. False if there is none, or `staff_id` is given and has not connected it.

    Of a staff member, one that an admin has disabled stays disabled: else it could be connected again.
    """
    async with database.transaction() as connection:
        held = await connection.fetchrow(_HOLD, client_id, practice_id, staff_id)
        if held is None:
            return False
        await _end(connection, held, audit.now, stays_disabled=staff_id is not None)
        await append_audit(connection, audit.entry(practice_id, "console.disconnect_assistant", [client_id]))
    return True


async def disconnect_all(connection: Connection, staff_id: str, now: datetime) -> None:
    """Disconnects every assistant of a staff member, within the transaction that ends their access."""
    select = "SELECT client_id, tokens_not_before FROM client WHERE staff_id = $1 AND revoked_at IS NULL FOR UPDATE"
    for held in await connection.fetch(select, staff_id):
        await _end(connection, held, now, stays_disabled=True)


async def notify_connections(connection: Connection, staff_id: str) -> None:
    """Lets every node read the role of a staff member again."""
    rows = await connection.fetch("SELECT client_id FROM client WHERE staff_id = $1", staff_id)
    await notify(connection, "client", *(row["client_id"] for row in rows))


async def _end(connection: Connection, held: Record, now: datetime, *, stays_disabled: bool) -> None:
    client_id = held["client_id"]
    await connection.execute(_END, client_id, now, stays_disabled)
    await end_tokens(connection, client_id, held, now)
    await notify(connection, "client", client_id)


def _record(row: Record) -> AssistantConnection:
    fields = dict(row)
    fields["scopes"] = ordered(ROLE_SCOPES.get(fields.pop("role") or "", frozenset()) & set(fields["scopes"]))
    return AssistantConnection(**fields)
