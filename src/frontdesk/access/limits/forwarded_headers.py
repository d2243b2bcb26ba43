"""Reports X-Forwarded-For headers of peers that are not trusted proxies, for `frontdesk doctor`.

Behind a proxy that is not declared, all callers have one address, and limits per address apply to them together.
"""

import logging
from datetime import timedelta

from frontdesk.background import Step
from frontdesk.store.database import Database

_EVERY_SECONDS = 60.0
_KEEP = timedelta(days=7)
_NAME = "untrusted forwarded header"
_REPORT = """
INSERT INTO observation VALUES ($1, $2, now())
ON CONFLICT (name) DO UPDATE SET detail = excluded.detail, seen_at = excluded.seen_at
"""
_log = logging.getLogger(__name__)


class ForwardedHeaders:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._peer: str | None = None  # the latest, not yet reported
        self._warned = False
        self.step = Step("forwarded header reports", self.report, every=_EVERY_SECONDS, close=self.report)

    def ignored(self, peer: str) -> None:
        """The header of this peer was not read."""
        self._peer = peer
        if not self._warned:
            self._warned = True
            _log.warning("X-Forwarded-For is ignored: %s is not in FRONTDESK_TRUSTED_PROXIES", peer)

    async def report(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            await self._database.write(_REPORT, _NAME, peer)


async def latest_ignored(database: Database) -> str | None:
    """The peer whose header was ignored last, if that was lately."""
    peer: str | None = await database.fetchval(
        "SELECT detail FROM observation WHERE name = $1 AND seen_at > now() - $2::interval", _NAME, _KEEP
    )
    return peer
