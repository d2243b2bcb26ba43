"""Finds open slots on a FHIR server, for search, live read and booking alike.

Chooses the schedules and the time window to ask for; `resources/slots.py` decides which starts are open.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from itertools import groupby

from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Procedure, VisitType
from frontdesk.domain.local_time import DAY_MINUTES
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.elements import stamp
from frontdesk.systems.fhir.resources.slots import Schedule, Slot, fits, open_runs, slot
from frontdesk.systems.fhir.settings import Service
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.offers import offered_pairs
from frontdesk.systems.port import FoundSlots, OpenSlots, SlotQuery

_FIRST_LOOK_DAYS = 7  # first window of an open-ended search; the next ones double

Position = tuple[int, int, int]  # start, provider, location


class SlotFinder:
    def __init__(self, upstream: Upstream, version: int, practice: PracticeMap, deadline: Deadline) -> None:
        self._upstream = upstream
        self._version = version
        self._practice = practice
        self._deadline = deadline

    async def find(self, query: SlotQuery, now: datetime, most: int, after: Position | None) -> FoundSlots:
        directory = self._practice.directory
        visit_type = directory.visit_types.get(query.visit_type_id)
        procedure = None if visit_type is None else visit_type.procedure(query.procedure_id)
        if visit_type is None or procedure is None:
            return FoundSlots(query.visit_type_id, None, ())
        pairs = list(offered_pairs(directory, visit_type, procedure, query))
        bounds = {
            place.id: OpenTimes(directory.practice, provider, place).reach(query.first, query.last, now.timestamp())
            for provider, place in pairs
        }
        wanted = {(provider.id, place.id) for provider, place in pairs}
        services = self._practice.services(visit_type.id, procedure.id)
        windows = list(self._windows(bounds.values(), query, after))
        calendars = await self._calendars(wanted, services, live=not windows) if wanted else []
        found: list[Position] = []
        for first, last in windows if calendars else ():
            runs = await self._runs(calendars, visit_type, procedure, first, last + procedure.duration_minutes)
            starts = {
                (start, calendar.provider_id, calendar.location_id)
                for calendar in calendars
                for schedule, start in runs
                if schedule == calendar.reference and first <= start < last
            }
            found += sorted(
                position
                for position in starts
                if bounds[position[2]][0] <= position[0] < bounds[position[2]][1] and (not after or position > after)
            )
            if len(found) >= most:
                break
        return FoundSlots(query.visit_type_id, procedure, self._grouped(found[:most]))

    async def run(
        self, ref: SlotRef, visit_type: VisitType, procedure: Procedure, now: datetime, held: AbstractSet[str]
    ) -> tuple[Slot, ...] | None:
        """The slots that a booking would take, or None if they are not available."""
        directory = self._practice.directory
        provider, place = directory.providers[ref.provider_id], directory.locations[ref.location_id]
        earliest, latest = OpenTimes(directory.practice, provider, place).reach(None, None, now.timestamp())
        if procedure.duration_minutes != ref.duration_minutes or not earliest <= ref.start < latest:
            return None
        services = self._practice.services(visit_type.id, procedure.id)
        calendars = await self._calendars({(ref.provider_id, ref.location_id)}, services)
        until = ref.start + ref.duration_minutes
        runs = await self._runs(calendars, visit_type, procedure, ref.start, until, held=held, only_free=not held)
        return next((run for (_, start), run in sorted(runs.items()) if start == ref.start), None)

    async def _calendars(
        self, wanted: AbstractSet[tuple[int, int]], services: Sequence[Service], *, live: bool = False
    ) -> list[Schedule]:
        """The schedules of these providers and locations. Whether none fits, or no slot will be read (`live`), only a
        live answer says: a server that is gone has no empty calendar."""
        for again in (live, True):
            known = await self._upstream.schedules(self._deadline, self._version, self._practice, live=again)
            found = [each for each in known if (each.provider_id, each.location_id) in wanted and fits(each, services)]
            if found or live:
                return found
        return []

    async def _runs(
        self,
        calendars: Sequence[Schedule],
        visit_type: VisitType,
        procedure: Procedure,
        first: int,
        last: int,
        *,
        held: AbstractSet[str] = frozenset(),
        only_free: bool = True,
    ) -> dict[tuple[str, int], tuple[Slot, ...]]:
        """Runs of slots that start at `first` or later, read up to `last`."""
        references = list(dict.fromkeys(calendar.reference for calendar in calendars))
        wanted = [("start", f"ge{_stamp(first)}"), ("start", f"lt{_stamp(last)}")]
        if only_free:
            wanted.append(("status", "free"))
        found = await self._upstream.client.search_any(self._deadline, "Slot", "schedule", references, wanted)
        slots = [known for resource in found if (known := slot(resource)) is not None]
        services = self._practice.services(visit_type.id, procedure.id)
        return open_runs(slots, services, procedure.duration_minutes, held)

    def _windows(
        self, bounds: Iterable[tuple[int, int]], query: SlotQuery, after: Position | None
    ) -> Iterator[tuple[int, int]]:
        """The windows to read: a closed date range at once, an open end in growing steps."""
        spans = [(first, last) for first, last in bounds if first < last]
        if not spans:
            return
        first, end = min(start for start, _ in spans), max(last for _, last in spans)
        if after is not None:
            first = max(first, after[0])
        step = end - first if query.last is not None else _FIRST_LOOK_DAYS * DAY_MINUTES
        while first < end:
            yield first, min(first + step, end)
            first, step = first + step, step * 2

    def _grouped(self, found: Sequence[Position]) -> list[OpenSlots]:
        zones = self._practice.directory.locations
        return [
            OpenSlots(provider, place, zones[place].time_zone, [start for start, _, _ in group])
            for (provider, place), group in groupby(found, key=lambda position: position[1:])
        ]


def _stamp(minutes: int) -> str:
    return stamp(datetime.fromtimestamp(minutes * 60, tz=UTC))
