"""Live updates for open calendar pages of this process, by practice.

Streams end when the port closes, because the server waits for them.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from frontdesk.outbound.calendar_notifier import KIND


class TooManyStreams(Exception):  # noqa: N818 - a state of the world
    """The limit of open streams is reached."""


class LiveCalendars:
    def __init__(self, most: int = 1000, most_each: int = 8) -> None:
        self._most, self._most_each = most, most_each
        self._open: Counter[str] = Counter()  # streams by staff member
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closed = False

    @property
    def streams(self) -> int:
        return self._open.total()

    def on_change(self, kind: str, id: str) -> None:  # noqa: A002
        """Wakes the streams of a changed calendar or directory."""
        for event in self._waiting.get(f"{kind} {id}", ()):
            event.set()

    def wake_all(self) -> None:
        """Wakes every stream: notifications may have been lost."""
        for events in self._waiting.values():
            for event in events:
                event.set()

    def close(self) -> None:
        self._closed = True
        self.wake_all()

    @contextlib.contextmanager
    def listening(self, practice_id: int, practice_slug: str, whose: str) -> Iterator["Listener"]:
        """Raises TooManyStreams."""
        if self._closed or self.streams >= self._most or self._open[whose] >= self._most_each:
            raise TooManyStreams
        event, keys = asyncio.Event(), (f"{KIND} {practice_id}", f"practice {practice_slug}")
        self._open[whose] += 1
        for key in keys:
            self._waiting.setdefault(key, set()).add(event)
        try:
            yield Listener(event, lambda: self._closed)
        finally:
            self._open[whose] -= 1
            if not self._open[whose]:
                del self._open[whose]
            for key in keys:
                self._waiting[key].discard(event)
                if not self._waiting[key]:
                    del self._waiting[key]


@dataclass(frozen=True, slots=True)
class Listener:
    event: asyncio.Event
    closed: Callable[[], bool]

    async def next(self, seconds: float) -> Literal["changed", "quiet", "over"]:
        """Waits for a change, `seconds` without one, or the end of the process."""
        try:
            async with asyncio.timeout(0 if self.closed() else seconds):  # 3.11's wait_for may swallow a cancellation
                await self.event.wait()
        except TimeoutError:
            return "over" if self.closed() else "quiet"
        self.event.clear()
        return "over" if self.closed() else "changed"
