"""Live updates for open calendar pages of this process, by practice.

Each page is notified of a change at once, and of further ones once a second: rendering a page costs far more than a
booking, and many may be open. Streams end when the port closes, because the server waits for them.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from frontdesk.outbound.calendar_notifier import KIND

PAUSE_SECONDS = 1.0
_MAX_STREAMS_PER_STAFF = 8  # streams of one staff member


class TooManyStreams(Exception):
    """The limit of open streams is reached."""


class LiveCalendars:
    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()  # streams by staff member
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closed = asyncio.Event()

    @property
    def streams(self) -> int:
        return self._open.total()

    def on_change(self, kind: str, id: str) -> None:
        """Wakes the streams of a changed calendar or directory."""
        for event in self._waiting.get(f"{kind} {id}", ()):
            event.set()

    def wake_all(self) -> None:
        """Wakes every stream: notifications may have been lost."""
        for events in self._waiting.values():
            for event in events:
                event.set()

    def close(self) -> None:
        self._closed.set()
        self.wake_all()

    @contextlib.contextmanager
    def listening(self, practice_id: int, practice_slug: str, whose: str) -> Iterator["Listener"]:
        """Listens for changes of the practice while it is entered. Raises TooManyStreams."""
        if self._closed.is_set() or self.streams >= self._limit or self._open[whose] >= _MAX_STREAMS_PER_STAFF:
            raise TooManyStreams
        event, keys = asyncio.Event(), (f"{KIND} {practice_id}", f"practice {practice_slug}")
        self._open[whose] += 1
        for key in keys:
            self._waiting.setdefault(key, set()).add(event)
        try:
            yield Listener(event, self._closed)
        finally:
            self._open[whose] -= 1
            if not self._open[whose]:
                del self._open[whose]
            for key in keys:
                self._waiting[key].discard(event)
                if not self._waiting[key]:
                    del self._waiting[key]


class Listener:
    def __init__(self, changed: asyncio.Event, closed: asyncio.Event) -> None:
        self._changed = changed
        self._closed = closed
        self._pauses_until = 0.0  # on the event loop's clock

    async def next(self, seconds: float) -> Literal["changed", "quiet", "over"]:
        """Waits for a change, `seconds` without one, or the end of the process. After a change there is a pause first:
        what changes meanwhile counts when it is over."""
        loop = asyncio.get_running_loop()
        pause = self._pauses_until - loop.time()
        if pause > 0:
            await _is_set_within(self._closed, pause)
        changed = await _is_set_within(self._changed, seconds)
        if self._closed.is_set():
            return "over"
        if not changed:
            return "quiet"
        self._changed.clear()
        self._pauses_until = loop.time() + PAUSE_SECONDS
        return "changed"


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):  # 3.11's wait_for may swallow a cancellation
            await event.wait()
    except TimeoutError:
        return False
    return True
