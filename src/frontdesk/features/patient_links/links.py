"""Patients' links as they are stored: one per appointment, and only the digest of its secret."""

import secrets
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk.access.clients.caller import Caller
from frontdesk.access.opaque_tokens import digest_of, new_token, practice_token, read_practice_token
from frontdesk.audit.trail import AuditEntry, append_audit
from frontdesk.domain.consent import Demands
from frontdesk.features.patient_links import FEATURE
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

MAX_WRONG_DATES = 5
ACTOR_PREFIX = "link_"
_SCOPES = frozenset(("appointments:confirm", "appointments:cancel"))
_SAVE = """
INSERT INTO patient_link (practice_id, appointment_id, link_id, digest, made_by, made_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (practice_id, appointment_id) DO UPDATE SET
    link_id = excluded.link_id, digest = excluded.digest, made_by = excluded.made_by, made_at = excluded.made_at,
    wrong_dates = 0
"""
_MADE = """
SELECT made_by, made_at, wrong_dates FROM patient_link WHERE practice_id = $1 AND appointment_id = $2
"""
_END = "DELETE FROM patient_link WHERE practice_id = $1 AND appointment_id = $2 RETURNING link_id"
_USABLE = """
SELECT l.practice_id, l.appointment_id, l.link_id, p.slug AS practice_slug, p.version AS directory_version,
       p.consent AS demands, p.features
FROM patient_link l JOIN practice p ON p.practice_id = l.practice_id
WHERE l.practice_id = $1 AND l.wrong_dates < $2 AND NOT p.suspended
"""
_BY_DIGEST = _USABLE + "AND l.digest = $3"
_BY_ID = _USABLE + "AND l.appointment_id = $3 AND l.link_id = $4"
_COUNT = """
UPDATE patient_link SET wrong_dates = wrong_dates + $5
WHERE practice_id = $1 AND appointment_id = $2 AND link_id = $3 AND wrong_dates < $4 RETURNING link_id
"""


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A link as staff see it."""

    made_by: str
    made_at: datetime
    wrong_dates: int

    @property
    def is_locked(self) -> bool:
        return self.wrong_dates >= MAX_WRONG_DATES


@dataclass(frozen=True, slots=True)
class UsedLink:
    """A link that somebody has opened, at a practice that is not suspended."""

    practice_id: int
    appointment_id: str
    link_id: str
    practice_slug: str
    directory_version: int
    demands: Demands

    def caller(self) -> Caller:
        """The caller of operations: the patient's press is the consent, so writes execute without confirmation."""
        return Caller(
            client_id=self.link_id,
            practice_id=self.practice_id,
            practice_slug=self.practice_slug,
            scopes=_SCOPES,
            grant="integration",
            directory_version=self.directory_version,
            consent="link",
            demands=self.demands,
        )


async def make_link(database: Database, appointment_id: str, entry: AuditEntry) -> str:
    """The token of a new link, which cannot be shown again. The link before it stops working."""
    secret = new_token()
    link_id = ACTOR_PREFIX + secrets.token_hex(8)
    async with database.transaction(entry.practice_id) as connection:
        values = (entry.practice_id, appointment_id, link_id, digest_of(secret), entry.actor, entry.at)
        await connection.execute(_SAVE, *values)
        await append_audit(connection, entry)
    return practice_token(entry.practice_id, secret)


async def end_link(database: Database, appointment_id: str, entry: AuditEntry) -> None:
    async with database.transaction(entry.practice_id) as connection:
        if await connection.fetchval(_END, entry.practice_id, appointment_id) is not None:
            await append_audit(connection, entry)


async def made_link(connection: Connection, practice_id: int, appointment_id: str) -> MadeLink | None:
    row = await connection.fetchrow(_MADE, practice_id, appointment_id)
    return None if row is None else MadeLink(*row.values())


def link_address(public_url: str, token: str) -> str:
    """The token is in the fragment: browsers do not send it, so no server, proxy or link preview sees it."""
    return f"{public_url}/my-appointment#{token}"


def is_token(text: str) -> bool:
    return read_practice_token(text) is not None


async def find_link(database: Database, token: str) -> UsedLink | None:
    """The link of a token, unless it was ended, replaced or locked."""
    read = read_practice_token(token)
    return None if read is None else await _find(database, _BY_DIGEST, read.practice_id, read.digest)


async def find_link_again(database: Database, practice_id: int, appointment_id: str, link_id: str) -> UsedLink | None:
    """A link that was opened before, unless it was ended, replaced or locked since."""
    return await _find(database, _BY_ID, practice_id, appointment_id, link_id)


async def count_date(database: Database, link: UsedLink, entry: AuditEntry, *, is_right: bool) -> bool:
    """Whether a date of birth opens the link. The attempt is counted first, so that concurrent guesses count, too."""
    async with database.transaction(link.practice_id) as connection:
        wrong = 0 if is_right else 1
        counted = await connection.fetchval(
            _COUNT, link.practice_id, link.appointment_id, link.link_id, MAX_WRONG_DATES, wrong
        )
        if counted is not None:
            await append_audit(connection, entry)
    return is_right and counted is not None


async def _find(database: Database, sql: str, practice_id: int, *key: object) -> UsedLink | None:
    async with database.transaction(practice_id) as connection:
        row = await connection.fetchrow(sql, practice_id, MAX_WRONG_DATES, *key)
    if row is None or not FEATURE.is_enabled(orjson.loads(row["features"])):
        return None
    return from_row(UsedLink, row, demands=orjson.loads(row["demands"]))
