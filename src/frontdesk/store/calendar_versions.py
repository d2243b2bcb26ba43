"""Reads the versions of practices from the database, with one query at a time for all who wait."""

import asyncio
from array import array
from collections.abc import Mapping
from typing import NamedTuple

from frontdesk.store.database import Database, PartUnavailable
from frontdesk.store.rows import network_integers

_VERSIONS = "SELECT version, calendars, bookings FROM current_versions($1)"
_VERSIONS_OF_SEVERAL = "SELECT practice, version, calendars, bookings FROM current_versions_of($1)"


class LastBooking(NamedTuple):
    """A change of a provider's calendar that was one new appointment."""

    provider_id: int
    changes: int
    mark_before: int  # of the change before
    mark: int
    start: int
    end: int
    lane: int


class PracticeVersions(NamedTuple):
    directory: int | None  # None: there is no such practice
    calendars: Mapping[int, int]  # changes of each provider's calendar; a provider without any is left out
    bookings: bytes = b""  # the last of each calendar

    def last_booking(self, provider_id: int) -> LastBooking | None:
        """The last change of the provider's calendar, if it was one new appointment."""
        numbers, length = network_integers("q", self.bookings), len(LastBooking._fields)
        providers = numbers[::length]
        if provider_id not in providers:
            return None
        at = providers.index(provider_id) * length
        return LastBooking(*numbers[at : at + length])


class CurrentVersions:
    """A query that is already running never serves a later caller: it might miss a change committed before the call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[int, asyncio.Future[PracticeVersions]]] = []  # for the next query
        self._reader: asyncio.Task[None] | None = None

    async def read(self, practice_id: int) -> PracticeVersions:
        # A future for each caller, so that a cancelled one does not cancel the others.
        result: asyncio.Future[PracticeVersions] = asyncio.get_running_loop().create_future()
        self._waiting.append((practice_id, result))
        if self._reader is None:
            self._reader = asyncio.create_task(self._read_all())
        return await result

    async def _read_all(self) -> None:
        batch: list[tuple[int, asyncio.Future[PracticeVersions]]] = []
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
                            _settle(result, found[practice_id])
                await asyncio.sleep(0)  # lets calls that arrive together share a query
        finally:
            self._reader = None
            for _, result in (*batch, *self._waiting):
                result.cancel()  # has an effect only if this task was cancelled, at shutdown

    async def _query(self, practices: set[int]) -> Mapping[int, PracticeVersions | BaseException]:
        if len(practices) == 1:
            return {practice_id: await self._query_one(practice_id) for practice_id in practices}
        try:
            rows = await self._database.fetch(_VERSIONS_OF_SEVERAL, list(practices))
        except PartUnavailable:  # some practices are elsewhere
            answers = await asyncio.gather(*map(self._query_one, practices), return_exceptions=True)
            return dict(zip(practices, answers, strict=True))
        return {practice_id: _versions(*row) for practice_id, *row in rows}

    async def _query_one(self, practice_id: int) -> PracticeVersions:
        [row] = await self._database.fetch(_VERSIONS, practice_id)
        return _versions(*row)


def _settle(result: asyncio.Future[PracticeVersions], answer: PracticeVersions | BaseException) -> None:
    if isinstance(answer, BaseException):
        result.set_exception(answer)
    else:
        result.set_result(answer)


def _versions(directory: int | None, calendars: bytes | None, bookings: bytes | None) -> PracticeVersions:
    return PracticeVersions(directory, _by_provider(network_integers("q", calendars)), bookings or b"")


def _by_provider(numbers: "array[int]") -> dict[int, int]:
    return dict(zip(numbers[0::2], numbers[1::2], strict=True))
