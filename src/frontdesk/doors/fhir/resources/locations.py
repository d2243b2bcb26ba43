"""Location: where the practice sees patients."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, directory_ids
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import TIME_ZONE
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resources.directory import directory_type, whole_list
from frontdesk.operations import BY_NAME

GET_LOCATION, LIST_LOCATIONS = BY_NAME["get_location"], BY_NAME["list_locations"]


async def _read(calls: Calls, resource_id: str) -> Resource:
    [number] = directory_ids(resource_id, 1)
    return _location(await calls.run(GET_LOCATION, locationId=number))


async def _matching(calls: Calls, query: Query) -> list[Resource]:
    return [_location(each) for each in await whole_list(calls, LIST_LOCATIONS, name=query.text("name"))]


def _location(record: dict[str, Any]) -> Resource:
    location: Resource = {
        "resourceType": "Location",
        "id": str(record["id"]),
        "extension": [{"url": TIME_ZONE, "valueCode": record["timeZone"]}],
        "status": "active",
        "name": record["name"],
        "mode": "instance",
    }
    if record["aliases"]:
        location["alias"] = record["aliases"]
    if "phone" in record:
        location["telecom"] = [{"system": "phone", "value": record["phone"]}]
    if "address" in record:
        address = record["address"]
        location["address"] = {
            "line": [address[key] for key in ("line1", "line2") if key in address],
            **{key: address[key] for key in ("city", "state", "postalCode", "country")},
        }
    return location


LOCATION = directory_type(
    "Location",
    GET_LOCATION,
    LIST_LOCATIONS,
    _read,
    _matching,
    SearchParameter("name", "string"),
    SearchParameter("status", "token", lambda location: [location["status"]]),
)
