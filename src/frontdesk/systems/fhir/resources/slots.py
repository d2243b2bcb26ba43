"""Parses Schedule and Slot resources and finds open runs of slots.

An appointment takes a run of adjacent free slots of one schedule that covers the procedure's duration.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.elements import (
    CLAIMS,
    Resource,
    codings,
    identifier_values,
    inside,
    minute,
    reference_of,
    references,
    relative,
    service_references,
)
from frontdesk.systems.fhir.settings import Coding, Service

Claims = Mapping[str, AbstractSet[str]]  # by slot
NO_CLAIMS: Claims = {}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A calendar of one provider at one location, for the named services or, if none are named, for all."""

    reference: str
    provider_id: int
    location_id: int
    codes: frozenset[str]
    services: frozenset[str]
    actors: int = 1
    horizon: tuple[int | None, int | None] = (None, None)  # in minutes since 1970


@dataclass(frozen=True, slots=True)
class Calendars:
    """The schedules whose slots can be booked, and all that say when a provider or a location is busy."""

    offered: Sequence[Schedule]
    provider_schedules: Mapping[str, frozenset[int]]  # provider ids by schedule, whatever its location and services
    location_schedules: Mapping[str, frozenset[int]]  # location ids by schedule of locations alone
    practitioners: Mapping[str, int]  # provider ids by practitioner or role
    roles: Sequence[str]  # of the providers

    def busy_schedules(self, providers: AbstractSet[int], locations: AbstractSet[int]) -> list[str]:
        return [
            *(each for each, ids in self.provider_schedules.items() if ids & providers),
            *(each for each, ids in self.location_schedules.items() if ids & locations),
        ]

    def practitioners_of(self, providers: AbstractSet[int]) -> list[str]:
        return [reference for reference, provider_id in self.practitioners.items() if provider_id in providers]


@dataclass(frozen=True, slots=True)
class Slot:
    reference: str
    schedule: str
    starts: int  # minutes since 1970
    ends: int
    free: bool
    codes: frozenset[str]
    resource: Resource


@dataclass(frozen=True, slots=True)
class Opening:
    """What a booking takes: published slots, or a time that the server proposed."""

    run: tuple[Slot, ...] = ()
    proposal: Resource | None = None


def calendars(found: Iterable[Resource], roles: Iterable[Resource], practice: PracticeMap) -> Calendars:
    """The active schedules of the providers and locations that the practice file names. One of a provider without a
    location belongs to the provider's only location."""
    provider_ids = {reference: number for number, reference in practice.settings.providers.items()}
    place_ids = {reference: number for number, reference in practice.settings.locations.items()}
    by_role = {
        reference_of(role): role for role in roles if provider_ids.keys() & set(references([role.get("practitioner")]))
    }
    offered: list[Schedule] = []
    of_providers: dict[str, frozenset[int]] = {}
    of_locations: dict[str, frozenset[int]] = {}
    for resource in {reference_of(each): each for each in found}.values():
        actors = references(resource.get("actor"))
        if resource.get("active") is False or not actors:
            continue
        held = [by_role[actor] for actor in actors if actor in by_role]
        practitioners = {*actors, *references([role.get("practitioner") for role in held])}
        places = {actor for actor in actors if actor.startswith("Location/")}
        if len(places) == len(actors):
            of_locations[reference_of(resource)] = frozenset(place_ids[each] for each in places if each in place_ids)
            continue
        if not places:
            places = {place for role in held for place in references(role.get("location"))}
        ids = frozenset(provider_ids[each] for each in practitioners if each in provider_ids)
        of_providers[reference_of(resource)] = ids
        for provider in filter(None, map(practice.directory.providers.get, ids)):
            location_ids = {place_ids[place] for place in places if place in place_ids}
            if not places and len(provider.location_ids) == 1:
                location_ids = set(provider.location_ids)
            codes = frozenset(codings(resource.get("serviceType")))
            services = frozenset(
                (*references(resource["actor"], "HealthcareService"), *service_references(resource.get("serviceType")))
            )
            horizon = inside(resource, "planningHorizon")
            offered += [
                Schedule(
                    reference_of(resource),
                    provider.id,
                    place,
                    codes,
                    services,
                    len(actors),
                    (minute(horizon.get("start")), minute(horizon.get("end"))),
                )
                for place in location_ids
            ]
    of_roles = {
        reference: provider_ids[practitioner]
        for reference, role in by_role.items()
        for practitioner in references([role.get("practitioner")])
        if practitioner in provider_ids
    }
    return Calendars(
        sorted(offered, key=lambda each: (each.provider_id, each.location_id, each.reference)),
        of_providers,
        of_locations,
        {**practice.provider_ids, **provider_ids, **of_roles},
        sorted(by_role),
    )


def slot(resource: Resource, held: Claims = NO_CLAIMS) -> Slot | None:
    """Reads a Slot; None if it does not start and end on whole minutes. One in `held` is ours, and free while it has no
    other claim."""
    schedule = relative(resource.get("schedule"))
    starts, ends = minute(resource.get("start")), minute(resource.get("end"))
    if schedule is None or starts is None or ends is None or ends <= starts:
        return None
    codes = frozenset(codings(resource.get("serviceType")))
    free = (resource.get("status") == "free" and not claims(resource)) or is_held(resource, held)
    return Slot(reference_of(resource), schedule, starts, ends, free, codes, resource)


def is_held(resource: Resource, held: Claims) -> bool:
    """Whether the slot is busy only because we hold it, with one of these claims."""
    marks = set(claims(resource))
    return resource.get("status") == "busy" and bool(marks) and marks <= held.get(reference_of(resource), frozenset())


def claims(resource: Resource) -> list[str]:
    return identifier_values(resource, CLAIMS)


def fits(schedule: Schedule, services: Sequence[Service]) -> bool:
    """Whether the schedule offers any of these services."""
    if schedule.services and not schedule.services & {each for each in services if isinstance(each, str)}:
        return False
    return _covers(schedule.codes, services)


def open_runs(
    slots: Iterable[Slot], services: Sequence[Service], duration: int, held: AbstractSet[str] = frozenset()
) -> dict[tuple[str, int], tuple[Slot, ...]]:
    """The slots that an appointment of this duration would take, by schedule and start. `held` slots count as free."""
    by_start: dict[tuple[str, int], Slot] = {}
    for each in sorted(slots, key=lambda each: (each.ends, each.reference)):
        if (each.free or each.reference in held) and _covers(each.codes, services):
            by_start.setdefault((each.schedule, each.starts), each)
    runs = {}
    for (schedule, starts), first in by_start.items():
        run = [first]
        while run[-1].ends < starts + duration:
            following = by_start.get((schedule, run[-1].ends))
            if following is None:
                break
            run.append(following)
        else:
            runs[schedule, starts] = tuple(run)
    return runs


def _covers(codes: AbstractSet[str], services: Sequence[Service]) -> bool:
    tokens = {each.token for each in services if isinstance(each, Coding)}
    return not codes or not tokens or bool(codes & tokens)
