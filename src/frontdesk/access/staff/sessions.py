"""Sessions: how a person of the console proves who they are, by a link or an identity elsewhere, and for how long.

A session ends when nobody has used it for `IDLE`, at the latest after `LONGEST`, and at once when its person is
disabled or its practice suspended. Tokens carry 256 random bits and are stored as hashes. A session is made only by
signing in: no token that a browser brings becomes one.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from frontdesk.access.staff.members import Role, end_everything, hold, record
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

IDLE = timedelta(minutes=30)
LONGEST = timedelta(hours=12)
_TOUCH = timedelta(minutes=1)  # how exactly the last use is known: a write a minute, not one a request
_KEEP_LINKS = timedelta(days=1)
_LONGEST_TOKEN = 200
_MOST_SESSIONS = 20

Means = Literal["link", "oidc"]

_SESSION = """
SELECT s.staff_id, o.name, o.role, o.practice_id, p.slug, p.name AS practice_name, p.time_zone, p.version, s.means,
       s.created_at, s.last_seen_at, s.expires_at, o.disabled OR p.suspended AS refused
FROM staff_session s JOIN staff o USING (staff_id) JOIN practice p USING (practice_id) WHERE s.digest = $1
"""


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is signed in."""

    digest: bytes
    staff_id: str
    name: str
    role: Role
    practice_id: int
    practice_slug: str
    practice_name: str
    time_zone: str
    directory_version: int
    means: Means
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session as its person sees it in a list."""

    number: str  # tells it from the others, and opens nothing
    means: Means
    browser: str
    created_at: datetime
    last_seen_at: datetime
    current: bool


class SignIn:
    """`on_audit` is told of every practice that has a new audit record, so that it is sealed soon."""

    def __init__(self, database: Database, clock: Callable[[], datetime], on_audit: Callable[[int], None]) -> None:
        self._database = database
        self._clock = clock
        self._on_audit = on_audit

    async def find(self, token: str | None, *, in_use: bool = True) -> Session | None:
        """The session of this token if it is still good. `in_use` is false where no person asked."""
        if not token or len(token) > _LONGEST_TOKEN:
            return None
        digest, now = digest_of(token), self._clock()
        try:
            row = await self._database.fetchrow(_SESSION, digest)
            if row is None or row["refused"] or now >= row["expires_at"] or now >= row["last_seen_at"] + IDLE:
                return None
            if in_use and now >= row["last_seen_at"] + _TOUCH:
                await self._database.fetch(
                    "UPDATE staff_session SET last_seen_at = $2 WHERE digest = $1 AND last_seen_at < $2", digest, now
                )
        except DatabaseUnavailable as error:
            raise _unavailable() from error
        return Session(
            digest,
            row["staff_id"],
            row["name"],
            row["role"],
            row["practice_id"],
            row["slug"],
            row["practice_name"],
            row["time_zone"],
            row["version"],
            row["means"],
            row["created_at"],
            row["expires_at"],
        )

    async def by_link(self, token: str, browser: str) -> str:
        """The token of a new session. Problem `unauthorized` for a link that is unknown, used or too old."""
        try:
            async with self._database.transaction() as connection:
                opened = await self._use_link(connection, token, browser)
        except (DatabaseUnavailable, OutcomeUnknown) as error:
            raise _unavailable() from error
        if opened is None:
            raise Problem("unauthorized", "This sign-in link is not good any more.")
        return opened

    async def by_identity(self, issuer: str, subject: str, verified_email: str | None, browser: str) -> str:
        """The same for somebody whom an identity provider vouches for. The first time they are known by an e-mail
        address that the provider has verified, then by the provider's own name for them."""
        try:
            async with self._database.transaction() as connection:
                opened = await self._use_identity(connection, issuer, subject, verified_email, browser)
        except (DatabaseUnavailable, OutcomeUnknown) as error:
            raise _unavailable() from error
        if opened is None:
            raise Problem("unauthorized", "Nobody here is known by this identity.")
        return opened

    async def sign_out(self, session: Session) -> None:
        await self._end(session, "console.sign_out")

    async def sign_out_everywhere(self, session: Session) -> None:
        """Links of this person that were not used yet go, too."""
        await self._end(session, "console.sign_out_everywhere", everywhere=True)

    async def sessions_of(self, session: Session) -> list[SessionRecord]:
        """What is live, the newest first."""
        now = self._clock()
        rows = await self._database.fetch(
            """SELECT digest, means, browser, created_at, last_seen_at FROM staff_session
               WHERE staff_id = $1 AND expires_at > $2 AND last_seen_at > $3 ORDER BY created_at DESC""",
            session.staff_id,
            now,
            now - IDLE,
        )
        return [
            SessionRecord(
                row["digest"].hex()[:8],
                row["means"],
                row["browser"],
                row["created_at"],
                row["last_seen_at"],
                row["digest"] == session.digest,
            )
            for row in rows
        ]

    async def _use_link(self, connection: Any, token: str, browser: str) -> str | None:
        digest, now = digest_of(token), self._clock()
        staff_id = await connection.fetchval("SELECT staff_id FROM staff_link WHERE digest = $1", digest)
        held = None if staff_id is None else await hold(connection, staff_id)
        if held is None:
            return None
        good = not (held["disabled"] or held["suspended"]) and await connection.fetchval(
            """UPDATE staff_link SET used_at = $2 WHERE digest = $1 AND used_at IS NULL AND expires_at > $2
               RETURNING true""",
            digest,
            now,
        )
        if not good:
            await self._record(connection, held["practice_id"], staff_id, "console.sign_in", "unauthorized")
            return None
        return await self._open(connection, held["practice_id"], staff_id, "link", browser)

    async def _use_identity(
        self, connection: Any, issuer: str, subject: str, verified_email: str | None, browser: str
    ) -> str | None:
        row = await connection.fetchrow(
            """SELECT o.staff_id, o.practice_id, o.oidc_subject IS NOT NULL AS linked,
                      (o.oidc_issuer = $1 AND o.oidc_subject = $2) IS TRUE AS known,
                      o.disabled OR p.suspended AS refused
               FROM staff o JOIN practice p USING (practice_id)
               WHERE (o.oidc_issuer = $1 AND o.oidc_subject = $2) OR o.email = $3
               ORDER BY known DESC LIMIT 1 FOR UPDATE OF o""",
            issuer,
            subject,
            None if verified_email is None else verified_email.lower(),
        )
        if row is None:
            return None
        practice_id, staff_id = row["practice_id"], row["staff_id"]
        if row["refused"] or (row["linked"] and not row["known"]):
            await self._record(connection, practice_id, staff_id, "console.sign_in", "unauthorized")
            return None
        if not row["known"]:
            await connection.execute(
                "UPDATE staff SET oidc_issuer = $2, oidc_subject = $3 WHERE staff_id = $1",
                staff_id,
                issuer,
                subject,
            )
            await self._record(connection, practice_id, staff_id, "console.link_identity", "executed")
        return await self._open(connection, practice_id, staff_id, "oidc", browser)

    async def _open(self, connection: Any, practice_id: int, staff_id: str, means: Means, browser: str) -> str:
        token, now = new_token(), self._clock()
        await connection.execute("UPDATE staff SET signed_in_at = $2 WHERE staff_id = $1", staff_id, now)
        await connection.execute(
            """DELETE FROM staff_session WHERE staff_id = $1 AND digest NOT IN (
                   SELECT digest FROM staff_session WHERE staff_id = $1 ORDER BY last_seen_at DESC LIMIT $2)""",
            staff_id,
            _MOST_SESSIONS - 1,
        )
        await connection.execute(
            "INSERT INTO staff_session VALUES ($1, $2, $3, $4, $5, $5, $6)",
            digest_of(token),
            staff_id,
            means,
            browser,
            now,
            now + LONGEST,
        )
        await self._record(connection, practice_id, staff_id, "console.sign_in", "executed")
        return token

    async def _end(self, session: Session, operation: str, *, everywhere: bool = False) -> None:
        try:
            async with self._database.transaction() as connection:
                await hold(connection, session.staff_id)
                if everywhere:
                    await end_everything(connection, session.staff_id)
                else:
                    await connection.execute("DELETE FROM staff_session WHERE digest = $1", session.digest)
                await self._record(connection, session.practice_id, session.staff_id, operation, "executed")
        except (DatabaseUnavailable, OutcomeUnknown) as error:
            raise _unavailable() from error

    async def _record(self, connection: Any, practice_id: int, staff_id: str, operation: str, outcome: str) -> None:
        await record(connection, practice_id, self._clock(), staff_id, operation, outcome, staff_id)
        self._on_audit(practice_id)


async def forget_old_sessions(database: Database, now: datetime, most: int) -> None:
    """Removes sessions and links that are over, a bounded number at a time."""
    await database.write(
        """DELETE FROM staff_session WHERE digest = ANY (ARRAY(
               SELECT digest FROM staff_session WHERE last_seen_at < $1 OR expires_at < $2
               LIMIT $3 FOR UPDATE SKIP LOCKED))""",
        now - IDLE,
        now,
        most,
    )
    await database.write(
        """DELETE FROM staff_link WHERE digest = ANY (ARRAY(
               SELECT digest FROM staff_link WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))""",
        now - _KEEP_LINKS,
        most,
    )


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _unavailable() -> Problem:
    return Problem("upstream_unavailable", "Signing in is not possible at the moment.", retry_after=2)
