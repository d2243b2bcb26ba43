"""API clients: adding, listing and changing them, and ending their tokens."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime, timedelta

import orjson
from asyncpg import Record

from frontdesk.access.clients.caller import Grant
from frontdesk.access.clients.secrets import insert_secret, new_secret
from frontdesk.access.clients.validation import (
    ClientError,
    check_access_limits,
    check_limits,
    checked_grant,
    checked_name,
    checked_scopes,
    ordered,
)
from frontdesk.access.keys.ring import KeyRing
from frontdesk.audit.trail import AuditRecorder
from frontdesk.domain.ids import random_base62
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.notifications import notify
from frontdesk.store.practices import is_removed, why_unusable
from frontdesk.store.rows import field_names

DEFAULT_PER_MINUTE = 600
DEFAULT_QUOTA = 1_000_000
DEFAULT_RETIREMENT = timedelta(hours=24)


_SELECT = """
SELECT c.client_id, p.slug AS practice_slug, c.name, c.grant_kind AS "grant", c.scopes, c.per_minute, c.quota,
       c.patients_per_hour, c.patients_per_day, c.match_misses, c.known_patients_only, c.writes_per_hour,
       c.upcoming_per_patient, c.trusted_to_ask, c.disabled, c.created_at,
       c.tokens_not_before, c.staff_id, c.revoked_at, c.jwks_url,
       ARRAY(SELECT k ->> 'kid' FROM jsonb_array_elements(c.jwks -> 'keys') k) AS key_ids,
       ARRAY(SELECT s.created_at FROM client_secret s WHERE s.client_id = c.client_id ORDER BY s.retires_at NULLS FIRST)
           AS secrets_created,
       ARRAY(SELECT s.retires_at FROM client_secret s WHERE s.client_id = c.client_id ORDER BY s.retires_at NULLS FIRST)
           AS secrets_retire
FROM client c JOIN practice p USING (practice_id)
"""
_ADD = """
INSERT INTO client (client_id, practice_id, name, grant_kind, scopes, per_minute, quota, created_at,
    patients_per_hour, patients_per_day, match_misses, known_patients_only, writes_per_hour, upcoming_per_patient,
    jwks, jwks_url)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
_LOCK = (
    "SELECT practice_id, grant_kind, scopes, tokens_not_before, staff_id FROM client WHERE client_id = $1 FOR UPDATE"
)

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class SecretRecord:
    created_at: datetime
    retires_at: datetime | None


@dataclass(frozen=True, slots=True)
class AccessLimits:
    """A client's own limits on reading patients and on writing; 0 is unlimited, None means as the practice says."""

    patients_per_hour: int | None = None
    patients_per_day: int | None = None
    match_misses: int | None = None
    known_patients_only: bool | None = None
    writes_per_hour: int | None = None
    upcoming_per_patient: int | None = None


AS_THE_PRACTICE = AccessLimits()


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """Public keys of a client: a key set or the URL of one, or neither."""

    jwks: Mapping[str, object] | None = None
    url: str | None = None

    @property
    def columns(self) -> tuple[str | None, str | None]:
        return None if self.jwks is None else orjson.dumps(self.jwks).decode(), self.url


NO_KEYS = ClientKeys()


@dataclass(frozen=True, slots=True)
class ClientRecord:
    client_id: str
    practice_slug: str
    name: str
    grant: Grant
    scopes: tuple[str, ...]
    per_minute: int
    quota: int
    access_limits: AccessLimits
    disabled: bool
    created_at: datetime
    secrets: tuple[SecretRecord, ...]  # newest first
    tokens_not_before: datetime | None = None  # tokens issued before are refused
    key_ids: tuple[str, ...] = ()
    jwks_url: str | None = None
    staff_id: str | None = None  # the staff member who connected it, if it is an assistant
    revoked_at: datetime | None = None  # when it was disconnected
    trusted_to_ask: bool = False  # what its host reports of people counts as their consent


def _utc_now() -> datetime:
    return datetime.now(UTC)


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
    access_limits: AccessLimits = AS_THE_PRACTICE,
    keys: ClientKeys = NO_KEYS,
    recorder: AuditRecorder | None = None,
    clock: Clock = _utc_now,
) -> tuple[ClientRecord, str]:
    """The new client and its secret, which cannot be shown again."""
    name, kind, held = checked_name(name), checked_grant(grant), checked_scopes(scopes)
    check_limits(per_minute, quota)
    check_access_limits(**asdict(access_limits))
    client_id = "fd_" + random_base62(20)
    secret, now = new_secret(), clock()
    async with database.transaction() as connection:
        practice_id = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
        if practice_id is None or is_removed(practice):
            slugs = [row["slug"] for row in await connection.fetch("SELECT slug FROM practice")]
            raise ClientError(why_unusable(practice, slugs))
        values = (practice_id, name, kind, list(held), per_minute, quota, now)
        await connection.execute(_ADD, client_id, *values, *astuple(access_limits), *keys.columns)
        await insert_secret(connection, ring, client_id, secret, now)
        if recorder is not None:
            await recorder(connection, practice_id, client_id)
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


async def disable_client(
    database: Database, client_id: str, *, recorder: AuditRecorder | None = None, clock: Clock = _utc_now
) -> ClientRecord:
    """Refuse every call, and end all tokens, so that none of them works when the client is enabled again. An assistant
    must then be connected again."""
    return await _change(database, client_id, recorder, clock, "disabled = true", ends_tokens=True)


async def enable_client(
    database: Database, client_id: str, *, recorder: AuditRecorder | None = None, clock: Clock = _utc_now
) -> ClientRecord:
    return await _change(database, client_id, recorder, clock, "disabled = revoked_at IS NOT NULL")


async def trust_client(
    database: Database, client_id: str, *, recorder: AuditRecorder | None = None, clock: Clock = _utc_now
) -> ClientRecord:
    """Lets what the client's host reports of people, as the press on a card, count as their consent."""
    return await _change(database, client_id, recorder, clock, "trusted_to_ask = true")


async def distrust_client(
    database: Database, client_id: str, *, recorder: AuditRecorder | None = None, clock: Clock = _utc_now
) -> ClientRecord:
    return await _change(database, client_id, recorder, clock, "trusted_to_ask = false")


async def revoke_tokens(
    database: Database, client_id: str, *, recorder: AuditRecorder | None = None, clock: Clock = _utc_now
) -> ClientRecord:
    """End every token issued so far. The client's secrets keep working; an assistant must be connected again."""
    async with _changing(database, client_id, recorder) as (connection, held):
        await end_tokens(connection, client_id, held, clock())
    return await show_client(database, client_id)


async def change_client(
    database: Database,
    client_id: str,
    *,
    name: str | None = None,
    grant: str | None = None,
    scopes: Sequence[str] | None = None,
    per_minute: int | None = None,
    quota: int | None = None,
    access_limits: AccessLimits | None = None,
    recorder: AuditRecorder | None = None,
    clock: Clock = _utc_now,
) -> ClientRecord:
    """Changes a client. None leaves a value unchanged. New scopes or a new grant end every token issued before."""
    check_limits(per_minute, quota)
    if access_limits is not None:
        check_access_limits(**asdict(access_limits))

    def check(held: Record) -> None:
        if held["staff_id"] is not None:
            _check_consent(held, grant, scopes or (), access_limits)

    return await _change(
        database,
        client_id,
        recorder,
        clock,
        """name = coalesce($2, name), grant_kind = coalesce($3, grant_kind), scopes = coalesce($4, scopes),
           per_minute = coalesce($5::integer, per_minute), quota = coalesce($6::bigint, quota),
           patients_per_hour = CASE WHEN $7 THEN $8::integer ELSE patients_per_hour END,
           patients_per_day = CASE WHEN $7 THEN $9::integer ELSE patients_per_day END,
           match_misses = CASE WHEN $7 THEN $10::integer ELSE match_misses END,
           known_patients_only = CASE WHEN $7 THEN $11::boolean ELSE known_patients_only END,
           writes_per_hour = CASE WHEN $7 THEN $12::integer ELSE writes_per_hour END,
           upcoming_per_patient = CASE WHEN $7 THEN $13::integer ELSE upcoming_per_patient END""",
        None if name is None else checked_name(name),
        None if grant is None else checked_grant(grant),
        None if scopes is None else list(checked_scopes(scopes)),
        per_minute,
        quota,
        access_limits is not None,
        *astuple(access_limits or AS_THE_PRACTICE),
        check=check,
    )


async def remove_client(database: Database, client_id: str, *, recorder: AuditRecorder | None = None) -> None:
    """Deletes a client with its secrets and tokens. Audit records and usage keep its id, which is never used again."""
    async with _changing(database, client_id, recorder) as (connection, _):
        for table in ("client_secret", "refresh_token", "authorization_code", "client"):
            await connection.execute(f"DELETE FROM {table} WHERE client_id = $1", client_id)  # noqa: S608 - ours


async def set_keys(
    database: Database, client_id: str, keys: ClientKeys, *, recorder: AuditRecorder | None = None
) -> ClientRecord:
    """Replace the keys with which the client signs its requests for tokens. Tokens issued before keep working."""
    if (await show_client(database, client_id)).staff_id is not None:
        raise ClientError("An assistant that staff have connected has no keys.")
    return await _change(database, client_id, recorder, _utc_now, "jwks = $2::jsonb, jwks_url = $3", *keys.columns)


def _check_consent(
    assistant: Record, grant: str | None, scopes: Sequence[str], access_limits: AccessLimits | None
) -> None:
    """An assistant stays within what its staff member has agreed to. Its row is locked, because they may agree anew."""
    if grant == "integration":
        raise ClientError("An assistant that staff have connected is always an agent.", "grant")
    if access_limits is not None and not access_limits.known_patients_only:
        raise ClientError("An assistant sees only patients that it matched, created or booked.", "known_patients_only")
    if not set(scopes) <= set(assistant["scopes"]):
        raise ClientError("Only the staff member who has connected an assistant can give it more scopes.", "scopes")


async def rotate_secret(
    database: Database,
    ring: KeyRing,
    client_id: str,
    *,
    retire_old_after: timedelta = DEFAULT_RETIREMENT,
    recorder: AuditRecorder | None = None,
    clock: Clock = _utc_now,
) -> tuple[ClientRecord, str]:
    """Add a second secret. The previous one expires later; older ones are revoked immediately.

    Without an overlap every token issued before is ended, too.
    """
    if retire_old_after < timedelta(0):
        raise ClientError("The old secret cannot retire in the past.")
    secret, now = new_secret(), clock()
    async with _changing(database, client_id, recorder) as (connection, held):
        if held["staff_id"] is not None:
            raise ClientError("An assistant that staff have connected has no secret.")
        # Without an overlap none may stay: by the clock of a node that is behind it would still be valid.
        revoke = "DELETE FROM client_secret WHERE client_id = $1 AND (retires_at IS NOT NULL OR $2)"
        await connection.execute(revoke, client_id, not retire_old_after)
        await connection.execute(
            "UPDATE client_secret SET retires_at = $2 WHERE client_id = $1", client_id, now + retire_old_after
        )
        await insert_secret(connection, ring, client_id, secret, now)
        if not retire_old_after:
            await end_access_tokens(connection, client_id, held, now)
    return await show_client(database, client_id), secret


async def _change(
    database: Database,
    client_id: str,
    recorder: AuditRecorder | None,
    clock: Clock,
    assignments: str,
    *values: object,
    ends_tokens: bool = False,
    check: Callable[[Record], None] = lambda _held: None,
) -> ClientRecord:
    """`assignments` must be SQL of this module, never input. `check` may refuse, given the client's row."""
    update = f"UPDATE client SET {assignments} WHERE client_id = $1 RETURNING grant_kind, scopes"  # noqa: S608
    async with _changing(database, client_id, recorder) as (connection, held):
        check(held)
        changed = await connection.fetchrow(update, client_id, *values)
        assert changed is not None
        access_changed = changed["grant_kind"] != held["grant_kind"] or set(changed["scopes"]) != set(held["scopes"])
        if ends_tokens:
            await end_tokens(connection, client_id, held, clock())
        elif access_changed:  # an assistant's refresh tokens stay: they give what the client holds now
            await end_access_tokens(connection, client_id, held, clock())
    return await show_client(database, client_id)


@asynccontextmanager
async def _changing(
    database: Database, client_id: str, recorder: AuditRecorder | None
) -> AsyncIterator[tuple[Connection, Record]]:
    """A connection and the client's row, locked: concurrent rotations must not leave three secrets."""
    async with database.transaction() as connection:
        held = await connection.fetchrow(_LOCK, client_id)
        if held is None:
            raise ClientError(f"There is no client {client_id!r}.")
        yield connection, held
        if recorder is not None:
            await recorder(connection, held["practice_id"], client_id)
        await notify(connection, "client", client_id)


async def end_tokens(connection: Connection, client_id: str, held: Record, now: datetime) -> None:
    """Ends access tokens and, of an assistant, codes and refresh tokens. The client's row is locked."""
    await end_access_tokens(connection, client_id, held, now)
    await connection.execute("DELETE FROM refresh_token WHERE client_id = $1", client_id)
    await connection.execute("DELETE FROM authorization_code WHERE client_id = $1", client_id)


async def end_access_tokens(connection: Connection, client_id: str, held: Record, now: datetime) -> None:
    """Ends every access token issued before now. The stored time always grows, whatever this node's clock says."""
    before = held["tokens_not_before"]
    later = now if before is None else max(now, before + timedelta(microseconds=1))
    await connection.execute("UPDATE client SET tokens_not_before = $2 WHERE client_id = $1", client_id, later)


def _record(row: Record) -> ClientRecord:
    fields = dict(row)
    fields["scopes"] = ordered(fields["scopes"])
    fields["key_ids"] = tuple(fields["key_ids"])
    fields["access_limits"] = AccessLimits(**{name: fields.pop(name) for name in field_names(AccessLimits)})
    fields["secrets"] = tuple(map(SecretRecord, fields.pop("secrets_created"), fields.pop("secrets_retire")))
    return ClientRecord(**fields)
