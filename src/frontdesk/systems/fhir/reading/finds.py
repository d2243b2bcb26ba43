"""Asks a server that proposes times by `$find`.

Medplum proposes by Schedules and one HealthcareService; IHE ITI Scheduling and Argonaut by Practitioner, Location and
the code of the service.
"""

from collections.abc import Iterator, Sequence

from frontdesk.domain.local_time import instant_at
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.slots import Schedule
from frontdesk.systems.fhir.settings import Coding, Service, Shape
from frontdesk.systems.fhir.transport.queries import BUFFER_ROOM, FindQuery, Parameters

MAX_PROPOSALS = 1000  # of one request
_RANGE_MINUTES = 31 * 1440  # Medplum refuses longer ones
_PAGE_SIZE = 200
_BUFFER_MINUTES = int(BUFFER_ROOM.total_seconds()) // 60


def subject(
    shape: Shape, practice: PracticeMap, pair: tuple[int, int], schedule: str, services: Sequence[Service]
) -> Parameters:
    """The parameters of `$find` for a provider, a location and a service."""
    if shape == "medplum":
        service = next(each for each in services if isinstance(each, str))
        return [
            ("schedule", schedule),
            ("service-type-reference", service),
            ("_count", str(MAX_PROPOSALS)),
        ]
    settings = practice.settings
    mapped = [*settings.procedures.values(), *settings.visit_types.values()]
    codes = [each.token for each in reversed(services) if isinstance(each, Coding) and each in mapped]
    return [
        ("practitioner", settings.providers[pair[0]]),
        ("location-reference", settings.locations[pair[1]]),
        *(("visit-type", code) for code in codes[:1]),
    ]


def can_propose(schedule: Schedule, services: Sequence[Service]) -> bool:
    """Whether Medplum proposes times of the schedule: it must have one actor and name the service."""
    return schedule.actors == 1 and bool(schedule.services & {each for each in services if isinstance(each, str)})


def find_queries(
    names: Parameters, horizon: tuple[int | None, int | None], first: int, last: int, *, is_frontdesk: bool
) -> Iterator[FindQuery]:
    """Asks for [first, last) with room for buffers, within the planning horizon and in ranges that servers accept.
    Another frontdesk needs no room, and answers more at once if it is asked to."""
    if is_frontdesk:
        yield FindQuery([*names, ("_count", str(_PAGE_SIZE))], instant_at(first), instant_at(last))
        return
    starts, ends = first - _BUFFER_MINUTES, last + _BUFFER_MINUTES
    starts, ends = max(starts, horizon[0] or starts), min(ends, horizon[1] or ends)
    for begins in range(starts, ends, _RANGE_MINUTES - 2 * _BUFFER_MINUTES):  # times at the seam are found twice
        yield FindQuery(names, instant_at(begins), instant_at(min(begins + _RANGE_MINUTES, ends)))
