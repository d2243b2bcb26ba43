"""Warm answers: what was answered before, given again where it is certain that the same would be answered now.

An answer is kept under the practice and the question as it came, with everything it rests on: the versions of directory
and calendar, the keys of ids and cursors, and, where the calendar matters, the minute. It is given again only if all of
that is the same. Owns the comparison and the bound on memory. Refuses to look at tokens: whoever asks has been
identified and counted. Protected data and refusals are never kept.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.errors import Problem
from frontdesk.operations import Operation
from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.systems.port import Versions

MOST_BYTES = 24 * 1024 * 1024
LARGEST = 512 * 1024
_COPIES = 3  # of an answer's bytes, with what doors make of it
_OVERHEAD = 1024
_VERSIONS = "SELECT practice, version, calendar FROM unnest($1::bigint[]) AS practice, calendar_state(practice)"

Question = tuple[str, bytes]  # what was asked, as it came: a path and its query, or a tool and its arguments


@dataclass(slots=True, eq=False)
class Answer:
    """`content` is JSON. `prepared` holds what doors have made of it, for as long as the answer is kept."""

    status: int
    content: bytes
    prepared: dict[Any, Any] = field(default_factory=dict)

    @property
    def body(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = orjson.loads(self.content)
        return found


class Stamp(NamedTuple):
    """The moment of an answer, as far as answers depend on it."""

    keys: Any
    minute: float


class Kept(NamedTuple):
    """An answer and what it rests on."""

    answer: Answer
    operation: Operation
    versions: Versions
    stamp: Stamp
    size: int


class AnswerCache:
    def __init__(
        self,
        versions: "CurrentVersions",
        directory_version: Callable[[int], int],
        keys: Callable[[float], Any],
        seconds: Callable[[], float] = time.time,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`directory_version` is that of the directory which an answer would be made from at this moment, `keys` the
        state of the keys at one."""
        self._versions = versions
        self._directory_version = directory_version
        self._keys = keys
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[int, str, bytes], Kept] = OrderedDict()  # used longest ago first

    def at_hand(self, caller: Caller, asked: str, how: bytes) -> Kept | None:
        """The answer that this caller would get, as far as can be told without waiting; None where it has to be made.
        One that rests on the calendar is to be given again only if it is `still_true`."""
        key = (caller.practice_id, asked, how)
        kept = self._kept.get(key)
        if kept is None:
            return None
        _, operation, versions, stamp, _ = kept
        seconds = self._seconds()
        if operation.scope not in caller.scopes or stamp.keys != self._keys(seconds):
            return None
        if versions.calendar is None:
            if not caller.directory_version <= versions.directory == self._directory_version(caller.practice_id):
                return None
        elif stamp.minute != _minute(seconds):
            return None
        self._kept.move_to_end(key)
        return kept

    async def still_true(self, caller: Caller, kept: Kept) -> bool:
        """Whether nothing it rests on has changed in the database."""
        try:
            return await self._versions.now(caller.practice_id) == kept.versions
        except DatabaseUnavailable as error:
            raise Problem("upstream_unavailable", retry_after=2) from error

    def stamp(self, seconds: float) -> Stamp:
        """To be taken before an answer is made."""
        return Stamp(self._keys(seconds), _minute(seconds))

    def keep(
        self, caller: Caller, question: Question, operation: Operation, answer: Answer, versions: Versions, stamp: Stamp
    ) -> None:
        if (operation.depends_on == "calendar") != (versions.calendar is not None):
            return
        size = _COPIES * len(answer.content) + len(question[0]) + len(question[1]) + _OVERHEAD
        if size > LARGEST:
            return
        key = (caller.practice_id, *question)
        replaced = self._kept.pop(key, None)
        self._bytes += size - (0 if replaced is None else replaced.size)
        self._kept[key] = Kept(answer, operation, versions, stamp, size)
        while self._bytes > self._most_bytes:
            self._bytes -= self._kept.popitem(last=False)[1].size


class CurrentVersions:
    """Asks the database for the versions of practices: one question at a time, for everybody who waits.

    What it answers was read after it was asked, so a change that was committed before is always in it. Those who come
    while a question is under way share the next one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[int, asyncio.Future[Versions]]] = []  # for the next question
        self._asking: asyncio.Task[None] | None = None

    async def now(self, practice_id: int) -> Versions:
        # One future each: whoever gives up waiting does not take the answer from the others.
        mine: asyncio.Future[Versions] = asyncio.get_running_loop().create_future()
        self._waiting.append((practice_id, mine))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return await mine

    async def _ask(self) -> None:
        """Until nobody waits."""
        sharing: list[tuple[int, asyncio.Future[Versions]]] = []
        try:
            while self._waiting:
                sharing, self._waiting = self._waiting, []
                try:
                    found = await self._versions({practice_id for practice_id, _ in sharing})
                except Exception as error:
                    for _, each in sharing:
                        if not each.done():
                            each.set_exception(error)
                else:
                    for practice_id, each in sharing:
                        if not each.done():
                            each.set_result(found[practice_id])
                await asyncio.sleep(0)  # those who arrive together are asked for together
        finally:
            self._asking = None
            for _, each in (*sharing, *self._waiting):
                each.cancel()  # only where this was cancelled itself: the service ends

    async def _versions(self, practices: set[int]) -> dict[int, Versions]:
        rows = await self._database.fetch(_VERSIONS, list(practices))
        return {practice_id: Versions(directory, calendar) for practice_id, directory, calendar in rows}


def _minute(seconds: float) -> float:
    """Within a minute the calendar's rules give the same, but for its very first moment, which is one of its own."""
    minute, rest = divmod(seconds, 60)
    return minute if rest == 0 else minute + 0.5
