"""The answer cache: answers of operations with `depends_on`, returned again while nothing they depend on has changed.

Callers must be identified and have the operation's scope before a lookup: the cache knows neither tokens nor scopes.
"""

import asyncio
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
from frontdesk.store.database import Database
from frontdesk.systems.port import Versions

MAX_BYTES = 48 * 1024 * 1024  # reached only if tool calls read every entry: REST answers take half of their weight
MAX_ENTRY_BYTES = 512 * 1024
_ENTRY_OVERHEAD = 1024
_VERSIONS = "SELECT practice, version, calendar FROM unnest($1::bigint[]) AS practice, calendar_state(practice)"

CacheKey = tuple[str, bytes]  # a request as it was sent: path and query, or tool name and arguments


@dataclass(frozen=True, eq=False)
class Answer:
    status: int
    content: bytes  # JSON

    @cached_property
    def quoted(self) -> orjson.Fragment:
        """The content as a JSON string."""
        return orjson.Fragment(orjson.dumps(self.content.decode()))

    @property
    def body(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = orjson.loads(self.content)
        return found


class Stamp(NamedTuple):
    """The state of keys and clock that an answer depends on."""

    keys: Any
    minute: float


class Entry(NamedTuple):
    answer: Answer
    versions: Versions
    stamp: Stamp


class AnswerCache:
    """`hits` and `misses` count lookups by operation."""

    def __init__(
        self,
        current_versions: "CurrentVersions",
        directory_version: Callable[[int], int],
        keys: Callable[[float], Any],
        seconds: Callable[[], float] = time.time,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`directory_version` is the version of a practice's directory in memory; `keys` the state of the keys at a
        time."""
        self._current_versions = current_versions
        self._directory_version = directory_version
        self._keys = keys
        self._seconds = seconds
        self._entries: BoundedCache[tuple[int, str, bytes], Entry] = BoundedCache(max_bytes)
        self.hits: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()

    def lookup(self, caller: Caller, key: CacheKey) -> Entry | None:
        """An entry that is fresh as far as memory can tell. For one from the calendar `is_fresh` decides."""
        entry = self._entries.get((caller.practice_id, *key))
        if entry is None:
            return None
        _, versions, stamp = entry
        seconds = self._seconds()
        if stamp.keys != self._keys(seconds) or caller.directory_version > versions.directory:
            return None
        if versions.calendar is not None:
            return entry if stamp.minute == _minute(seconds) else None
        return entry if versions.directory == self._directory_version(caller.practice_id) else None

    async def is_fresh(self, entry: Entry, caller: Caller) -> bool:
        """Compares the versions of an answer from the calendar with those in the database."""
        return await self._current_versions.read(caller.practice_id) == entry.versions

    def stamp(self, seconds: float) -> Stamp:
        """To be taken before the operation runs."""
        return Stamp(self._keys(seconds), _minute(seconds))

    def store(
        self, caller: Caller, operation: Operation, key: CacheKey, answer: Answer, versions: Versions, stamp: Stamp
    ) -> None:
        if (operation.depends_on == "calendar") != (versions.calendar is not None):
            return
        size = (
            2 * len(answer.content) + len(key[0]) + len(key[1]) + _ENTRY_OVERHEAD
        )  # twice: plain, and quoted once a tool call reads it
        if size <= MAX_ENTRY_BYTES:
            self._entries.put((caller.practice_id, *key), Entry(answer, versions, stamp), size)


class CurrentVersions:
    """Reads the versions of practices from the database, with one query at a time for all who wait.

    A query that is already running never serves a later caller: it might miss a change committed before that call.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[int, asyncio.Future[Versions]]] = []  # for the next query
        self._reader: asyncio.Task[None] | None = None

    async def read(self, practice_id: int) -> Versions:
        # A future for each caller, so that a cancelled one does not cancel the others.
        result: asyncio.Future[Versions] = asyncio.get_running_loop().create_future()
        self._waiting.append((practice_id, result))
        if self._reader is None:
            self._reader = asyncio.create_task(self._read_all())
        return await result

    async def _read_all(self) -> None:
        batch: list[tuple[int, asyncio.Future[Versions]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    found = await self._query({practice_id for practice_id, _ in batch})
                except Exception as error:
                    for _, result in batch:
                        if not result.done():
                            result.set_exception(error)
                else:
                    for practice_id, result in batch:
                        if not result.done():
                            result.set_result(found[practice_id])
                await asyncio.sleep(0)  # lets calls that arrive together share a query
        finally:
            self._reader = None
            for _, result in (*batch, *self._waiting):
                result.cancel()  # has an effect only if this task was cancelled, at shutdown

    async def _query(self, practices: set[int]) -> dict[int, Versions]:
        rows = await self._database.fetch(_VERSIONS, list(practices))
        return {practice_id: Versions(directory, calendar) for practice_id, directory, calendar in rows}


def _minute(seconds: float) -> float:
    """Calendar rules change at the minute; its first instant counts as a minute of its own, before the rest."""
    minute, rest = divmod(seconds, 60)
    return minute if rest == 0 else minute + 0.5
