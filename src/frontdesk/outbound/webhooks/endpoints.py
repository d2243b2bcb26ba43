"""Webhook endpoints of a practice and their secrets.

An endpoint's id contains its practice, because row-level security needs it. Secrets are encrypted and shown once.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.audit.trail import AuditRecorder
from frontdesk.domain.spelling import closest
from frontdesk.outbound.webhooks.events import event_types
from frontdesk.outbound.webhooks.signing import new_secret, secret_text
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.texts import ExplainedError, Text

DEFAULT_RETIREMENT = timedelta(days=1)
_ID = re.compile(r"whk_([1-9][0-9]{0,17})_[0-9a-f]{16}\Z")

_PRACTICES = """
SELECT practice_id FROM practice WHERE has_webhooks AND ($1::bigint IS NULL OR practice_id = $1) ORDER BY slug
"""
_SELECT = """
SELECT w.practice_id, p.slug AS practice_slug, w.endpoint_id, w.url, w.events, w.paused_at, w.pause_reason,
       w.failing_since, w.created_at,
       (SELECT count(*) FROM webhook_delivery d
        WHERE d.practice_id = w.practice_id AND d.endpoint_id = w.endpoint_id AND d.state = 'pending') AS pending,
       (SELECT count(*) FROM webhook_delivery d
        WHERE d.practice_id = w.practice_id AND d.endpoint_id = w.endpoint_id AND d.state = 'dead') AS dead,
       (SELECT max(s.retires_at) FROM webhook_secret s
        WHERE s.practice_id = w.practice_id AND s.endpoint_id = w.endpoint_id) AS old_secret_until,
       w.public_only
FROM webhook_endpoint w JOIN practice p ON p.practice_id = w.practice_id
WHERE w.practice_id = $1 AND ($2::text IS NULL OR w.endpoint_id = $2) ORDER BY w.created_at, w.endpoint_id
"""
_ENCRYPTED_SECRETS = "SELECT endpoint_id, number, sealed FROM webhook_secret WHERE practice_id = $1 FOR UPDATE"
_ADD = """
INSERT INTO webhook_endpoint (practice_id, endpoint_id, url, events, public_only, after_event_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_LAST_EVENT = "SELECT coalesce(max(event_id), 0) FROM outbox WHERE practice_id = $1"
_IS_PUBLIC = "SELECT EXISTS (SELECT FROM webhook_endpoint WHERE practice_id = $1 AND endpoint_id = $2 AND public_only)"
_PAUSE = """
UPDATE webhook_endpoint SET paused_at = $3, pause_reason = 'operator'
WHERE practice_id = $1 AND endpoint_id = $2 AND paused_at IS NULL
"""
_MAKE_DUE = """
UPDATE webhook_delivery SET due_at = least($3, now()), attempts = 0
WHERE practice_id = $1 AND endpoint_id = $2 AND state = 'pending' AND holder = ''
"""
_RESUME = """
UPDATE webhook_endpoint SET paused_at = NULL, pause_reason = NULL, failures = 0, failing_since = NULL, rest_until = NULL
WHERE practice_id = $1 AND endpoint_id = $2
"""
_ADD_ENCRYPTED = """
INSERT INTO webhook_secret (practice_id, endpoint_id, number, sealed, created_at) VALUES ($1, $2, $3, $4, $5)
"""
_LAST_NUMBER = "SELECT coalesce(max(number), 0) FROM webhook_secret WHERE practice_id = $1 AND endpoint_id = $2"
_REPLACE_ENCRYPTED = "UPDATE webhook_secret SET sealed = $4 WHERE practice_id = $1 AND endpoint_id = $2 AND number = $3"
_HAS_ENDPOINTS = "SELECT EXISTS (SELECT FROM webhook_endpoint WHERE practice_id = $1)"
_COUNT = "SELECT count(*) FROM webhook_endpoint WHERE practice_id = $1"
_SET_HAS_WEBHOOKS = "UPDATE practice SET has_webhooks = $2 WHERE practice_id = $1"
_OF_ENDPOINT = "WHERE practice_id = $1 AND endpoint_id = $2"
_LOCK = "SELECT pg_advisory_xact_lock(webhooks_lock($1))"


class WebhookError(ExplainedError):
    """The request is invalid."""


class EndpointLimitError(WebhookError):
    """The practice has as many endpoints as it may have."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    practice_id: int
    practice_slug: str
    endpoint_id: str
    url: str
    events: Sequence[str]  # none: all
    paused_at: datetime | None
    pause_reason: str | None
    failing_since: datetime | None
    created_at: datetime
    old_secret_until: datetime | None
    public_only: bool  # added in the console: no private address, whatever the operator allows
    pending: int
    dead: int


def practice_of(endpoint_id: str) -> int:
    found = _ID.match(endpoint_id)
    if found is None:
        raise no_such_endpoint(endpoint_id)
    return int(found.group(1))


def no_such_endpoint(endpoint_id: str) -> WebhookError:
    return WebhookError(f"There is no webhook endpoint {endpoint_id!r}.")


async def add_endpoint(
    database: Database,
    cipher: KeyCipher,
    practice_id: int,
    url: str,
    events: Sequence[str],
    now: datetime,
    *,
    public_only: bool = False,
    limit: int | None = None,
    recorder: AuditRecorder | None = None,
) -> tuple[Endpoint, str]:
    """The new endpoint and its secret. The caller has checked the URL. `limit` is how many the practice may have."""
    for event in events:
        if event not in event_types():
            raise WebhookError(f"There is no event {event!r}{closest(event, event_types())}.")
    endpoint_id = f"whk_{practice_id}_{secrets.token_hex(8)}"
    secret = new_secret()
    async with database.transaction(practice_id) as connection:
        # Locks the practice's row: who adds another one meanwhile counts this one.
        await connection.execute(_SET_HAS_WEBHOOKS, practice_id, True)
        if limit is not None and await connection.fetchval(_COUNT, practice_id) >= limit:
            raise EndpointLimitError(Text("There are %(limit)s endpoints: remove one first.", limit=limit))
        last_event = await connection.fetchval(_LAST_EVENT, practice_id)
        await connection.execute(
            _ADD, practice_id, endpoint_id, url, list(dict.fromkeys(events)), public_only, last_event, now
        )
        encrypted = cipher.encrypt(secret, _context(endpoint_id))
        await connection.execute(_ADD_ENCRYPTED, practice_id, endpoint_id, 1, encrypted, now)
        await _finish(connection, practice_id, endpoint_id, recorder)
    return await show_endpoint(database, endpoint_id), secret_text(secret)


async def list_endpoints(database: Database, practice_id: int | None = None) -> list[Endpoint]:
    """The endpoints of one practice or of all."""
    practices = await database.fetch(_PRACTICES, practice_id)
    return [endpoint for row in practices for endpoint in await _select(database, row["practice_id"], None)]


async def show_endpoint(database: Database, endpoint_id: str) -> Endpoint:
    found = await _select(database, practice_of(endpoint_id), endpoint_id)
    if not found:
        raise no_such_endpoint(endpoint_id)
    return found[0]


async def pause_endpoint(
    database: Database, endpoint_id: str, now: datetime, *, recorder: AuditRecorder | None = None
) -> Endpoint:
    """Stop sending until the endpoint is resumed; events are kept."""
    practice_id = practice_of(endpoint_id)
    async with database.transaction(practice_id) as connection:
        await connection.execute(_PAUSE, practice_id, endpoint_id, now)
        await _finish(connection, practice_id, endpoint_id, recorder)
    return await show_endpoint(database, endpoint_id)


async def resume_endpoint(
    database: Database, endpoint_id: str, now: datetime, *, recorder: AuditRecorder | None = None
) -> Endpoint:
    """Waiting deliveries become due immediately, with all their attempts."""
    practice_id = practice_of(endpoint_id)
    async with database.transaction(practice_id) as connection:
        # Lock deliveries before their endpoint, like finishing a delivery does, to avoid deadlocks.
        await connection.execute(_MAKE_DUE, practice_id, endpoint_id, now)
        await connection.execute(_RESUME, practice_id, endpoint_id)
        await _finish(connection, practice_id, endpoint_id, recorder)
    return await show_endpoint(database, endpoint_id)


async def remove_endpoint(database: Database, endpoint_id: str, *, recorder: AuditRecorder | None = None) -> None:
    practice_id = practice_of(endpoint_id)
    async with database.transaction(practice_id) as connection:
        # Lock out the assignment of deliveries, so that none is added before the endpoint is gone.
        await connection.execute(_LOCK, practice_id)
        await _finish(connection, practice_id, endpoint_id, recorder)
        # Lock out the recording of attempts, so that none is added either.
        await connection.execute(f"SELECT FROM webhook_delivery {_OF_ENDPOINT} FOR UPDATE", practice_id, endpoint_id)
        for table in ("webhook_attempt", "webhook_delivery", "webhook_secret", "webhook_endpoint"):
            await connection.execute(f"DELETE FROM {table} {_OF_ENDPOINT}", practice_id, endpoint_id)  # noqa: S608
        has_endpoints = await connection.fetchval(_HAS_ENDPOINTS, practice_id)
        await connection.execute(_SET_HAS_WEBHOOKS, practice_id, has_endpoints)


async def rotate_secret(
    database: Database,
    cipher: KeyCipher,
    endpoint_id: str,
    now: datetime,
    *,
    retire_old_after: timedelta,
    recorder: AuditRecorder | None = None,
) -> tuple[Endpoint, str]:
    """Add a second secret. Messages are signed with both until the previous one expires; older ones are revoked now."""
    practice_id = practice_of(endpoint_id)
    secret = new_secret()
    async with database.transaction(practice_id) as connection:
        # The lock keeps concurrent rotations from leaving three secrets.
        lock = f"SELECT FROM webhook_endpoint {_OF_ENDPOINT} FOR UPDATE"
        if not await connection.fetch(lock, practice_id, endpoint_id):
            raise no_such_endpoint(endpoint_id)
        revoke = f"DELETE FROM webhook_secret {_OF_ENDPOINT} AND retires_at IS NOT NULL"  # noqa: S608
        await connection.execute(revoke, practice_id, endpoint_id)
        retire = f"UPDATE webhook_secret SET retires_at = $3 {_OF_ENDPOINT}"  # noqa: S608
        await connection.execute(retire, practice_id, endpoint_id, now + retire_old_after)
        number = await connection.fetchval(_LAST_NUMBER, practice_id, endpoint_id) + 1
        encrypted = cipher.encrypt(secret, _context(endpoint_id))
        await connection.execute(_ADD_ENCRYPTED, practice_id, endpoint_id, number, encrypted, now)
        await _finish(connection, practice_id, endpoint_id, recorder)
    return await show_endpoint(database, endpoint_id), secret_text(secret)


async def is_public_only(database: Database, practice_id: int, endpoint_id: str) -> bool:
    async with database.transaction(practice_id) as connection:
        found: bool = await connection.fetchval(_IS_PUBLIC, practice_id, endpoint_id)
    return found


async def live_secrets(database: Database, cipher: KeyCipher, endpoint: Endpoint, now: datetime) -> list[bytes]:
    async with database.transaction(endpoint.practice_id) as connection:
        encrypted = await connection.fetchval(
            "SELECT webhook_secrets($1, $2, $3)", endpoint.practice_id, endpoint.endpoint_id, now
        )
    return decrypt_secrets(cipher, endpoint.endpoint_id, encrypted)


async def reencrypt_secrets(database: Database, cipher: KeyCipher) -> int:
    """Encrypt every secret with the newest secret key; returns the number of secrets."""
    count = 0
    for row in await database.fetch(_PRACTICES, None):
        practice_id = row["practice_id"]
        async with database.transaction(practice_id) as connection:
            for endpoint_id, number, encrypted in await connection.fetch(_ENCRYPTED_SECRETS, practice_id):
                context = _context(endpoint_id)
                reencrypted = cipher.encrypt(cipher.decrypt(encrypted, context), context)
                await connection.execute(_REPLACE_ENCRYPTED, practice_id, endpoint_id, number, reencrypted)
                count += 1
    return count


def decrypt_secrets(cipher: KeyCipher, endpoint_id: str, encrypted: Sequence[bytes]) -> list[bytes]:
    return [cipher.decrypt(one, _context(endpoint_id)) for one in encrypted]


async def _finish(connection: Connection, practice_id: int, endpoint_id: str, recorder: AuditRecorder | None) -> None:
    """What commits with a change of an endpoint; raises if there is no such endpoint."""
    if not await connection.fetch(f"SELECT FROM webhook_endpoint {_OF_ENDPOINT}", practice_id, endpoint_id):
        raise no_such_endpoint(endpoint_id)
    if recorder is not None:
        await recorder(connection, practice_id, endpoint_id)


def _context(endpoint_id: str) -> bytes:
    """Binds an encrypted secret to its endpoint."""
    return f"webhook {endpoint_id}".encode()


async def _select(database: Database, practice_id: int, endpoint_id: str | None) -> list[Endpoint]:
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_SELECT, practice_id, endpoint_id)
    return [Endpoint(**row) for row in rows]
