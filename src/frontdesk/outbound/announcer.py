"""Word that a practice's calendar has changed: sent by whoever wrote, heard by every process that shows a calendar.

It is sent a moment after the write has committed and outside its transaction, because committing notifications take
turns across the whole server. Changes of one practice within that moment are one word. Only ever a hint, without dates,
names or ids of patients: whoever hears it looks again, and looks by itself when it may have missed one.
"""

import asyncio
import logging

from frontdesk.store.changes import announce_many
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

KIND = "calendar"
_PAUSE_SECONDS = 0.1
_log = logging.getLogger(__name__)


class Announcer:
    """Sends at most one word a practice and pause."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed: set[int] = set()
        self._wake = asyncio.Event()

    def changed(self, practice_id: int) -> None:
        """Called after a commit; costs nothing."""
        self._changed.add(practice_id)
        self._wake.set()

    async def keep_announcing(self) -> None:
        """Runs for as long as the service does."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, set()
            try:
                await announce_many(self._database, KIND, [str(practice_id) for practice_id in sorted(changed)])
            except (DatabaseUnavailable, OutcomeUnknown):
                _log.warning("word of a changed calendar could not be sent")
            await asyncio.sleep(_PAUSE_SECONDS)
