"""Slot: an open time, computed when it is asked for. Searches find free slots only."""

from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from frontdesk.doors.fhir.addresses import Resource, directory_id, fhir_id, our_id, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import service_type, tokens
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage
from frontdesk.doors.fhir.resources import healthcare_services
from frontdesk.doors.fhir.resources.directory import ID, whole_list
from frontdesk.doors.fhir.resources.locations import LIST_LOCATIONS
from frontdesk.operations import SLOT_WITH_HOLDS, WIDE_SLOT_SEARCH

_MAX_PLACES = 10


async def _read(calls: Calls, resource_id: str) -> Resource:
    found = await calls.run(SLOT_WITH_HOLDS, slotId=our_id("slt", resource_id))
    return _slot(found, "free" if found["available"] else "busy-tentative" if found["held"] else "busy")


async def _search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
    """Searches one service and place after the other. A position is such a search and its cursor."""
    services = await _services(calls, query)
    searches: list[list[Any]] = [[service, *place] for service in services for place in _places(query)]
    search, cursor = after or (searches[0] if searches else None, None)
    if search not in searches:
        return SearchPage([])
    service, provider_id, location_id = search
    first, last = query.days("start", await _zone(calls, location_id))
    if first is not None and last is not None and first > last:
        return SearchPage([])
    visit_type_id, procedure_id = map(int, service.split("-"))
    found = await calls.run(
        WIDE_SLOT_SEARCH,
        providerId=provider_id,
        locationId=location_id,
        visitTypeId=visit_type_id,
        procedureId=procedure_id,
        limit=query.count,
        cursor=cursor,
        **{"from": _iso(first), "to": _iso(last)},
    )
    slots = [_slot(each, "free") for each in found["items"]]
    if "nextCursor" in found:
        return SearchPage(slots, [search, found["nextCursor"]])
    following = searches[searches.index(search) + 1 :]
    return SearchPage(slots, [following[0], None] if following else None)


async def _zone(calls: Calls, location_id: int | None) -> ZoneInfo | None:
    """The time zone of a location, None if it is not known which one it is."""
    locations = {} if location_id is None else {each["id"]: each for each in await whole_list(calls, LIST_LOCATIONS)}
    return ZoneInfo(locations[location_id]["timeZone"]) if location_id in locations else None


async def _services(calls: Calls, query: Query) -> list[str]:
    """The ids of the services that the search asks for; none if it asks for slots that are not free."""
    if not all(each.matches({"status": "free"}) for each in query.criteria if each.parameter.name == "status"):
        return []
    wanted = [each for each in query.criteria if each.parameter.name == "service-type"]
    found = [(each["id"], {"serviceType": each["type"]}) for each in await healthcare_services.services(calls)]
    return [service for service, slot in found if all(each.matches(slot) for each in wanted)]


def _places(query: Query) -> list[tuple[int | None, int | None]]:
    """Providers and locations to search. Where there are many, all are searched at once and filtered afterwards."""
    asked = query.alternatives("schedule")
    if not asked:
        return [(_actor(query, "Practitioner"), _actor(query, "Location"))]
    parts = [value.removeprefix("Schedule/").split("-") for value in asked[0]]
    pairs = [(directory_id(each[0]), directory_id(each[1])) for each in parts if len(each) == 2]
    pairs = [pair for pair in pairs if None not in pair]
    return [(None, None)] if len(pairs) > _MAX_PLACES else [*dict.fromkeys(pairs)]


def _actor(query: Query, kind: str) -> int | None:
    """The provider or the location, if the search names one."""
    named = [values[0].split("/") for values in query.alternatives("schedule.actor") if len(values) == 1]
    return next((directory_id(each[1]) for each in named if each[0] == kind and len(each) == 2), None)


def _actors(slot: Resource) -> list[str]:
    """The provider and the location of a slot's schedule."""
    provider_id, location_id = slot["schedule"]["reference"].removeprefix("Schedule/").split("-")
    return [f"Practitioner/{provider_id}", f"Location/{location_id}"]


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _slot(record: dict[str, Any], status: str) -> Resource:
    return {
        "resourceType": "Slot",
        "id": fhir_id(record["id"]),
        "serviceType": service_type(record),
        "schedule": reference("Schedule", f"{record['providerId']}-{record['locationId']}"),
        "status": status,
        "start": record["start"],
        "end": record["end"],
    }


SLOT = ResourceType(
    name="Slot",
    read_by=SLOT_WITH_HOLDS,
    search_by=WIDE_SLOT_SEARCH,
    read=_read,
    search=_search,
    parameters=(
        ID,
        SearchParameter("schedule", "reference", lambda slot: [slot["schedule"]["reference"]], ("Schedule",)),
        SearchParameter("schedule.actor", "reference", _actors, ("Practitioner", "Location")),
        SearchParameter("start", "date", lambda slot: [slot["start"]]),
        SearchParameter("status", "token", lambda slot: [slot["status"]]),
        SearchParameter("service-type", "token", lambda slot: tokens(slot["serviceType"])),
    ),
    includes=("schedule",),
)
