"""Adds to the resources of the directory when they last changed: the time of the last import of the practice file."""

from dataclasses import replace

from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query
from frontdesk.doors.fhir.resource_types import LAST_UPDATED, Position, ResourceType, SearchPage
from frontdesk.operations import PRACTICE_IMPORTED


def with_last_updated(kind: ResourceType) -> ResourceType:
    """The resource type with the time of its last change, and the search for it."""

    async def read(calls: Calls, resource_id: str) -> Resource:
        return await kind.read(calls, resource_id) | await _meta(calls)

    async def search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
        meta = await _meta(calls)
        asked = [each for each in query.criteria if each.parameter is LAST_UPDATED]
        if not all(each.matches(meta) for each in asked):
            return SearchPage([], total=0)
        others = tuple(each for each in query.criteria if each.parameter is not LAST_UPDATED)
        found = await kind.search(calls, replace(query, criteria=others), after)
        return found._replace(resources=[resource | meta for resource in found.resources])

    parameters = (*kind.parameters, LAST_UPDATED)
    return replace(kind, read=read, search=search, parameters=parameters, has_last_updated=True)


async def _meta(calls: Calls) -> Resource:
    return {"meta": {"lastUpdated": (await calls.run(PRACTICE_IMPORTED))["importedAt"]}}
