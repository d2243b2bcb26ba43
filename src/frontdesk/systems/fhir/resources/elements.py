"""Reads and builds elements that FHIR R4 resources share: references, codings, identifiers, instants."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from frontdesk.domain.local_time import minute_of
from frontdesk.systems.fhir.settings import Coding

Resource = dict[str, Any]

INTENTS = "urn:frontdesk:intent"  # identifies the intent of a write, by which its outcome is found
CLAIMS = "urn:frontdesk:claim"  # marks a slot that a write holds
_SERVICE = "https://medplum.com/fhir/service-type-reference"  # names the HealthcareService of a serviceType

# R4 allows neither more than 64 characters nor underscores. Some servers have such ids, and a record that was left out
# would not take its time.
_ID = re.compile(r"[A-Za-z0-9._-]{1,255}")
_REFERENCE = re.compile(rf"(?:^|/)([A-Z][A-Za-z]+/{_ID.pattern})(?:/_history/{_ID.pattern})?\Z")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
_VERSION = re.compile(r"[\x21\x23-\x7e]{1,100}")
_KEPT_INTENTS = 10


def is_record(resource: object, kind: str) -> bool:
    """Whether this is a resource of that type with a valid id."""
    if not isinstance(resource, dict) or resource.get("resourceType") != kind:
        return False
    return isinstance(resource.get("id"), str) and _ID.fullmatch(resource["id"]) is not None


def reference_of(resource: Resource) -> str:
    return f"{resource['resourceType']}/{resource['id']}"


def version_of(resource: Resource) -> str | None:
    version = inside(resource, "meta").get("versionId")
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else None


def inside(resource: Resource, key: str) -> Resource:
    """The element of that name, or an empty one."""
    found = resource.get(key)
    return found if isinstance(found, dict) else {}


def relative(reference: object) -> str | None:
    """The relative form of a Reference, such as `Patient/1`; None if it refers to no record."""
    text = reference.get("reference") if isinstance(reference, Mapping) else None
    found = _REFERENCE.search(text) if isinstance(text, str) else None
    return found[1] if found else None


def references(values: object, kind: str | None = None) -> list[str]:
    """The records that a list of References refers to, optionally of one type only."""
    found = [relative(value) for value in listed(values)]
    return [text for text in found if text is not None and (kind is None or text.startswith(f"{kind}/"))]


def listed(values: object) -> list[Any]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def instant(text: object) -> datetime | None:
    """Reads an instant; None for a date without a time, or anything else."""
    if not isinstance(text, str) or not _INSTANT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def minute(text: object) -> int | None:
    """Minutes since 1970; None for an instant that is not on a whole minute."""
    moment = instant(text)
    if moment is None or moment.second or moment.microsecond:
        return None
    return minute_of(moment)


def whole_minutes(starts: datetime, ends: datetime) -> tuple[int, int]:
    """A time in minutes since 1970, with the minutes that it begins and ends in."""
    return minute_of(starts), -(-int(ends.timestamp()) // 60)


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def codings(concepts: object) -> set[str]:
    """The system|code tokens of a list of CodeableConcepts."""
    return {
        f"{coding.get('system', '')}|{coding['code']}"
        for concept in listed(concepts)
        for coding in listed(concept.get("coding"))
        if isinstance(coding.get("code"), str)
    }


def service_references(concepts: object) -> list[str]:
    """The HealthcareServices that a list of CodeableConcepts names."""
    extensions = [each for concept in listed(concepts) for each in listed(concept.get("extension"))]
    return references(
        [each.get("valueReference") for each in extensions if each.get("url") == _SERVICE], "HealthcareService"
    )


def coding_resource(coding: Coding) -> Resource:
    display = {"display": coding.display} if coding.display else {}
    return {"system": coding.system, "code": coding.code, **display}


def has_identifier(resource: Resource, system: str, value: str) -> bool:
    return value in identifier_values(resource, system)


def identifier_values(resource: Resource, system: str) -> list[str]:
    return [
        str(identifier.get("value"))
        for identifier in listed(resource.get("identifier"))
        if identifier.get("system") == system
    ]


def with_identifier(resource: Resource, system: str, value: str) -> list[Resource]:
    """The record's identifiers with one more of ours; only the newest of ours are kept."""
    others = without_identifiers(resource, system)
    ours = [*identifier_values(resource, system), value][-_KEPT_INTENTS:]
    return [*others, *({"system": system, "value": each} for each in dict.fromkeys(ours))]


def without_identifiers(resource: Resource, system: str, value: str | None = None) -> list[Resource]:
    """The record's identifiers without ours, or without one of ours."""
    return [
        identifier
        for identifier in listed(resource.get("identifier"))
        if identifier.get("system") != system or (value is not None and identifier.get("value") != value)
    ]


def without_empty(resource: Resource) -> Resource:
    """The resource without empty values, which FHIR does not allow."""
    return {key: value for key, value in resource.items() if value not in (None, [], {}, "")}
