"""Practitioner, a provider, and PractitionerRole, the same at the locations where they work."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, directory_ids, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import ACCEPTS_NEW_PATIENTS
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resources.directory import ACTIVE, directory_type, whole_list
from frontdesk.operations import BY_NAME

GET_PROVIDER, LIST_PROVIDERS = BY_NAME["get_provider"], BY_NAME["list_providers"]


async def _provider(calls: Calls, resource_id: str) -> dict[str, object]:
    [number] = directory_ids(resource_id, 1)
    return await calls.run(GET_PROVIDER, providerId=number)


async def _read_practitioner(calls: Calls, resource_id: str) -> Resource:
    return _practitioner(await _provider(calls, resource_id))


async def _practitioners(calls: Calls, query: Query) -> list[Resource]:
    return [_practitioner(each) for each in await whole_list(calls, LIST_PROVIDERS, name=query.text("name"))]


def _practitioner(record: dict[str, Any]) -> Resource:
    return {
        "resourceType": "Practitioner",
        "id": str(record["id"]),
        "active": True,
        "name": [
            {"use": "official", "text": record["name"]},
            *({"use": "nickname", "text": alias} for alias in record["aliases"]),
        ],
    }


async def _read_role(calls: Calls, resource_id: str) -> Resource:
    return _role(await _provider(calls, resource_id))


async def _roles(calls: Calls, _query: Query) -> list[Resource]:
    return [_role(each) for each in await whole_list(calls, LIST_PROVIDERS)]


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


def _locations(role: Resource) -> list[str]:
    return [each["reference"] for each in role.get("location", ())]


PRACTITIONER = directory_type(
    "Practitioner",
    GET_PROVIDER,
    LIST_PROVIDERS,
    _read_practitioner,
    _practitioners,
    ACTIVE,
    SearchParameter("name", "string"),
)
PRACTITIONER_ROLE = directory_type(
    "PractitionerRole",
    GET_PROVIDER,
    LIST_PROVIDERS,
    _read_role,
    _roles,
    ACTIVE,
    SearchParameter("practitioner", "reference", lambda role: [role["practitioner"]["reference"]], ("Practitioner",)),
    SearchParameter("location", "reference", _locations, ("Location",)),
    includes=("practitioner", "location"),
)
