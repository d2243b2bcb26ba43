"""Validates `schedulingSystem: {kind: fhir, ...}` in a practice file."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError
from pydantic_core import ErrorDetails

from frontdesk.domain.directory import Directory
from frontdesk.practice_file.faults import Finding, Steps
from frontdesk.practice_file.fields import broken, rule, within
from frontdesk.practice_file.model import Part

PLACE: Steps = ("practice", "schedulingSystem")

_ID = re.compile(r"[1-9][0-9]{0,9}")
_VARIABLE = r"(?!FRONTDESK_)[A-Z][A-Z0-9_]{0,99}"
_CODE = r"[^\s|]+(?: [^\s|]+)*"
_SYSTEM = r"[A-Za-z][A-Za-z0-9+.-]*:[^\s|]+"
_PRINTABLE = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_RECORD = r"/[A-Za-z0-9.-]{1,64}"
_NOUNS = {"locations": "location", "providers": "provider", "visitTypes": "visit type", "procedures": "procedure"}


def _form(pattern: str, message: str, most: int = 200) -> AfterValidator:
    form = re.compile(pattern)
    return rule(lambda value: len(value) <= most and form.fullmatch(value), message)


def _address(value: str) -> str:
    """https, or http to a loopback address: patient data must not travel unencrypted."""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise broken("must be an address like https://ehr.example.com/fhir") from None
    if parts.scheme not in ("https", "http") or not host or not _PRINTABLE.fullmatch(value):
        raise broken("must be an address like https://ehr.example.com/fhir")
    if parts.username is not None or parts.query or parts.fragment:
        raise broken("must not contain a user name, a query or a fragment")
    if parts.scheme == "http" and not _is_loopback(host):
        raise broken("must begin with https://")
    return value


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Key = Annotated[str, _form(_ID.pattern, "must be the id of a record of this file")]
Address = Annotated[str, AfterValidator(_address)]
Variable = Annotated[
    str, _form(_VARIABLE, "must be the name of an environment variable, in capitals, not beginning with FRONTDESK_")
]
Text = Annotated[str, _form(_PRINTABLE.pattern, "must be printable ASCII text", 1000)]
LocationReference = Annotated[str, _form("Location" + _RECORD, "must be a reference like Location/123")]
PractitionerReference = Annotated[str, _form("Practitioner" + _RECORD, "must be a reference like Practitioner/123")]
ServiceReference = Annotated[
    str, _form("HealthcareService" + _RECORD, "must be a coding, or a reference like HealthcareService/123")
]


class CodingPart(Part):
    system: Annotated[str, _form(_SYSTEM, "must be an absolute URI without blanks")]
    code: Annotated[str, _form(_CODE, "must be a code without line breaks, | or outer blanks")]
    display: Annotated[str, _form(r"[^\x00-\x1f\x7f]+", "must be text on one line")] | None = None


class NoAuthPart(Part):
    kind: Literal["none"]


class BearerPart(Part):
    kind: Literal["bearer"]
    token_env: Variable


class ClientCredentialsPart(Part):
    kind: Literal["clientCredentials"]
    token_url: Address
    client_id: Text
    client_secret_env: Variable
    scope: Text | None = None


class SmartBackendPart(Part):
    kind: Literal["smartBackend"]
    token_url: Address
    client_id: Text
    private_key_file: Annotated[str, _form(r"/[^\x00-\x1f\x7f]+", "must be an absolute path", 1000)]
    key_id: Text | None = None
    scope: Text


_AUTH_PARTS: tuple[type[Part], ...] = (NoAuthPart, BearerPart, ClientCredentialsPart, SmartBackendPart)
_AUTH_KINDS = {part.model_fields["kind"].annotation.__args__[0]: part for part in _AUTH_PARTS}  # type: ignore[union-attr]

AuthPart = Annotated[NoAuthPart | BearerPart | ClientCredentialsPart | SmartBackendPart, Field(discriminator="kind")]
ServicePart = Annotated[
    Annotated[ServiceReference, Tag("reference")] | Annotated[CodingPart, Tag("coding")],
    Discriminator(lambda value: "reference" if isinstance(value, str) else "coding"),
]


class FhirPart(Part):
    kind: Literal["fhir"]
    base_url: Address
    auth: AuthPart | None = None
    locations: dict[Key, LocationReference] | None = None
    providers: dict[Key, PractitionerReference] | None = None
    visit_types: dict[Key, ServicePart] | None = None
    procedures: dict[Key, ServicePart] | None = None
    attendance: CodingPart | None = None
    timeout_seconds: Annotated[int, within(1, 60)] = 10
    max_concurrent: Annotated[int, within(1, 64)] = 8
    scheduling_operations: Literal["medplum", "ihe", "argonaut", "none"] | None = None


def errors(system: Mapping[str, Any]) -> Iterator[tuple[Steps, ErrorDetails]]:
    """Validation errors of the settings, each with its path in the document."""
    try:
        FhirPart.model_validate(system)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            yield (*PLACE, *_place(details["loc"])), details


def _place(loc: Steps) -> Steps:
    """The path without the union tags that pydantic adds."""
    steps = tuple(step for step in loc if step != "[key]")
    if steps[0] == "auth":
        return steps[:1] + steps[2:]
    return steps[:2] + steps[3:] if steps[0] in ("visitTypes", "procedures") else steps


def part_at(system: Mapping[str, Any], steps: Steps) -> type[Part]:
    """The model that contains an unknown key."""
    inside = steps[len(PLACE) :]
    if len(inside) <= 1:
        return FhirPart
    return _AUTH_KINDS[system["auth"]["kind"]] if inside[0] == "auth" else CodingPart


def references(system: Mapping[str, Any], listed: Mapping[str, set[int]], known: Directory | None) -> Iterator[Finding]:
    """Faults in references between the settings, the ids that the file lists and the stored directory."""
    kept = _stored_ids(known)
    stored = known.practice.scheduling_system if known is not None else {}
    for section, noun in _NOUNS.items():
        given = system.get(section)
        mapped = given if isinstance(given, dict) else {}
        if section in ("locations", "providers"):
            for number in sorted(listed[section] - {int(key) for key in mapped if _ID.fullmatch(key)}):
                yield Finding((*PLACE, section), f"the {noun} with the id {number} needs its upstream reference")
        existing = listed[section] | kept.get(section, set())
        yield from _of_section(section, noun, mapped, existing, stored.get(section) or {})


def _of_section(
    section: str, noun: str, mapped: Mapping[str, Any], existing: set[int], stored: Mapping[str, Any]
) -> Iterator[Finding]:
    owners = {_record(value): key for key, value in stored.items()}
    seen: set[str] = set()
    for key, value in mapped.items():
        steps, record = (*PLACE, section, key), _record(value)
        if _ID.fullmatch(key) and int(key) not in existing:
            yield Finding(steps, f"there is no {noun} with this id")
        if record in seen:
            yield Finding(steps, "this upstream record is already used in this mapping")
        elif owners.get(record, key) != key:
            yield Finding(steps, f"this upstream record is known as the {noun} with the id {owners[record]}")
        seen.add(record)


def _record(value: Any) -> str:
    """The FHIR record of an entry; two entries must not share it."""
    return f"{value.get('system')}|{value.get('code')}" if isinstance(value, dict) else str(value)


def _stored_ids(known: Directory | None) -> dict[str, set[int]]:
    if known is None:
        return {}
    visit_types = known.visit_types
    return {
        "locations": set(known.locations),
        "providers": set(known.providers),
        "visitTypes": set(visit_types),
        "procedures": {procedure.id for visit_type in visit_types.values() for procedure in visit_type.procedures},
    }
