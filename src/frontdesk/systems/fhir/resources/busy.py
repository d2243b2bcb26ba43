"""Finds out from Slots and Appointments when providers and locations are busy."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from frontdesk.domain.availability import merged
from frontdesk.systems.fhir.resources.appointments import attending, time_taken
from frontdesk.systems.fhir.resources.elements import Resource, instant, reference_of, relative, whole_minutes
from frontdesk.systems.fhir.resources.slots import Calendars, Claims, is_held

_NOT_BUSY = ("free", "entered-in-error")

Span = tuple[int, int]  # minutes since 1970


class BusyTimes:
    """Busy times of providers and of locations."""

    def __init__(self, providers: Mapping[int, Iterable[Span]], locations: Mapping[int, Iterable[Span]]) -> None:
        self._providers = {number: merged(spans) for number, spans in providers.items()}
        self._locations = {number: merged(spans) for number, spans in locations.items()}

    def overlap(self, provider_id: int, location_id: int, starts: int, ends: int) -> bool:
        """Whether the provider or the location is busy at some time of [starts, ends)."""
        return _overlap(self._providers.get(provider_id, ()), starts, ends) or _overlap(
            self._locations.get(location_id, ()), starts, ends
        )


def busy_times(
    slots: Iterable[Resource],
    appointments: Iterable[Resource],
    calendars: Calendars,
    *,
    ignored: AbstractSet[str] = frozenset(),
    held: Claims,
) -> BusyTimes:
    """Slots that are not free, and live appointments. `ignored`: records that do not count; `held`: claims of ours."""
    providers: dict[int, list[Span]] = defaultdict(list)
    locations: dict[int, list[Span]] = defaultdict(list)
    for slot in slots:
        span, schedule = _span(slot), relative(slot.get("schedule")) or ""
        if span is None or reference_of(slot) in ignored or is_held(slot, held):
            continue
        for number in calendars.provider_schedules.get(schedule, ()):
            providers[number].append(span)
        for number in calendars.location_schedules.get(schedule, ()):
            locations[number].append(span)
    for appointment in appointments:
        span = time_taken(appointment)
        if span is None or reference_of(appointment) in ignored:
            continue
        for actor in attending(appointment):
            if actor in calendars.practitioners:
                providers[calendars.practitioners[actor]].append(span)
    return BusyTimes(providers, locations)


def _span(slot: Resource) -> Span | None:
    starts, ends = instant(slot.get("start")), instant(slot.get("end"))
    if slot.get("status") in _NOT_BUSY or starts is None or ends is None:
        return None
    return whole_minutes(starts, ends)


def _overlap(spans: Sequence[Span], starts: int, ends: int) -> bool:
    at = bisect_left(spans, ends, key=lambda span: span[0]) - 1  # the last that begins before the end
    return at >= 0 and spans[at][1] > starts
