"""Practitioner: a provider."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, directory_ids
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage
from frontdesk.doors.fhir.resources.directory import ACTIVE, ID, page_of, whole_list
from frontdesk.operations import BY_NAME

GET_PROVIDER, LIST_PROVIDERS = BY_NAME["get_provider"], BY_NAME["list_providers"]


async def provider(calls: Calls, resource_id: str) -> dict[str, object]:
    [number] = directory_ids(resource_id, 1)
    return await calls.run(GET_PROVIDER, providerId=number)


async def _read(calls: Calls, resource_id: str) -> Resource:
    return _practitioner(await provider(calls, resource_id))


async def _search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
    found = await whole_list(calls, LIST_PROVIDERS, name=query.text("name"))
    return page_of([_practitioner(each) for each in found], query, after)


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


PRACTITIONER = ResourceType(
    name="Practitioner",
    read_by=GET_PROVIDER,
    search_by=LIST_PROVIDERS,
    read=_read,
    search=_search,
    is_listed=True,
    parameters=(
        ID,
        ACTIVE,
        SearchParameter("name", "string"),
    ),
)
