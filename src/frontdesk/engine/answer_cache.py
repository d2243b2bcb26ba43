"""The answer cache: answers of operations with `depends_on`, returned again while nothing they depend on has changed.

Callers must be identified and have the operation's scope before a lookup: the cache knows neither tokens nor scopes.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from frontdesk.access.clients.caller import Caller
from frontdesk.cache import BoundedCache
from frontdesk.operations import Operation
from frontdesk.store.calendar_versions import PracticeVersions
from frontdesk.systems.port import Versions

MAX_BYTES = 24 * 1024 * 1024  # reached only if tool calls read every entry: REST answers take half of their weight
MAX_ENTRY_BYTES = 512 * 1024
_ENTRY_OVERHEAD = 1024

CacheKey = tuple[str, bytes]  # a request as it was sent: path and query, or tool name and arguments


@dataclass(frozen=True, eq=False)
class Answer:
    status: int
    content: bytes  # JSON

    @cached_property
    def quoted(self) -> orjson.Fragment:
        """The content as a JSON string."""
        return orjson.Fragment(_exact(orjson.dumps(self.content.decode())))

    @property
    def body(self) -> Mapping[str, Any]:
        found: Mapping[str, object] = orjson.loads(self.content)
        return found


class Stamp(NamedTuple):
    """The state of keys and clock that an answer depends on."""

    keys: object
    minute: float


class Entry(NamedTuple):
    answer: Answer
    versions: Versions
    stamp: Stamp


class AnswerCache:
    """`hits` and `misses` count lookups by operation."""

    def __init__(
        self,
        directory_version: Callable[[int], int],
        keys: Callable[[float], object],
        seconds: Callable[[], float] = time.time,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`directory_version` is the version of a practice's directory in memory; `keys` the state of the keys at a
        time."""
        self._directory_version = directory_version
        self._keys = keys
        self._seconds = seconds
        self._entries: BoundedCache[tuple[int, str, bytes], Entry] = BoundedCache(max_bytes)
        self._minute = 0.0  # of all stored answers from calendars
        self.hits: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()

    def clear(self) -> None:
        self._entries.clear()

    def lookup(self, caller: Caller, key: CacheKey) -> Entry | None:
        """An entry that is fresh as far as memory can tell. For an answer from the calendar `is_fresh` decides."""
        entry = self._entries.get((caller.practice_id, *key))
        if entry is None:
            return None
        _, versions, stamp = entry
        seconds = self._seconds()
        if stamp.keys != self._keys(seconds) or caller.directory_version > versions.directory:
            return None
        if versions.calendars is not None:
            return entry if stamp.minute == _minute(seconds) else None
        return entry if versions.directory == self._directory_version(caller.practice_id) else None

    def stamp(self, seconds: float) -> Stamp:
        """The state of keys and clock that an answer depends on. Take it before the operation runs."""
        return Stamp(self._keys(seconds), _minute(seconds))

    def store(
        self, caller: Caller, operation: Operation, key: CacheKey, answer: Answer, versions: Versions, stamp: Stamp
    ) -> None:
        if (operation.depends_on == "calendar") != (versions.calendars is not None):
            return
        if versions.calendars is not None:
            self._drop_outdated()
            if stamp.minute != self._minute:
                return
        size = (
            2 * len(answer.content) + len(key[0]) + len(key[1]) + _ENTRY_OVERHEAD
        )  # twice: plain, and quoted once a tool call reads it
        if size <= MAX_ENTRY_BYTES:
            exact = Answer(answer.status, _exact(answer.content))
            self._entries.put((caller.practice_id, key[0], _exact(key[1])), Entry(exact, versions, stamp), size)

    def _drop_outdated(self) -> None:
        """When a new minute has begun: answers from the calendar of any other are never returned again."""
        minute = _minute(self._seconds())
        if minute != self._minute:
            self._minute = minute
            for key in [key for key, entry in self._entries.items() if entry.versions.calendars is not None]:
                self._entries.discard(key)


def is_fresh(entry: Entry, current: PracticeVersions) -> bool:
    """Whether an answer from the calendar has the versions that its call has read."""
    directory, calendars = entry.versions
    if current.directory != directory or calendars is None:
        return False
    return all(current.calendars.get(provider, 0) == changes for provider, changes in calendars.items())


def _exact(content: bytes) -> bytes:
    """A copy: orjson leaves what it wrote in its buffer, which takes several times as much memory."""
    return bytes(memoryview(content))


def _minute(seconds: float) -> float:
    """Calendar rules change at the minute; its first instant counts as a minute of its own, before the rest."""
    minute, rest = divmod(seconds, 60)
    return minute if rest == 0 else minute + 0.5
