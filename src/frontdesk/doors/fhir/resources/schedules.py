"""Schedule: the calendar of a provider at a location."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, directory_ids, no_such_resource, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage
from frontdesk.doors.fhir.resources.directory import ACTIVE, ID, page_of, whole_list
from frontdesk.doors.fhir.resources.locations import GET_LOCATION, LIST_LOCATIONS
from frontdesk.doors.fhir.resources.practitioners import GET_PROVIDER, LIST_PROVIDERS


async def _read(calls: Calls, resource_id: str) -> Resource:
    provider_id, location_id = directory_ids(resource_id, 2)
    provider = await calls.run(GET_PROVIDER, providerId=provider_id)
    location = await calls.run(GET_LOCATION, locationId=location_id)
    if location_id not in provider["locationIds"]:
        raise no_such_resource()
    return _schedule(provider, location)


async def _search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
    locations = {each["id"]: each for each in await whole_list(calls, LIST_LOCATIONS)}
    schedules = [
        _schedule(provider, locations[location_id])
        for provider in await whole_list(calls, LIST_PROVIDERS)
        for location_id in provider["locationIds"]
        if location_id in locations
    ]
    return page_of(schedules, query, after)


def _schedule(provider: dict[str, Any], location: dict[str, Any]) -> Resource:
    return {
        "resourceType": "Schedule",
        "id": f"{provider['id']}-{location['id']}",
        "active": True,
        "actor": [
            reference("Practitioner", provider["id"], provider["name"]),
            reference("Location", location["id"], location["name"]),
        ],
    }


SCHEDULE = ResourceType(
    name="Schedule",
    read_by=GET_PROVIDER,
    search_by=LIST_PROVIDERS,
    read=_read,
    search=_search,
    is_listed=True,
    parameters=(
        ID,
        ACTIVE,
        SearchParameter(
            "actor",
            "reference",
            lambda schedule: [each["reference"] for each in schedule["actor"]],
            ("Practitioner", "Location"),
        ),
    ),
    includes=("actor",),
)
