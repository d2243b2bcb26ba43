"""Pages of resources that are made from the practice's directory, which is read as a whole."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, SearchPage
from frontdesk.operations import Operation

_PAGE_SIZE = 200

ID = SearchParameter("_id", "token", lambda resource: [resource["id"]])
ACTIVE = SearchParameter("active", "token", lambda resource: [str(resource["active"]).lower()])


async def whole_list(calls: Calls, operation: Operation, **filters: object) -> list[dict[str, Any]]:
    """All items of a directory list."""
    items: list[dict[str, object]] = []
    cursor = None
    while True:
        page = await calls.run(operation, limit=_PAGE_SIZE, cursor=cursor, **filters)
        items += page["items"]
        cursor = page.get("nextCursor")
        if cursor is None:
            return items


def page_of(resources: list[Resource], query: Query, after: Position | None) -> SearchPage:
    """The resources that match, in order of their ids."""
    matching = sorted((_key(resource), resource) for resource in resources if query.matches(resource))
    rest = [pair for pair in matching if after is None or pair[0] > list(after)]
    last = rest[query.count - 1][0] if len(rest) > query.count else None
    return SearchPage([resource for _, resource in rest[: query.count]], last, len(matching))


def _key(resource: Resource) -> list[int]:
    return [int(part) for part in resource["id"].split("-")]
