"""Finds open slots on a FHIR server, for search, live read and booking alike.

A time is open if free slots cover it, or the server's `$find` proposes it, and neither the provider nor the location is
busy then: slots of any other status and live appointments are read together with the free slots.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Procedure, VisitType
from frontdesk.domain.local_time import DAY_MINUTES, instant_at, minute_of
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.systems.fhir.reading.finds import can_propose, find_queries, subject
from frontdesk.systems.fhir.reading.lookups import appointments_at
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.busy import BusyTimes, busy_times
from frontdesk.systems.fhir.resources.elements import Resource, reference_of, references, stamp
from frontdesk.systems.fhir.resources.proposals import ProposedAppointment, proposals
from frontdesk.systems.fhir.resources.slots import NO_CLAIMS, Claims, Opening, Schedule, fits, open_runs, slot
from frontdesk.systems.fhir.settings import Service
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.transport.queries import CombinedQuery, FindQuery, Query, searches
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.offers import by_place, offered_pairs
from frontdesk.systems.port import FoundSlots, SlotPosition, SlotQuery

_FIRST_WINDOW_DAYS = 7  # first window of an open-ended search; the next ones double
_MAX_SLOT_LENGTH = timedelta(days=1)
# How far back a slot may have begun that still takes the time, where the server does not search by a slot's end. Most
# busy slots are appointments: reading a year of them for each search would take a server seconds.
_MAX_BUSY_LENGTH = timedelta(days=7)
_MAX_ABSENCE_LENGTH = timedelta(days=400)

Pair = tuple[int, int]  # provider, location


@dataclass(frozen=True, slots=True)
class Window:
    """What was read of a stretch of time."""

    slots: Sequence[Resource]
    busy: BusyTimes
    proposals: Sequence[tuple[Pair, ProposedAppointment]] = ()


class SlotFinder:
    def __init__(self, upstream: Upstream, practice: PracticeMap, deadline: Deadline) -> None:
        self._upstream = upstream
        self._practice = practice
        self._deadline = deadline

    async def find(self, query: SlotQuery, now: datetime, limit: int, after: SlotPosition | None) -> FoundSlots:
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
        windows = list(self._windows(bounds.values(), query, after))
        places = await self._places(wanted, visit_type, procedure, live=not windows) if wanted else {}
        held = await self._upstream.records.abandoned_claims() if places else NO_CLAIMS
        found: list[SlotPosition] = []
        for first, last in windows if places else ():
            ends = last + procedure.duration_minutes
            finds = await self._finds(places, visit_type, procedure, first, ends)
            combined = await self._window_query(set(places), first, ends, held=held, finds=finds)
            [window] = await self._upstream.client.read_all(self._deadline, combined)
            openings = self._openings(window, visit_type, procedure, places, held)
            found += sorted(
                position
                for position in openings
                if first <= position[0] < last
                and bounds[position[2]][0] <= position[0] < bounds[position[2]][1]
                and (not after or position > after)
            )
            if len(found) >= limit:
                break
        return FoundSlots(query.visit_type_id, procedure, by_place(found[:limit], directory))

    async def proposed_minutes(self, query: SlotQuery, now: datetime) -> set[int]:
        """How long the times are that the server proposes in the next week."""
        directory = self._practice.directory
        visit_type = directory.visit_types[query.visit_type_id]
        procedure = visit_type.procedure(query.procedure_id)
        assert procedure is not None
        pairs = offered_pairs(directory, visit_type, procedure, query)
        places = await self._places({(provider.id, place.id) for provider, place in pairs}, visit_type, procedure)
        first = minute_of(now)
        finds = await self._finds(places, visit_type, procedure, first, first + _FIRST_WINDOW_DAYS * DAY_MINUTES)
        pages = await self._upstream.client.query_all(self._deadline, [find for _, find in finds])
        return {each.ends - each.starts for page in pages for each in proposals(page)}

    async def opening(
        self,
        ref: SlotRef,
        visit_type: VisitType,
        procedure: Procedure,
        now: datetime,
        moved: Resource | None = None,
        patient: str | None = None,
    ) -> CombinedQuery[Opening | None]:
        """Reads what a booking would take, None if it is not available. The time of an appointment that is to be
        `moved` counts as free, unless the server proposes the times."""
        directory = self._practice.directory
        provider, place = directory.providers[ref.provider_id], directory.locations[ref.location_id]
        earliest, latest = OpenTimes(directory.practice, provider, place).reach(None, None, now.timestamp())
        if procedure.duration_minutes != ref.duration_minutes or not earliest <= ref.start < latest:
            return CombinedQuery((), lambda _: None)
        wanted, ends = {(ref.provider_id, ref.location_id)}, ref.start + ref.duration_minutes
        places = await self._places(wanted, visit_type, procedure)
        held = await self._upstream.records.abandoned_claims()
        own = frozenset() if moved is None else records_of(moved)
        finds = await self._finds(places, visit_type, procedure, ref.start, ends)
        query = await self._window_query(wanted, ref.start, ends, ignored=own, held=held, finds=finds, patient=patient)

        def result(found: Sequence[list[Resource]]) -> Opening | None:
            openings = self._openings(query.result(found), visit_type, procedure, places, held, own)
            return openings.get((ref.start, ref.provider_id, ref.location_id))

        return CombinedQuery(query.queries, result)

    async def window(
        self,
        provider_id: int,
        location_id: int,
        starts: datetime,
        ends: datetime,
        ignored: AbstractSet[str],
        patient: str | None = None,
    ) -> CombinedQuery[Window]:
        """Reads when a provider and a location are busy around a time."""
        first, last = minute_of(starts), minute_of(ends)
        pairs = {(provider_id, location_id)}
        return await self._window_query(pairs, first, last, ignored=ignored, held=NO_CLAIMS, patient=patient)

    async def practitioners_of(self, provider_id: int) -> list[str]:
        """The practitioner and roles whose appointments are searched together with a patient's, if the server can."""
        if not self._upstream.server.searches_exactly:
            return []
        return (await self._upstream.calendars(self._deadline, self._practice)).practitioners_of({provider_id})

    async def _places(
        self,
        wanted: AbstractSet[Pair],
        visit_type: VisitType,
        procedure: Procedure,
        *,
        live: bool = False,
    ) -> dict[Pair, set[str]]:
        """The schedules that offer the procedure, by provider and location. Whether none fits, or no slot will be read
        (`live`), only a live answer says: a server that is gone has no empty calendar."""
        services = self._practice.services(visit_type.id, procedure.id)
        if self._upstream.server.proposes(services) and self._upstream.server.shape != "medplum":
            mapped = self._practice.settings
            return {pair: set() for pair in wanted if pair[0] in mapped.providers and pair[1] in mapped.locations}
        for again in (live, True):
            known = await self._upstream.calendars(self._deadline, self._practice, live=again)
            places: dict[Pair, set[str]] = {}
            for each in known.offered:
                if (each.provider_id, each.location_id) in wanted and self._fits(each, services):
                    places.setdefault((each.provider_id, each.location_id), set()).add(each.reference)
            if places or live:
                return places
        return {}

    def _fits(self, schedule: Schedule, services: Sequence[Service]) -> bool:
        if self._upstream.server.proposes(services):
            return can_propose(schedule, services)
        return fits(schedule, services)

    async def _finds(
        self,
        places: Mapping[Pair, AbstractSet[str]],
        visit_type: VisitType,
        procedure: Procedure,
        first: int,
        last: int,
    ) -> list[tuple[Pair, FindQuery]]:
        """What to ask a server that proposes times in [first, last), nothing if it publishes slots."""
        services, server = self._practice.services(visit_type.id, procedure.id), self._upstream.server
        if server.shape is None or not server.proposes(services):
            return []
        known = await self._upstream.calendars(self._deadline, self._practice)
        asked = []
        for pair, schedules in places.items():
            subjects = [
                (subject(server.shape, self._practice, pair, each.reference, services), each.horizon)
                for each in known.offered
                if each.reference in schedules and (each.provider_id, each.location_id) == pair
            ] or [(subject(server.shape, self._practice, pair, "", services), (None, None))]
            asked += [
                (pair, find)
                for names, horizon in subjects
                for find in find_queries(names, horizon, first, last, is_frontdesk=server.is_frontdesk)
            ]
        return asked

    async def _window_query(
        self,
        pairs: AbstractSet[Pair],
        first: int,
        last: int,
        *,
        ignored: AbstractSet[str] = frozenset(),
        held: Claims,
        finds: Sequence[tuple[Pair, FindQuery]] = (),
        patient: str | None = None,
    ) -> CombinedQuery[Window]:
        """Reads slots and appointments of these providers and locations that lie in [first, last) or reach into it.
        `finds` say when the schedules that they ask about are busy; another frontdesk has subtracted everything."""
        known = await self._upstream.calendars(self._deadline, self._practice)
        providers, locations = ({pair[at] for pair in pairs} for at in (0, 1))
        asked = {value for _, find in finds for name, value in find.subject if name == "schedule"}
        schedules = [each for each in known.busy_schedules(providers, locations) if each not in asked]
        starts, ends = (instant_at(each) for each in (first, last))
        slots: list[Query] = []
        server = self._upstream.server
        if server.can("Slot search-type") and not server.is_frontdesk:
            spans = [_between("start", starts - _MAX_SLOT_LENGTH, ends), *_earlier_slots(starts)]
            if server.finds_slots_by_end:
                spans = [[("start", f"lt{stamp(ends)}"), ("end", f"gt{stamp(starts)}")]]
            slots += [query for span in spans for query in searches("Slot", "schedule", schedules, span)]
        appointments: list[Query] = []
        if server.can("Appointment search-type") and not server.is_frontdesk:
            people = [*known.practitioners_of(providers), *([patient] if patient else [])]
            appointments += searches("Appointment", "actor", people, appointments_at(server, starts, ends))

        def result(found: Sequence[list[Resource]]) -> Window:
            read = iter(found)
            of_slots, of_appointments = _joined(islice(read, len(slots))), _joined(islice(read, len(appointments)))
            proposed = [(pair, each) for (pair, _), page in zip(finds, read, strict=True) for each in proposals(page)]
            busy = busy_times(of_slots, of_appointments, known, ignored=ignored, held=held)
            return Window(of_slots, busy, proposed)

        return CombinedQuery([*slots, *appointments, *(find for _, find in finds)], result)

    def _openings(
        self,
        window: Window,
        visit_type: VisitType,
        procedure: Procedure,
        places: Mapping[Pair, AbstractSet[str]],
        held: Claims,
        own: AbstractSet[str] = frozenset(),
    ) -> dict[SlotPosition, Opening]:
        """What is open, by position."""
        minutes, services = procedure.duration_minutes, self._practice.services(visit_type.id, procedure.id)
        found: dict[SlotPosition, Opening] = {}
        if self._upstream.server.proposes(services):
            for pair, proposal in window.proposals:
                ends = proposal.starts + minutes
                if proposal.ends == ends and not window.busy.overlap(*pair, proposal.starts, ends):
                    found.setdefault((proposal.starts, *pair), Opening(proposal=proposal.resource))
            return found
        slots = [known for resource in window.slots if (known := slot(resource, held)) is not None]
        runs = sorted(open_runs(slots, services, minutes, own).items())
        for (provider_id, location_id), schedules in places.items():
            for (schedule, start), run in runs:
                if schedule in schedules and not window.busy.overlap(provider_id, location_id, start, start + minutes):
                    found.setdefault((start, provider_id, location_id), Opening(run))
        return found

    def _windows(
        self, bounds: Iterable[tuple[int, int]], query: SlotQuery, after: SlotPosition | None
    ) -> Iterator[tuple[int, int]]:
        """The windows to read: a closed date range at once, an open end in growing steps."""
        spans = [(first, last) for first, last in bounds if first < last]
        if not spans:
            return
        first, end = min(start for start, _ in spans), max(last for _, last in spans)
        if after is not None:
            first = max(first, after[0])
        step = end - first if query.last is not None else _FIRST_WINDOW_DAYS * DAY_MINUTES
        while first < end:
            yield first, min(first + step, end)
            first, step = first + step, step * 2


def records_of(appointment: Resource) -> frozenset[str]:
    """The appointment and its slots."""
    return frozenset((reference_of(appointment), *references(appointment.get("slot"), "Slot")))


def _between(name: str, first: datetime, last: datetime) -> list[tuple[str, str]]:
    return [(name, f"ge{stamp(first)}"), (name, f"lt{stamp(last)}")]


def _earlier_slots(starts: datetime) -> Iterator[list[tuple[str, str]]]:
    """Of slots that may reach into a time from before the day in front of it."""
    for status, longest in (("busy", _MAX_BUSY_LENGTH), ("busy-unavailable,busy-tentative", _MAX_ABSENCE_LENGTH)):
        yield [("status", status), *_between("start", starts - longest, starts - _MAX_SLOT_LENGTH)]


def _joined(found: Iterable[list[Resource]]) -> list[Resource]:
    return [resource for each in found for resource in each]
