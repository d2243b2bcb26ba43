"""Schedule: the calendar of a provider at a location."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, directory_ids, no_such_resource, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resources.directory import ACTIVE, directory_type, whole_list
from frontdesk.doors.fhir.resources.locations import GET_LOCATION, LIST_LOCATIONS
from frontdesk.doors.fhir.resources.practitioners import GET_PROVIDER, LIST_PROVIDERS


async def _read(calls: Calls, resource_id: str) -> Resource:
    provider_id, location_id = directory_ids(resource_id, 2)
    provider = await calls.run(GET_PROVIDER, providerId=provider_id)
    location = await calls.run(GET_LOCATION, locationId=location_id)
    if location_id not in provider["locationIds"]:
        raise no_such_resource()
    return _schedule(provider, location)


async def _all(calls: Calls, _query: Query) -> list[Resource]:
    locations = {each["id"]: each for each in await whole_list(calls, LIST_LOCATIONS)}
    return [
        _schedule(provider, locations[location_id])
        for provider in await whole_list(calls, LIST_PROVIDERS)
        for location_id in provider["locationIds"]
        if location_id in locations
    ]


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


def _actors(schedule: Resource) -> list[str]:
    return [each["reference"] for each in schedule["actor"]]


SCHEDULE = directory_type(
    "Schedule",
    GET_PROVIDER,
    LIST_PROVIDERS,
    _read,
    _all,
    ACTIVE,
    SearchParameter("actor", "reference", _actors, ("Practitioner", "Location")),
    includes=("actor",),
)
