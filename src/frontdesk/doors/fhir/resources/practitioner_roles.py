"""PractitionerRole: a provider at the locations where they work."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import ACCEPTS_NEW_PATIENTS
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage
from frontdesk.doors.fhir.resources.directory import ACTIVE, ID, page_of, whole_list
from frontdesk.doors.fhir.resources.practitioners import GET_PROVIDER, LIST_PROVIDERS, provider


async def _read(calls: Calls, resource_id: str) -> Resource:
    return _role(await provider(calls, resource_id))


async def _search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
    found = await whole_list(calls, LIST_PROVIDERS)
    return page_of([_role(each) for each in found], query, after)


def _role(record: dict[str, Any]) -> Resource:
    role = {
        "resourceType": "PractitionerRole",
        "id": str(record["id"]),
        "extension": [{"url": ACCEPTS_NEW_PATIENTS, "valueBoolean": record["acceptsNewPatients"]}],
        "active": True,
        "practitioner": reference("Practitioner", record["id"], record["name"]),
    }
    if "specialty" in record:
        role["specialty"] = [{"text": record["specialty"]}]
    if record["locationIds"]:
        role["location"] = [reference("Location", each) for each in record["locationIds"]]
    return role


PRACTITIONER_ROLE = ResourceType(
    name="PractitionerRole",
    read_by=GET_PROVIDER,
    search_by=LIST_PROVIDERS,
    read=_read,
    search=_search,
    is_listed=True,
    parameters=(
        ID,
        ACTIVE,
        SearchParameter(
            "practitioner", "reference", lambda role: [role["practitioner"]["reference"]], ("Practitioner",)
        ),
        SearchParameter(
            "location",
            "reference",
            lambda role: [each["reference"] for each in role.get("location", ())],
            ("Location",),
        ),
    ),
    includes=("practitioner", "location"),
)
