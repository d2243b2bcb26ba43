"""Notifies every process that a practice's calendar has changed.

Notifications are sent after the commit, because PostgreSQL serializes the commits of transactions that notify.
"""

import asyncio

from frontdesk.background import Step
from frontdesk.store.database import Database
from frontdesk.store.notifications import notify

KIND = "calendar"
_PAUSE_SECONDS = 0.1


class CalendarNotifier:
    """Sends at most one notification per practice and pause."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed: set[int] = set()
        self._wake = asyncio.Event()
        self.step = Step("calendar notifications", self.notify, wake=self._wake, pause=_PAUSE_SECONDS)

    def changed(self, practice_id: int) -> None:
        """Notes that the calendar of the practice has changed. Call it after the commit."""
        self._changed.add(practice_id)
        self._wake.set()

    async def notify(self) -> None:
        changed, self._changed = self._changed, set()
        try:
            await notify(self._database, KIND, *map(str, sorted(changed)))
        except BaseException:
            self._changed |= changed
            raise
