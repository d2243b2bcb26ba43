"""Calendar feeds as they are stored. An address is known only to who asked for it."""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from frontdesk.access.opaque_tokens import digest_of, new_token, practice_token
from frontdesk.audit.trail import AuditRecorder
from frontdesk.domain.directory import Directory
from frontdesk.store.database import Database

_ID = re.compile(r"feed_([1-9][0-9]{0,17})_[0-9a-f]{16}\Z")
_SELECT = """
SELECT f.feed_id, p.slug AS practice_slug, f.provider_id, f.with_names, f.created_at, f.revoked_at
FROM calendar_feed f JOIN practice p ON p.practice_id = f.practice_id
WHERE f.practice_id = $1 ORDER BY f.created_at, f.feed_id
"""
_REVOKE = """
UPDATE calendar_feed SET revoked_at = $3 WHERE practice_id = $1 AND feed_id = $2 AND revoked_at IS NULL
"""
_INSERT = """
INSERT INTO calendar_feed (practice_id, feed_id, provider_id, digest, with_names, created_at)
VALUES ($1, $2, $3, $4, $5, $6)
"""


class FeedError(Exception):
    """The request is invalid; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Feed:
    feed_id: str
    practice_slug: str
    provider_id: int
    with_names: bool
    created_at: datetime
    revoked_at: datetime | None


async def add_feed(
    database: Database,
    practice_id: int,
    directory: Directory,
    provider_id: int,
    *,
    with_names: bool,
    now: datetime,
    recorder: AuditRecorder | None = None,
) -> tuple[Feed, str]:
    """The new feed and its path, which cannot be shown again."""
    if provider_id not in directory.providers:
        raise FeedError(f"The practice has no provider {provider_id}.")
    feed_id = f"feed_{practice_id}_{secrets.token_hex(8)}"
    secret = new_token()
    async with database.transaction(practice_id) as connection:
        await connection.execute(_INSERT, practice_id, feed_id, provider_id, digest_of(secret), with_names, now)
        if recorder is not None:
            await recorder(connection, practice_id, feed_id)
    feed = Feed(feed_id, directory.practice.slug, provider_id, with_names, now, None)
    return feed, f"/feeds/{practice_token(practice_id, secret)}.ics"


async def list_feeds(database: Database, practice_id: int) -> list[Feed]:
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_SELECT, practice_id)
    return [Feed(**row) for row in rows]


async def revoke_feed(
    database: Database, feed_id: str, now: datetime, *, recorder: AuditRecorder | None = None
) -> Feed:
    """Revoke the feed; its address stops working."""
    named = _ID.match(feed_id)
    practice_id = int(named.group(1)) if named else 0
    async with database.transaction(practice_id) as connection:
        await connection.execute(_REVOKE, practice_id, feed_id, now)
        for row in await connection.fetch(_SELECT, practice_id):
            if row["feed_id"] == feed_id:
                if recorder is not None:
                    await recorder(connection, practice_id, feed_id)
                return Feed(**row)
    raise FeedError(f"There is no calendar feed {feed_id!r}.")
