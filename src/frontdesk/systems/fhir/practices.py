"""The FHIR servers of all practices, each with its own connections, limits and circuit breaker.

The adapter is imported on first use: most installations have no FHIR server and start faster without it.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from frontdesk.cache import BoundedCache
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.directories import DirectoryCache, StoredDirectory
from frontdesk.systems.fhir.writing.reconciler import Reconciler
from frontdesk.systems.findings import Condition, ConnectionState
from frontdesk.systems.port import SchedulingSystem, SystemUnavailable

if TYPE_CHECKING:
    from frontdesk.systems.fhir.resources.appointments import PracticeMap
    from frontdesk.systems.fhir.upstream import Upstream

_ADAPTER = "frontdesk.systems.fhir.system"
_MAX_UPSTREAMS = 1000


class FhirSystems:
    """Makes the scheduling system of a call. `reconciler` runs in the background."""

    def __init__(
        self,
        database: Database,
        directories: DirectoryCache,
        *,
        clock: Callable[[], datetime],
        on_settled: Callable[[int], None],
    ) -> None:
        self._database = database
        self._directories = directories
        self._upstreams: BoundedCache[int, Upstream] = BoundedCache(_MAX_UPSTREAMS)
        self._clock = clock
        self._retired: set[asyncio.Task[None]] = set()
        self._notes: set[asyncio.Task[None]] = set()
        self.requests: Counter[str] = Counter()  # as `RequestSender` counts them
        self.reconciler = Reconciler(database, self._find, clock, on_settled)

    async def system(self, practice_id: int, stored: StoredDirectory) -> SchedulingSystem:
        """The system for one call."""
        upstream, practice = await self._connect(practice_id, stored)
        from frontdesk.systems.fhir.system import FhirSystem

        return FhirSystem(upstream, stored.version, practice, self.reconciler.schedule).parts

    def condition(self, practice_id: int) -> Condition | None:
        """The connection to the practice's FHIR server; None if this process has not called it yet."""
        known = self._upstreams.get(practice_id)
        if known is None:
            return None
        sender = known.client.sender
        return Condition(sender.breaker.state, sender.breaker.retry_in, sender.answered_at, known.software)

    @property
    def connection_states(self) -> Counter[ConnectionState]:
        """The number of FHIR servers in each state, as this process sees them."""
        return Counter(upstream.client.sender.breaker.state for upstream in self._upstreams.values())

    async def _find(self, practice_id: int) -> "tuple[Upstream, PracticeMap] | None":
        try:
            stored = await self._directories.newest(practice_id)
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error
        is_fhir = stored.directory.practice.scheduling_system["kind"] == "fhir"
        return await self._connect(practice_id, stored) if is_fhir else None

    async def _connect(self, practice_id: int, stored: StoredDirectory) -> "tuple[Upstream, PracticeMap]":
        if _ADAPTER not in sys.modules:  # in a thread, so that the import does not block calls of other practices
            await asyncio.to_thread(import_module, _ADAPTER)
        upstream = self._upstream(practice_id, stored.directory.practice.scheduling_system)
        await upstream.ready()
        return upstream, await upstream.map(stored.version, stored.directory)

    def _upstream(self, practice_id: int, config: Mapping[str, object]) -> "Upstream":
        from frontdesk.systems.fhir.upstream import Upstream

        known = self._upstreams.get(practice_id)
        if known is not None and known.config == config:
            return known
        recovered = partial(self.reconciler.recovered, practice_id)
        made = Upstream(
            self._database,
            practice_id,
            config,
            os.environ,
            on_recovery=recovered,
            on_misconfiguration=partial(self._note_misconfiguration, practice_id),
            requests=self.requests,
        )
        evicted = self._upstreams.put(practice_id, made)
        for upstream in evicted if known is None else (known, *evicted):
            task = asyncio.create_task(_close_later(upstream))
            self._retired.add(task)
            task.add_done_callback(self._retired.discard)
        return made

    def _note_misconfiguration(self, practice_id: int, request: str, reason: str | None) -> None:
        """Shows operators on every node what they have to correct."""
        task = asyncio.create_task(_note(self._database, practice_id, request, reason, self._clock()))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def close(self) -> None:
        for task in self._retired:
            task.cancel()
        await asyncio.gather(*self._retired, *self._notes, return_exceptions=True)
        for upstream in self._upstreams.values():
            await upstream.close()
        self._upstreams.clear()


async def _close_later(upstream: "Upstream") -> None:
    """Closes the upstream after calls that began before the settings changed."""
    try:
        await asyncio.sleep(2 * upstream.settings.timeout_seconds)
    finally:
        await upstream.close()


async def _note(database: Database, practice_id: int, request: str, reason: str | None, now: datetime) -> None:
    from frontdesk.systems.fhir.records import Records

    # Told again while it lasts.
    with suppress(DatabaseUnavailable, OutcomeUnknown):
        await Records(database, practice_id).note_misconfiguration(request, reason, now)
