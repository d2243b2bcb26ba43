"""Client secrets: making, storing and verifying them.

A secret has 256 random bits, is shown once, and is stored as a keyed hash. A client has at most two valid secrets, for
rotation.
"""

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from asyncpg import Record

from frontdesk.access.clients.caller import Grant
from frontdesk.access.clients.validation import ordered
from frontdesk.access.keys.ring import CLIENT_SECRETS, KeyRing
from frontdesk.access.outages import CREDENTIALS, outage_as_problem
from frontdesk.domain.errors import Problem
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database

CLIENT_ID = re.compile(r"fd_[0-9A-Za-z]{20}\Z")
_NOBODY = "fd_" + "-" * 20  # not a valid client id
_LIVE_SECRETS = 2
_NO_DIGEST = bytes(32)

_AUTHENTICATE = """
SELECT c.client_id, c.grant_kind, c.scopes, c.disabled, c.tokens_not_before, c.per_minute, p.slug, p.suspended, s.digest
FROM client c JOIN practice p USING (practice_id)
JOIN client_secret s ON s.client_id = c.client_id AND (s.retires_at IS NULL OR s.retires_at > $2)
WHERE c.client_id = $1 ORDER BY s.retires_at NULLS FIRST LIMIT 2
"""
_ADD_SECRET = "INSERT INTO client_secret (client_id, digest, created_at) VALUES ($1, $2, $3)"  # noqa: S105


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """A client whose credentials were verified; a token is issued from it."""

    client_id: str
    practice_slug: str
    grant: Grant
    scopes: tuple[str, ...]
    tokens_not_before: datetime | None = None
    per_minute: int = 0


async def authenticate(
    database: Database,
    ring: KeyRing,
    client_id: str,
    secret: str,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AuthenticatedClient:
    """Verify a client secret; the only place that does.

    An unknown client and a wrong secret cost the same query and hashes and get the same response. Other errors
    (disabled, suspended) are revealed only after the secret was verified.
    """
    known_form = CLIENT_ID.match(client_id) is not None
    with outage_as_problem(CREDENTIALS):
        rows = await database.fetch(_AUTHENTICATE, client_id if known_form else _NOBODY, clock())
    stored = [row["digest"] for row in rows] + [_NO_DIGEST] * (_LIVE_SECRETS - len(rows))
    presented = [_digest(key, client_id, secret) for key in ring.secrets(CLIENT_SECRETS)]
    matches = [hmac.compare_digest(one, other) for one in presented for other in stored]
    if not any(matches) or (row := rows[0])["disabled"]:
        raise Problem("unauthorized", "The client id or the client secret is not valid.")
    return client_of(row)


def client_of(row: Record) -> AuthenticatedClient:
    """The client of a row, whose credentials were verified."""
    if row["suspended"]:
        raise Problem("forbidden_tenant")
    return AuthenticatedClient(
        row["client_id"],
        row["slug"],
        row["grant_kind"],
        ordered(row["scopes"]),
        row["tokens_not_before"],
        row["per_minute"],
    )


async def insert_secret(connection: Connection, ring: KeyRing, client_id: str, secret: str, now: datetime) -> None:
    digest = _digest(ring.secrets(CLIENT_SECRETS)[0], client_id, secret)
    await connection.execute(_ADD_SECRET, client_id, digest, now)


def new_secret() -> str:
    return "fds_" + secrets.token_urlsafe(32)


def _digest(key: bytes, client_id: str, secret: str) -> bytes:
    """The digest includes the client id, so it is useless in another client's row."""
    return hmac.digest(key, f"{client_id}\n{secret}".encode(errors="surrogatepass"), "sha256")
