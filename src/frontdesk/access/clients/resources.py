"""The resources that an access token may be for (RFC 8707): the doors, each by its path below our address."""

from collections.abc import Collection, Iterable

API_RESOURCE = "/api"
MCP_RESOURCE = "/mcp"
FHIR_RESOURCE = "/fhir/R4"
RESOURCES = (API_RESOURCE, MCP_RESOURCE, FHIR_RESOURCE)


def published_resources(*, fhir_server: bool) -> tuple[str, ...]:
    return tuple(resource for resource in RESOURCES if fhir_server or resource != FHIR_RESOURCE)


def resources_of(requested: Iterable[str], public_url: str, known: Collection[str]) -> frozenset[str] | None:
    """The doors that a token is requested for. Empty: every door, if none is named, or our address as a whole.

    None if a resource is not one of ours. Some clients name the address that they call, which may have a toolset.
    """
    paths = {f"{public_url}{path}": path for path in ("", *known)}
    named = [paths.get(address.partition("?")[0].removesuffix("/")) for address in requested]
    if None in named:
        return None
    return frozenset() if "" in named else frozenset(path for path in named if path is not None)
