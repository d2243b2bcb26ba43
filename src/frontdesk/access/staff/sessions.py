"""Console sessions: staff sign in with a passkey, a one-time link or through an identity provider.

A session ends when it has been idle for `IDLE` (with a PIN it is locked instead), after `SESSION_LIFETIME` at the
latest, and at once when its staff member is disabled or its practice suspended. Only the hashes of session tokens are
stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import orjson
from asyncpg import Record

from frontdesk.access.opaque_tokens import digest_of, new_token
from frontdesk.access.outages import outage_as_problem, transaction_or_problem
from frontdesk.access.staff.members import StaffError, StaffMember, delete_sessions_and_links, member_for_update
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.domain.directory import DateFormat, TimeFormat
from frontdesk.domain.errors import Problem
from frontdesk.feature import StoredFeatures
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.texts import N_

IDLE = timedelta(minutes=30)
SESSION_LIFETIME = timedelta(hours=12)
_TOUCH = timedelta(minutes=1)  # precision of last_seen_at: one write a minute, not one a request
_KEEP_LINKS = timedelta(days=1)
_MAX_TOKEN_LENGTH = 200
_MAX_SESSIONS = 20
_OUTAGE = N_("Signing in is not possible at the moment.")

Means = Literal["link", "oidc", "passkey"]

_SESSION = """
SELECT s.digest, s.staff_id, m.name, m.role, m.language, m.practice_id, p.slug AS practice_slug,
       p.name AS practice_name, p.time_zone, p.time_format, p.date_format, p.features, p.version AS directory_version,
       s.means, s.created_at, s.last_seen_at, s.expires_at, s.locked_at, n.lock_after_minutes,
       n.chosen_at AS pin_chosen_at
FROM staff_session s JOIN staff m USING (staff_id) JOIN practice p USING (practice_id)
LEFT JOIN staff_pin n USING (staff_id)
WHERE s.digest = $1 AND NOT (m.disabled OR p.suspended)
"""
_PRESENT = """
SELECT s.digest, m.role, n.sealed, s.wrong_pins
FROM staff_session s JOIN staff m USING (staff_id) LEFT JOIN staff_pin n USING (staff_id)
WHERE s.digest = $1 AND s.staff_id = $2 AND s.locked_at IS NULL
"""
_SESSIONS = """
SELECT left(encode(digest, 'hex'), 8) AS number, means, browser, created_at, last_seen_at, digest = $4 AS current
FROM staff_session LEFT JOIN staff_pin n USING (staff_id)
WHERE staff_id = $1 AND expires_at > $2 AND (last_seen_at > $3 OR n.staff_id IS NOT NULL) ORDER BY created_at DESC
"""
_USE_LINK = """
UPDATE staff_link SET used_at = $2 WHERE digest = $1 AND used_at IS NULL AND expires_at > $2 RETURNING true
"""
_BY_IDENTITY = """
SELECT m.staff_id, m.practice_id, p.slug, p.name AS practice_name, m.oidc_subject IS NOT NULL AS linked,
       (m.oidc_issuer = $1 AND m.oidc_subject = $2) IS TRUE AS known, m.disabled OR p.suspended AS refused
FROM staff m JOIN practice p USING (practice_id)
WHERE (m.oidc_issuer = $1 AND m.oidc_subject = $2) OR m.email = $3
ORDER BY known DESC, p.slug FOR UPDATE OF m
"""
_LINK_IDENTITY = "UPDATE staff SET oidc_issuer = $2, oidc_subject = $3 WHERE staff_id = $1"
_KEEP_NEWEST = """
DELETE FROM staff_session WHERE staff_id = $1 AND digest NOT IN (
    SELECT digest FROM staff_session WHERE staff_id = $1 ORDER BY last_seen_at DESC LIMIT $2)
"""
_OPEN = "INSERT INTO staff_session VALUES ($1, $2, $3, $4, $5, $5, $6)"
_END_ONE = "DELETE FROM staff_session WHERE staff_id = $1 AND left(encode(digest, 'hex'), 8) = $2 RETURNING true"
_PRUNE_SESSIONS = """
DELETE FROM staff_session WHERE digest = ANY (ARRAY(
    SELECT s.digest FROM staff_session s
    WHERE s.expires_at < $2
       OR (s.last_seen_at < $1 AND NOT EXISTS (SELECT FROM staff_pin n WHERE n.staff_id = s.staff_id))
    LIMIT $3 FOR UPDATE SKIP LOCKED)) RETURNING true
"""
_PRUNE_LINKS = """
DELETE FROM staff_link WHERE digest = ANY (ARRAY(
    SELECT digest FROM staff_link WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING true
"""


@dataclass(frozen=True, slots=True)
class StaffSession(StaffMember):
    digest: bytes
    practice_name: str
    time_zone: str
    time_format: TimeFormat
    date_format: DateFormat
    features: StoredFeatures
    language: str | None  # chosen by the staff member; None: as the browser prefers
    means: Means
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    locked_at: datetime | None
    lock_after_minutes: int | None  # None: the staff member has no PIN
    pin_chosen_at: datetime | None

    @property
    def idle(self) -> timedelta:
        """How long the session may be unused until it is locked, or ends if the staff member has no PIN."""
        return IDLE if self.lock_after_minutes is None else timedelta(minutes=self.lock_after_minutes)

    def is_open(self, now: datetime) -> bool:
        return self.locked_at is None and now < self.expires_at and now < self.last_seen_at + self.idle


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session in a list of sessions."""

    number: str  # part of the hash: shown, and useless for signing in
    means: Means
    browser: str
    created_at: datetime
    last_seen_at: datetime
    current: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is at the identity provider."""

    issuer: str
    subject: str
    verified_email: str | None


@dataclass(frozen=True, slots=True)
class Membership:
    """A practice in which an identity may sign in."""

    staff_id: str
    practice_slug: str
    practice_name: str
    known: bool  # the identity has signed in there before


class PracticeChoice(Exception):
    """The identity belongs to staff of several practices, and none was chosen."""

    def __init__(self, memberships: Sequence[Membership]) -> None:
        super().__init__(len(memberships))
        self.memberships = memberships


class StaffSessions:
    """`on_audit` is called with each practice that has a new audit record to seal."""

    def __init__(self, database: Database, clock: Callable[[], datetime], on_audit: Callable[[int], None]) -> None:
        self._database = database
        self._clock = clock
        self._on_audit = on_audit

    async def find(self, token: str | None, *, in_use: bool = True) -> StaffSession | None:
        """The session of a token if it is still valid and not locked. `in_use` is false for requests that a script
        makes by itself."""
        if not token or len(token) > _MAX_TOKEN_LENGTH:
            return None
        digest, now = digest_of(token), self._clock()
        with outage_as_problem(_OUTAGE):
            row = await self._database.fetchrow(_SESSION, digest)
            session = None if row is None else StaffSession(**{**row, "features": orjson.loads(row["features"])})
            if session is None or not session.is_open(now):
                return None
            if in_use and now >= session.last_seen_at + _TOUCH:
                await self._database.fetch(
                    "UPDATE staff_session SET last_seen_at = $2 WHERE digest = $1 AND last_seen_at < $2", digest, now
                )
        return session

    async def by_link(self, token: str, browser: str, request_id: str) -> str:
        """The token of a new session. Problem `unauthorized` for an unknown, used or expired link."""
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            opened = await self._use_link(connection, token, browser, request_id)
        if opened is None:
            raise Problem("unauthorized", "This sign-in link is no longer valid.")
        return opened

    async def by_identity(self, identity: Identity, browser: str, request_id: str, chosen: str | None = None) -> str:
        """The token of a new session for an identity of the provider, found by its subject, or the first time by its
        verified e-mail address.

        Raises PracticeChoice if it belongs to staff of several practices; `chosen` is the id of one of them.
        """
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            opened = await self._use_identity(connection, identity, browser, request_id, chosen)
        if opened is None:
            raise Problem("unauthorized", "No staff member has this identity.")
        return opened

    async def sign_out(self, session: StaffSession, request_id: str) -> None:
        await self._end(session, "console.sign_out", request_id)

    async def sign_out_everywhere(self, session: StaffSession, request_id: str) -> None:
        """Ends every session of the staff member and deletes their unused links."""
        await self._end(session, "console.sign_out_everywhere", request_id, everywhere=True)

    async def _use_link(self, connection: Connection, token: str, browser: str, request_id: str) -> str | None:
        digest = digest_of(token)
        staff_id = await connection.fetchval("SELECT staff_id FROM staff_link WHERE digest = $1", digest)
        held = None if staff_id is None else await member_for_update(connection, staff_id)
        if held is None:
            return None
        refused = held["disabled"] or held["suspended"]
        if refused or not await connection.fetchval(_USE_LINK, digest, self._clock()):
            await self.record(connection, held["practice_id"], staff_id, "console.sign_in", request_id, "unauthorized")
            return None
        return await self.open(connection, held["practice_id"], staff_id, "link", browser, request_id)

    async def _use_identity(
        self, connection: Connection, identity: Identity, browser: str, request_id: str, chosen: str | None
    ) -> str | None:
        issuer, subject = identity.issuer, identity.subject
        email = None if identity.verified_email is None else identity.verified_email.lower()
        found = await connection.fetch(_BY_IDENTITY, issuer, subject, email)
        first: dict[int, Record] = {}  # of each practice: the member it is linked to, before one with the same address
        for row in found:
            first.setdefault(row["practice_id"], row)
        rows = [row for row in first.values() if chosen in (None, row["staff_id"])]
        admitted = [row for row in rows if not row["refused"] and (row["known"] or not row["linked"])]
        if not admitted:
            for row in rows:
                await self.record(
                    connection, row["practice_id"], row["staff_id"], "console.sign_in", request_id, "unauthorized"
                )
            return None
        if len(admitted) > 1:
            raise PracticeChoice(
                [Membership(row["staff_id"], row["slug"], row["practice_name"], row["known"]) for row in admitted]
            )
        practice_id, staff_id = admitted[0]["practice_id"], admitted[0]["staff_id"]
        if not admitted[0]["known"]:
            await connection.execute(_LINK_IDENTITY, staff_id, issuer, subject)
            await self.record(connection, practice_id, staff_id, "console.link_identity", request_id)
        return await self.open(connection, practice_id, staff_id, "oidc", browser, request_id)

    async def open(
        self, connection: Connection, practice_id: int, staff_id: str, means: Means, browser: str, request_id: str
    ) -> str:
        """The token of a new session. The caller holds the staff member's row."""
        token, now = new_token(), self._clock()
        await connection.execute("UPDATE staff SET signed_in_at = $2 WHERE staff_id = $1", staff_id, now)
        await connection.execute(_KEEP_NEWEST, staff_id, _MAX_SESSIONS - 1)
        await connection.execute(_OPEN, digest_of(token), staff_id, means, browser, now, now + SESSION_LIFETIME)
        await self.record(connection, practice_id, staff_id, "console.sign_in", request_id)
        return token

    async def _end(self, session: StaffSession, operation: str, request_id: str, *, everywhere: bool = False) -> None:
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            await member_for_update(connection, session.staff_id)
            if everywhere:
                await delete_sessions_and_links(connection, session.staff_id)
            else:
                await connection.execute("DELETE FROM staff_session WHERE digest = $1", session.digest)
            await self.record(connection, session.practice_id, session.staff_id, operation, request_id)

    async def record(
        self,
        connection: Connection,
        practice_id: int,
        staff_id: str,
        operation: str,
        request_id: str,
        outcome: str = "executed",
    ) -> None:
        audit = AuditContext(staff_id, self._clock(), request_id)
        await append_audit(connection, audit.entry(practice_id, operation, [staff_id], outcome))
        self._on_audit(practice_id)


async def session_for_update(connection: Connection, session: StaffSession, *others: str) -> Record:
    """Locks the row of a session's staff member; returns their role, its digest, wrong PINs and, if there is one, the
    encrypted PIN. `others` are staff to lock with them: all in the order of their ids, so that changes cannot deadlock.

    Problem `unauthorized` if the session has ended or been locked since it was looked up.
    """
    for staff_id in sorted({session.staff_id, *others}):
        await member_for_update(connection, staff_id)
    row = await connection.fetchrow(_PRESENT, session.digest, session.staff_id)
    if row is None:
        raise Problem("unauthorized", "You are no longer signed in. Sign in and try again.")
    return row


async def list_sessions(
    database: Database, staff_id: str, now: datetime, current: bytes | None = None
) -> list[SessionRecord]:
    """The valid sessions of a staff member, newest first. `current` is the digest of the one that asks."""
    return [SessionRecord(**row) for row in await database.fetch(_SESSIONS, staff_id, now, now - IDLE, current)]


async def end_session(database: Database, practice_id: int, staff_id: str, number: str, *, audit: AuditContext) -> None:
    """Ends one session of a staff member. StaffError if there is none with this number."""
    async with database.transaction() as connection:
        await member_for_update(connection, staff_id)
        if not await connection.fetchval(_END_ONE, staff_id, number):
            raise StaffError("There is no such session.")
        await append_audit(connection, audit.entry(practice_id, "console.end_session", [staff_id]))


async def prune_sessions(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` expired sessions, and as many links; returns the larger number."""
    sessions = await database.fetch(_PRUNE_SESSIONS, now - IDLE, now, limit)
    links = await database.fetch(_PRUNE_LINKS, now - _KEEP_LINKS, limit)
    return max(len(sessions), len(links))
