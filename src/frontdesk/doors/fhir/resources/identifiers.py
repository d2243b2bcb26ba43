"""Adds the identifiers that the caller gave to resources, and the search for them."""

from dataclasses import replace

from frontdesk.domain.errors import FieldError, invalid
from frontdesk.doors.fhir.addresses import Resource, fhir_id, our_id
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage, read_existing
from frontdesk.engine.external_identifiers import Identifier

MAX_IDENTIFIERS = 10  # of a search: each one is a look-up that the rate limit does not count


def with_identifiers(kind: ResourceType, prefix: str) -> ResourceType:
    """The resource type with identifiers; `prefix` begins our ids of its resources."""

    async def read(calls: Calls, resource_id: str) -> Resource:
        [resource] = await _add_identifiers(calls, [await kind.read(calls, resource_id)], prefix)
        return resource

    async def search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
        asked = query.alternatives("identifier")
        if not asked:
            found = await kind.search(calls, query, after)
            return found._replace(resources=await _add_identifiers(calls, found.resources, prefix))
        if len(asked[0]) > MAX_IDENTIFIERS:
            message = f"identifier may have at most {MAX_IDENTIFIERS} values in a search"
            raise invalid([FieldError("identifier", "range", message)])
        known = [await _find(calls, kind.name, token) for token in asked[0]]
        found_ids = [fhir_id(each) for each in dict.fromkeys(known) if each is not None]
        existing = [await read_existing(read, calls, each) for each in found_ids]
        return SearchPage([each for each in existing if each is not None])

    parameter = SearchParameter("identifier", "token", _tokens, is_personal=True)
    return replace(kind, read=read, search=search, parameters=(*kind.parameters, parameter))


async def _find(calls: Calls, kind: str, token: str) -> str | None:
    system, separator, value = token.rpartition("|")
    if not separator:
        return None
    return await calls.identifiers.find(calls.caller, kind, Identifier(system, value))


async def _add_identifiers(calls: Calls, resources: list[Resource], prefix: str) -> list[Resource]:
    subjects = [our_id(prefix, resource["id"]) for resource in resources]
    given = await calls.identifiers.of(calls.caller, subjects)
    return [
        resource | {"identifier": [*resource.get("identifier", ()), *(each._asdict() for each in given[subject])]}
        if subject in given
        else resource
        for resource, subject in zip(resources, subjects, strict=True)
    ]


def _tokens(resource: Resource) -> list[str]:
    return [f"{each['system']}|{each['value']}" for each in resource.get("identifier", ())]
