"""API clients and their secrets.

A secret has 256 random bits, is shown once, and is stored as a keyed hash. A client has at most two valid secrets, for
rotation.
"""

import hmac
import re
import secrets
import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from frontdesk.access.clients.caller import Grant
from frontdesk.access.clients.validation import (
    ClientError,
    check_limits,
    checked_grant,
    checked_name,
    checked_scopes,
    ordered,
)
from frontdesk.access.keys.ring import CLIENT_SECRETS, KeyRing
from frontdesk.domain.errors import Problem
from frontdesk.domain.spelling import closest
from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.store.notifications import notify

DEFAULT_PER_MINUTE = 600
DEFAULT_QUOTA = 1_000_000
DEFAULT_RETIREMENT = timedelta(hours=24)

_ALPHABET = string.digits + string.ascii_letters
_CLIENT_ID = re.compile(r"fd_[0-9A-Za-z]{20}\Z")
_NOBODY = "fd_" + "-" * 20  # not a valid client id
_LIVE_SECRETS = 2
_NO_DIGEST = bytes(32)

_SELECT = """
SELECT c.client_id, p.slug AS practice_slug, c.name, c.grant_kind AS "grant", c.scopes, c.per_minute, c.quota,
       c.disabled, c.created_at,
       ARRAY(SELECT s.created_at FROM client_secret s WHERE s.client_id = c.client_id ORDER BY s.retires_at NULLS FIRST)
           AS secrets_created,
       ARRAY(SELECT s.retires_at FROM client_secret s WHERE s.client_id = c.client_id ORDER BY s.retires_at NULLS FIRST)
           AS secrets_retire
FROM client c JOIN practice p USING (practice_id)
"""
_AUTHENTICATE = """
SELECT c.client_id, c.grant_kind, c.scopes, c.disabled, p.slug, p.suspended, s.digest
FROM client c JOIN practice p USING (practice_id)
JOIN client_secret s ON s.client_id = c.client_id AND (s.retires_at IS NULL OR s.retires_at > $2)
WHERE c.client_id = $1 ORDER BY s.retires_at NULLS FIRST LIMIT 2
"""
_ADD = """
INSERT INTO client (client_id, practice_id, name, grant_kind, scopes, per_minute, quota, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_ADD_SECRET = "INSERT INTO client_secret (client_id, digest, created_at) VALUES ($1, $2, $3)"  # noqa: S105

Clock = Callable[[], datetime]
Also = Callable[[Any, int, str], Awaitable[None]]
"""What commits together with a change: it is given the connection, the practice's id and the client's."""


@dataclass(frozen=True, slots=True)
class SecretRecord:
    created_at: datetime
    retires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ClientRecord:
    client_id: str
    practice_slug: str
    name: str
    grant: Grant
    scopes: tuple[str, ...]
    per_minute: int
    quota: int
    disabled: bool
    created_at: datetime
    secrets: tuple[SecretRecord, ...]  # newest first


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """A client whose secret was verified; a token is issued from it."""

    client_id: str
    practice_slug: str
    grant: Grant
    scopes: tuple[str, ...]


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def authenticate(
    database: Database, ring: KeyRing, client_id: str, secret: str, *, clock: Clock = _utc_now
) -> AuthenticatedClient:
    """Verify a client secret; the only place that does.

    An unknown client and a wrong secret cost the same query and hashes and get the same response. Other errors
    (disabled, suspended) are revealed only after the secret was verified.
    """
    known_form = _CLIENT_ID.match(client_id) is not None
    try:
        rows = await database.fetch(_AUTHENTICATE, client_id if known_form else _NOBODY, clock())
    except DatabaseUnavailable as error:
        raise Problem("upstream_unavailable", "Credentials cannot be checked at the moment.", retry_after=2) from error
    stored = [row["digest"] for row in rows] + [_NO_DIGEST] * (_LIVE_SECRETS - len(rows))
    presented = [_digest(key, client_id, secret) for key in ring.secrets(CLIENT_SECRETS)]
    matches = [hmac.compare_digest(one, other) for one in presented for other in stored]
    if not any(matches) or (row := rows[0])["disabled"]:
        raise Problem("unauthorized", "The client id and the client secret do not belong to a client that may call.")
    if row["suspended"]:
        raise Problem("forbidden_tenant")
    return AuthenticatedClient(row["client_id"], row["slug"], row["grant_kind"], ordered(row["scopes"]))


async def add_client(
    database: Database,
    ring: KeyRing,
    *,
    practice: str,
    name: str,
    grant: str,
    scopes: Sequence[str],
    per_minute: int = DEFAULT_PER_MINUTE,
    quota: int = DEFAULT_QUOTA,
    also: Also | None = None,
    clock: Clock = _utc_now,
) -> tuple[ClientRecord, str]:
    """The new client and its secret, which cannot be shown again."""
    name, kind, held = checked_name(name), checked_grant(grant), checked_scopes(scopes)
    check_limits(per_minute, quota)
    client_id = "fd_" + "".join(secrets.choice(_ALPHABET) for _ in range(20))
    secret, now = _new_secret(), clock()
    async with database.transaction() as connection:
        practice_id = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
        if practice_id is None:
            slugs = [row["slug"] for row in await connection.fetch("SELECT slug FROM practice")]
            raise ClientError(f"There is no practice {practice!r}{closest(practice, slugs)}.")
        await connection.execute(_ADD, client_id, practice_id, name, kind, list(held), per_minute, quota, now)
        await _insert_secret(connection, ring, client_id, secret, now)
        if also is not None:
            await also(connection, practice_id, client_id)
    return await show_client(database, client_id), secret


async def list_clients(database: Database, *, practice: str | None = None) -> list[ClientRecord]:
    rows = await database.fetch(
        _SELECT + "WHERE $1::text IS NULL OR p.slug = $1 ORDER BY p.slug, c.created_at, c.client_id", practice
    )
    return [_record(row) for row in rows]


async def show_client(database: Database, client_id: str) -> ClientRecord:
    row = await database.fetchrow(_SELECT + "WHERE c.client_id = $1", client_id)
    if row is None:
        raise ClientError(f"There is no client {client_id!r}.")
    return _record(row)


async def disable_client(database: Database, client_id: str, *, also: Also | None = None) -> ClientRecord:
    return await _change(database, client_id, also, "disabled = true")


async def enable_client(database: Database, client_id: str, *, also: Also | None = None) -> ClientRecord:
    return await _change(database, client_id, also, "disabled = false")


async def change_client(
    database: Database,
    client_id: str,
    *,
    name: str | None = None,
    scopes: Sequence[str] | None = None,
    per_minute: int | None = None,
    quota: int | None = None,
    also: Also | None = None,
) -> ClientRecord:
    """None leaves a value unchanged. Issued access tokens keep their scopes until they expire."""
    check_limits(per_minute, quota)
    return await _change(
        database,
        client_id,
        also,
        """name = coalesce($2, name), scopes = coalesce($3, scopes), per_minute = coalesce($4::integer, per_minute),
           quota = coalesce($5::bigint, quota)""",
        None if name is None else checked_name(name),
        None if scopes is None else list(checked_scopes(scopes)),
        per_minute,
        quota,
    )


async def rotate_secret(
    database: Database,
    ring: KeyRing,
    client_id: str,
    *,
    retire_old_after: timedelta = DEFAULT_RETIREMENT,
    also: Also | None = None,
    clock: Clock = _utc_now,
) -> tuple[ClientRecord, str]:
    """Add a second secret. The previous one expires later; older ones are revoked immediately."""
    if retire_old_after < timedelta(0):
        raise ClientError("The old secret cannot retire in the past.")
    secret, now = _new_secret(), clock()
    async with database.transaction() as connection:
        # The lock keeps concurrent rotations from leaving three secrets.
        practice_id = await connection.fetchval(
            "SELECT practice_id FROM client WHERE client_id = $1 FOR UPDATE", client_id
        )
        if practice_id is None:
            raise ClientError(f"There is no client {client_id!r}.")
        await connection.execute("DELETE FROM client_secret WHERE client_id = $1 AND retires_at IS NOT NULL", client_id)
        await connection.execute(
            "UPDATE client_secret SET retires_at = $2 WHERE client_id = $1", client_id, now + retire_old_after
        )
        await _insert_secret(connection, ring, client_id, secret, now)
        if also is not None:
            await also(connection, practice_id, client_id)
    return await show_client(database, client_id), secret


async def _change(
    database: Database, client_id: str, also: Also | None, assignments: str, *values: Any
) -> ClientRecord:
    """`assignments` must be SQL of this module, never input."""
    update = f"UPDATE client SET {assignments} WHERE client_id = $1 RETURNING practice_id"  # noqa: S608
    async with database.transaction() as connection:
        practice_id = await connection.fetchval(update, client_id, *values)
        if practice_id is None:
            raise ClientError(f"There is no client {client_id!r}.")
        if also is not None:
            await also(connection, practice_id, client_id)
        await notify(connection, "client", client_id)
    return await show_client(database, client_id)


async def _insert_secret(connection: Any, ring: KeyRing, client_id: str, secret: str, now: datetime) -> None:
    digest = _digest(ring.secrets(CLIENT_SECRETS)[0], client_id, secret)
    await connection.execute(_ADD_SECRET, client_id, digest, now)


def _new_secret() -> str:
    return "fds_" + secrets.token_urlsafe(32)


def _digest(key: bytes, client_id: str, secret: str) -> bytes:
    """The digest includes the client id, so it is useless in another client's row."""
    return hmac.digest(key, f"{client_id}\n{secret}".encode(errors="surrogatepass"), "sha256")


def _record(row: Any) -> ClientRecord:
    fields = dict(row)
    fields["scopes"] = ordered(fields["scopes"])
    fields["secrets"] = tuple(map(SecretRecord, fields.pop("secrets_created"), fields.pop("secrets_retire")))
    return ClientRecord(**fields)
