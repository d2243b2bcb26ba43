"""One practice's FHIR server: its client, capabilities, mapping of ids and schedules, cached between calls.

Availability is never cached.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from typing import Any

from frontdesk.domain.directory import Directory
from frontdesk.store.database import Database
from frontdesk.systems.fhir.capabilities import UNKNOWN, ServerCapabilities, read_statement, unknown
from frontdesk.systems.fhir.records import Records
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.elements import Resource, reference_of
from frontdesk.systems.fhir.resources.slots import Calendars, calendars
from frontdesk.systems.fhir.settings import FhirSettings, Service, fhir_settings, token
from frontdesk.systems.fhir.transport.client import FhirClient
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.transport.queries import CombinedQuery, searches
from frontdesk.systems.fhir.transport.request_sender import RequestSender
from frontdesk.systems.port import Capability, SystemUnavailable

STATEMENT_SECONDS = 600.0
RETRY_STATEMENT_SECONDS = 5.0
FIRST_STATEMENT_SECONDS = 3.0
SCHEDULE_SECONDS = 60.0
_ATTEMPTS = 3  # to read a window while calendars are added or changed
_log = logging.getLogger(__name__)


class Upstream:
    """`config` are the stored settings; when they change, a new instance replaces this one."""

    def __init__(
        self,
        database: Database,
        practice_id: int,
        config: Mapping[str, object],
        environment: Mapping[str, str],
        *,
        on_recovery: Callable[[], None] = lambda: None,
        on_misconfiguration: Callable[[str, str | None], None] = lambda _name, _reason: None,
        requests: Counter[str] | None = None,
    ) -> None:
        self.config = config
        self.settings: FhirSettings = fhir_settings(config)
        sender = RequestSender(
            self.settings,
            environment,
            on_recovery=on_recovery,
            on_misconfiguration=on_misconfiguration,
            requests=requests,
        )
        self.client = FhirClient(self.settings.base_url, sender)
        self.records = Records(database, practice_id)
        configured = self.settings.scheduling_operations
        self._server: ServerCapabilities | None = None if configured is None else unknown(configured)
        self._unread = SystemUnavailable()  # why the statement could not be read
        self._retry_at = -math.inf
        self._asked = False
        self._asking: asyncio.Task[None] | None = None
        self._map: tuple[int, PracticeMap] | None = None
        self._calendars: tuple[PracticeMap, float, Calendars] | None = None
        self._reading = asyncio.Lock()

    def deadline(self, limit: float = math.inf) -> Deadline:
        return Deadline(min(self.settings.timeout_seconds, limit))

    @property
    def server(self) -> ServerCapabilities:
        """What the server can do. Raises SystemUnavailable until it has said so: a guess could hide all open times."""
        if self._server is None:
            raise copy(self._unread)
        return self._server

    @server.setter
    def server(self, statement: ServerCapabilities) -> None:
        self._server = statement

    @property
    def software(self) -> str | None:
        return None if self._server is None else self._server.software

    @property
    def capabilities(self) -> frozenset[Capability]:
        """A server that has not said what it can do is taken to do everything."""
        return (self._server or UNKNOWN).capabilities

    async def ready(self) -> None:
        """Keeps the capabilities up to date. Only calls before the first answer wait for it, and not for long."""
        if self._asking is None and time.monotonic() >= self._retry_at:
            self._asking = asyncio.create_task(self._ask())
        if not self._asked and self._asking is not None:
            await asyncio.wait({self._asking}, timeout=FIRST_STATEMENT_SECONDS)
            self._asked = True

    async def _ask(self) -> None:
        again = RETRY_STATEMENT_SECONDS
        try:
            limit = FIRST_STATEMENT_SECONDS if self._server is not None else math.inf
            statement = await self.client.read(self.deadline(limit), "metadata")
            if statement is not None and statement["resourceType"] == "CapabilityStatement":
                self.server = read_statement(statement, self.settings.scheduling_operations)
                self.client.batches.offer(self.server.batches)
                again = STATEMENT_SECONDS
            else:
                self._server = self._server or UNKNOWN
        except SystemUnavailable as error:
            self._unread = error
            _log.warning("the CapabilityStatement of a scheduling system could not be read")
        finally:
            self._retry_at, self._asking = time.monotonic() + again, None

    async def map(self, version: int, directory: Directory) -> PracticeMap:
        """The mapping between our ids and the server's references, for one version of the directory."""
        if self._map is None or self._map[0] != version:
            settings = self.settings
            given: dict[str, Mapping[int, Service]] = {
                "location": settings.locations,
                "provider": settings.providers,
                "visitType": settings.visit_types,
                "procedure": settings.procedures,
            }
            noted = await self.records.directory(
                [(kind, token(service), number) for kind, by_id in given.items() for number, service in by_id.items()]
            )
            locations = {reference: number for kind, reference, number in noted if kind == "location"}
            providers = {reference: number for kind, reference, number in noted if kind == "provider"}
            self._map = (version, PracticeMap(settings, directory, locations, providers))
        return self._map[1]

    async def calendars(self, deadline: Deadline, practice: PracticeMap, *, live: bool = False) -> Calendars:
        """The schedules of all providers and locations, cached for a minute, which only searches may rely on. `live`:
        read now."""
        async with self._reading:
            kept = self._calendars
            if live or kept is None or kept[0] is not practice or time.monotonic() >= kept[1]:
                found = await self.read_calendars(deadline, practice)
                kept = self._calendars = (practice, time.monotonic() + SCHEDULE_SECONDS, found)
        return kept[2]

    async def read_live(
        self,
        deadline: Deadline,
        practice: PracticeMap,
        queries: Callable[[], Awaitable[Sequence[CombinedQuery[object]]]],
    ) -> list[Any]:
        """The results of queries that are made from the calendars as they are now. The calendars are read together with
        them, and the queries made again if any was added or changed."""
        if self.server.is_frontdesk:
            return await self.client.read_all(deadline, *await queries())
        for _ in range(_ATTEMPTS):
            known = await self.calendars(deadline, practice)
            asked = await queries()
            found, *results = await self.client.read_all(deadline, self._calendars_again(practice, known), *asked)
            if found == known:
                return results
            await self.calendars(deadline, practice, live=True)
        raise SystemUnavailable

    async def read_calendars(self, deadline: Deadline, practice: PracticeMap) -> Calendars:
        practitioners = list(self.settings.providers.values())
        roles = []
        if self.server.can("PractitionerRole search-type"):
            roles = await self.client.search_any(deadline, "PractitionerRole", "practitioner", practitioners)
        found = []
        if self.server.can("Schedule search-type"):
            actors = self._actors([reference_of(role) for role in roles])
            found = await self.client.search_any(deadline, "Schedule", "actor", actors)
        return calendars(found, roles, practice)

    def _calendars_again(self, practice: PracticeMap, known: Calendars) -> CombinedQuery[Calendars]:
        """Reads roles and schedules at once, which finds those of the roles that are `known`: a further role makes a
        difference by itself."""
        roles, schedules = [], []
        if self.server.can("PractitionerRole search-type"):
            roles = searches("PractitionerRole", "practitioner", list(self.settings.providers.values()))
        if self.server.can("Schedule search-type"):
            schedules = searches("Schedule", "actor", self._actors(known.roles))

        def result(found: Sequence[list[Resource]]) -> Calendars:
            read = [[each for page in pages for each in page] for pages in (found[: len(roles)], found[len(roles) :])]
            return calendars(read[1], read[0], practice)

        return CombinedQuery([*roles, *schedules], result)

    def _actors(self, roles: Sequence[str]) -> list[str]:
        return [*self.settings.providers.values(), *roles, *self.settings.locations.values()]

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self.client.close()
