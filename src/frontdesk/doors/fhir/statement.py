"""The CapabilityStatement, generated from the table of what is served."""

from collections.abc import Iterable

from frontdesk import __version__
from frontdesk.doors.fhir.addresses import Resource, base_url
from frontdesk.doors.fhir.pending import type_operations
from frontdesk.doors.fhir.resource_types import ResourceType
from frontdesk.doors.fhir.writing.table import OPERATIONS, WRITTEN
from frontdesk.settings import Settings

_CHANGED = "2026-11-16"  # when the table of what is served last changed


def capability_statement(types: Iterable[ResourceType], settings: Settings) -> Resource:
    return {
        "resourceType": "CapabilityStatement",
        "status": "active",
        "date": _CHANGED,
        "kind": "instance",
        "software": {"name": "frontdesk", "version": __version__},
        "implementation": {"description": "The calendar of a medical practice.", "url": base_url(settings)},
        "fhirVersion": "4.0.1",
        "format": ["application/fhir+json", "json"],
        "rest": [{"mode": "server", "security": _security(settings), "resource": [_resource(each) for each in types]}],
    }


def _resource(kind: ResourceType) -> Resource:
    writes, operations = kind.name in WRITTEN, dict(OPERATIONS.get(kind.name, {}))
    if kind.name == "Appointment":
        operations |= {name: each.listed for name, each in type_operations().items()}
    interactions = ["read", "search-type", *(["create", "update", "patch"] if writes else [])]
    described: Resource = {
        "type": kind.name,
        "interaction": [{"code": code} for code in interactions],
        "versioning": "versioned",
        "conditionalRead": "full-support" if kind.has_last_updated else "not-match",
        "searchParam": [{"name": each.name, "type": each.kind} for each in kind.parameters if "." not in each.name],
    }
    if kind.includes:
        described["searchInclude"] = [f"{kind.name}:{name}" for name in kind.includes]
    if writes:
        described |= {"conditionalCreate": True, "updateCreate": False}
    if operations:
        described["operation"] = [
            {"name": name, "definition": each.definition}
            | ({} if each.documentation is None else {"documentation": each.documentation})
            for name, each in operations.items()
        ]
    return described


def _security(settings: Settings) -> Resource:
    oauth = {"system": "http://terminology.hl7.org/CodeSystem/restful-security-service", "code": "OAuth"}
    return {
        "service": [{"coding": [oauth]}],
        "description": f"Bearer tokens of {settings.token_url} (client credentials; SMART backend services).",
        "extension": [
            {
                "url": "http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris",
                "extension": [{"url": "token", "valueUri": settings.token_url}],
            }
        ],
    }
