"""Resources that are made from the practice's directory, which is read as a whole.

They last changed when the practice file was last imported.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import LAST_UPDATED, Position, ReadResource, ResourceType, SearchPage
from frontdesk.operations import PRACTICE_IMPORTED, Operation

_PAGE_SIZE = 200

ID = SearchParameter("_id", "token", lambda resource: [resource["id"]])
ACTIVE = SearchParameter("active", "token", lambda resource: [str(resource["active"]).lower()])


def directory_type(
    name: str,
    read_by: Operation,
    search_by: Operation,
    read: ReadResource,
    read_all: Callable[[Calls, Query], Awaitable[list[Resource]]],
    *parameters: SearchParameter,
    includes: tuple[str, ...] = (),
) -> ResourceType:
    """A resource type with the time of the last change. `read_all` may leave out what a query does not match."""

    async def read_one(calls: Calls, resource_id: str) -> Resource:
        return await read(calls, resource_id) | await _meta(calls)

    async def search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
        meta = await _meta(calls)
        asked = [each for each in query.criteria if each.parameter is LAST_UPDATED]
        if not all(each.matches(meta) for each in asked):
            return SearchPage([], total=0)
        others = tuple(each for each in query.criteria if each.parameter is not LAST_UPDATED)
        found = _page_of(await read_all(calls, query), replace(query, criteria=others), after)
        return found._replace(resources=[resource | meta for resource in found.resources])

    return ResourceType(
        name=name,
        read_by=read_by,
        search_by=search_by,
        read=read_one,
        search=search,
        parameters=(ID, *parameters, LAST_UPDATED),
        includes=includes,
        is_listed=True,
        has_last_updated=True,
    )


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


def _page_of(resources: list[Resource], query: Query, after: Position | None) -> SearchPage:
    """The resources that match, in order of their ids."""
    matching = sorted((_key(resource), resource) for resource in resources if query.matches(resource))
    rest = [pair for pair in matching if after is None or pair[0] > list(after)]
    last = rest[query.count - 1][0] if len(rest) > query.count else None
    return SearchPage([resource for _, resource in rest[: query.count]], last, len(matching))


def _key(resource: Resource) -> list[int]:
    return [int(part) for part in resource["id"].split("-")]


async def _meta(calls: Calls) -> Resource:
    return {"meta": {"lastUpdated": (await calls.run(PRACTICE_IMPORTED))["importedAt"]}}
