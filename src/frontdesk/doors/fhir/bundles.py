"""Searches a resource type and builds the Bundle of results, with included resources and the link to the next page."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from frontdesk.domain.errors import FieldError, invalid
from frontdesk.doors.fhir.addresses import Resource, reference_of
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.outcomes import ignored
from frontdesk.doors.fhir.parameters import CURSOR, MAX_COUNT, Inclusion, Pairs, Query, read_query
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage, read_existing
from frontdesk.doors.fhir.versions import versioned

MAX_STEPS = 10  # that a page takes before the rest is left to the next one


class Searches:
    """Searches of the types that are served, at an address."""

    def __init__(self, types: Mapping[str, ResourceType], base: str) -> None:
        self._types = types
        self._base = base
        self._followed = {kind.name: kind.includes for kind in types.values()}

    async def bundle(self, kind: ResourceType, calls: Calls, pairs: Pairs, *, strict: bool) -> Resource:
        query = read_query(kind.name, kind.parameters, self._followed, pairs, self._base, strict=strict)
        if query.sort not in (None, kind.order(query)):
            query = _unsorted(query, strict=strict)
        bound = ["fhir", kind.name, sorted(query.used)]
        given = next((text for name, text in pairs if name == CURSOR and text), None)
        begin = None if given is None else _position(calls, bound, given)
        if query.only_count:
            return self._page(query, await _total(kind, calls, query), [], {"self": None})
        found = await _find(kind, calls, query, begin)
        included = await self._included(calls, found.resources, query.inclusions)
        links = {"self": given}
        if found.last is not None:
            links["next"] = calls.cursors.encode(bound, found.last)
        total = found.total if begin is None else None
        if total is None and begin is None and found.last is None:
            total = len(found.resources)
        return self._page(query, SearchPage(found.resources, None, total), included, links)

    def _page(
        self, query: Query, found: SearchPage, included: Sequence[Resource], cursors: Mapping[str, str | None]
    ) -> Resource:
        """`cursors` are those of the links."""
        personal = {each.parameter.name for each in query.criteria if each.parameter.is_personal}
        used = [pair for pair in query.used if pair[0].partition(":")[0] not in personal]
        links = [
            {"relation": relation, "url": _address(f"{self._base}/{query.kind}", used, cursor)}
            for relation, cursor in cursors.items()
        ]
        entries = [self._entry(versioned(resource), "match") for resource in found.resources]
        entries += [self._entry(versioned(resource), "include") for resource in included]
        if query.ignored:
            entries.append({"resource": ignored(query.ignored), "search": {"mode": "outcome"}})
        bundle: Resource = {"resourceType": "Bundle", "type": "searchset", "link": links}
        if found.total is not None:
            bundle["total"] = found.total
        return bundle | ({"entry": entries} if entries else {})

    def _entry(self, resource: Resource, mode: str) -> Resource:
        return {"fullUrl": f"{self._base}/{reference_of(resource)}", "resource": resource, "search": {"mode": mode}}

    async def _included(
        self, calls: Calls, matches: Sequence[Resource], inclusions: Sequence[Inclusion]
    ) -> list[Resource]:
        """The resources that the matches refer to, and those that included ones refer to where it `iterates`."""
        found: dict[str, Resource | None] = dict.fromkeys(map(reference_of, matches))
        included: list[Resource] = []
        sources, first = list(matches), True
        while sources:
            wanted = [
                reference
                for source in sources
                for inclusion in inclusions
                if source["resourceType"] == inclusion.source and (first or inclusion.iterates)
                for reference in self._references(source, inclusion)
            ]
            sources, first = [], False
            for reference in dict.fromkeys(wanted):
                if reference in found:
                    continue
                kind, _, resource_id = reference.partition("/")
                found[reference] = resource = await read_existing(self._types[kind].read, calls, resource_id)
                if resource is not None:
                    sources.append(resource)
            included += sources
        return included

    def _references(self, source: Resource, inclusion: Inclusion) -> list[str]:
        parameter = self._types[inclusion.source].parameter(inclusion.parameter)
        assert parameter.found is not None
        return [each for each in parameter.found(source) if inclusion.target in (None, each.partition("/")[0])]


def _unsorted(query: Query, *, strict: bool) -> Query:
    """The query without its order, which is not supported."""
    error = FieldError("_sort", "unknown", "_sort is not supported for this search")
    if strict:
        raise invalid([error])
    used = tuple(pair for pair in query.used if pair[0] != "_sort")
    return replace(query, sort=None, used=used, ignored=(*query.ignored, error))


async def _find(kind: ResourceType, calls: Calls, query: Query, begin: Position | None) -> SearchPage:
    """A page of resources that match. It may be short although more follow, because its steps are limited."""
    if query.alternatives("_id") and not kind.is_listed:
        return await _by_id(kind, calls, query, begin)
    found, last, total = list[Resource](), begin, None
    for _ in range(MAX_STEPS):
        step = await kind.search(calls, replace(query, count=min(query.count - len(found), MAX_COUNT)), last)
        found += [resource for resource in step.resources if query.matches(resource)]
        last, total = step.last, step.total
        if last is None or len(found) >= query.count:
            break
    return SearchPage(found, last, total)


async def _by_id(kind: ResourceType, calls: Calls, query: Query, begin: Position | None) -> SearchPage:
    alone = [each.parameter.name for each in query.criteria if each.parameter.found is None]
    if alone:
        raise invalid([FieldError(name, "unknown", f"{name} cannot be combined with _id") for name in alone])
    ids = list(dict.fromkeys(query.alternatives("_id")[0]))
    first = 0 if begin is None else begin[0]
    last = first + query.count
    found = [await read_existing(kind.read, calls, resource_id) for resource_id in ids[first:last]]
    matching = [resource for resource in found if resource is not None and query.matches(resource)]
    return SearchPage(matching, [last] if last < len(ids) else None)


async def _total(kind: ResourceType, calls: Calls, query: Query) -> SearchPage:
    """How many resources match, if one page of any size holds them."""
    found = await _find(kind, calls, replace(query, count=sys.maxsize), None)
    total = len(found.resources) if found.last is None else found.total
    if total is None:
        raise invalid([FieldError("_summary", "range", "too many resources match to be counted")])
    return SearchPage([], None, total)


def _position(calls: Calls, bound: Sequence[object], cursor: str) -> Position:
    found = calls.cursors.decode(bound, cursor)
    if found is None:
        raise invalid([FieldError(CURSOR, "cursor", f"{CURSOR} must come from the next link of this same search")])
    return found


def _address(address: str, pairs: Sequence[tuple[str, str]], cursor: str | None) -> str:
    query = urlencode([*pairs, *([] if cursor is None else [(CURSOR, cursor)])])
    return f"{address}?{query}" if query else address
