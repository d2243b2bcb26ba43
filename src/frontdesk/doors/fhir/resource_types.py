"""What the FHIR door says about a resource type: one definition for reading, searching and the CapabilityStatement."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from frontdesk.domain.errors import Problem
from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.operations import Operation

Position = Sequence[Any]
ReadResource = Callable[[Calls, str], Awaitable[Resource]]

LAST_UPDATED = SearchParameter("_lastUpdated", "date", lambda resource: [resource["meta"]["lastUpdated"]])


class SearchPage(NamedTuple):
    """Some of the resources of a search. `last` is the position to continue from if there may be more; `total` is
    their number if it is known."""

    resources: list[Resource]
    last: Position | None = None
    total: int | None = None


class ListedOperation(NamedTuple):
    """An operation as the CapabilityStatement lists it."""

    definition: str
    documentation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    name: str
    read_by: Operation
    search_by: Operation
    read: ReadResource
    search: Callable[[Calls, Query, Position | None], Awaitable[SearchPage]]
    """Returns at most `query.count` resources after a position. Those that the query does not match may be among them:
    they are filtered out afterwards."""
    parameters: tuple[SearchParameter, ...]
    includes: tuple[str, ...] = ()  # reference parameters that `_include` follows
    is_listed: bool = False  # whether a search reads all resources at once
    has_last_updated: bool = False
    order: Callable[[Query], str | None] = lambda _query: None
    """The parameter whose order the results of a query have, which `_sort` may name."""

    def parameter(self, name: str) -> SearchParameter:
        return next(each for each in self.parameters if each.name == name)


async def read_existing(read: ReadResource, calls: Calls, resource_id: str) -> Resource | None:
    """The resource, None if there is none, or none that the caller may know."""
    try:
        return await read(calls, resource_id)
    except Problem as problem:
        if problem.code == "not_found":
            return None
        raise
