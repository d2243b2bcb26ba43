"""Validates `schedulingSystem: {kind: fhir, ...}` in a practice file."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError
from pydantic_core import ErrorDetails

from frontdesk.domain.directory import Directory
from frontdesk.practice_file.errors import Finding, Steps
from frontdesk.practice_file.fields import broken, form, key, within
from frontdesk.practice_file.part import Part

PLACE: Steps = ("practice", "schedulingSystem")

_ID = re.compile(r"[1-9][0-9]{0,9}")
_VARIABLE = r"(?!FRONTDESK_)[A-Z][A-Z0-9_]{0,99}"
_CODE = r"[^\s|]+(?: [^\s|]+)*"
_SYSTEM = r"[A-Za-z][A-Za-z0-9+.-]*:[^\s|]+"
_PRINTABLE = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_RECORD = r"/[A-Za-z0-9.-]{1,64}"
_NOUNS = {"locations": "location", "providers": "provider", "visitTypes": "visit type", "procedures": "procedure"}


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


Key = Annotated[str, form(_ID.pattern, "must be the id of a record of this file", 200)]
Address = Annotated[str, AfterValidator(_address)]
Variable = Annotated[
    str, form(_VARIABLE, "must be the name of an environment variable, in capitals, not beginning with FRONTDESK_", 200)
]
Text = Annotated[str, form(_PRINTABLE.pattern, "must be printable ASCII text", 1000)]
LocationReference = Annotated[str, form("Location" + _RECORD, "must be a reference like Location/123", 200)]
PractitionerReference = Annotated[str, form("Practitioner" + _RECORD, "must be a reference like Practitioner/123", 200)]
ServiceReference = Annotated[
    str, form("HealthcareService" + _RECORD, "must be a coding, or a reference like HealthcareService/123", 200)
]


class CodingPart(Part):
    """A code of the server."""

    system: Annotated[str, form(_SYSTEM, "must be an absolute URI without blanks", 200)] = key(
        "The code system.", "https://ehr.example.com/visit-types"
    )
    code: Annotated[str, form(_CODE, "must be a code without line breaks, | or outer blanks", 200)] = key(
        "The code in that system.", "NEW"
    )
    display: Annotated[str, form(r"[^\x00-\x1f\x7f]+", "must be text on one line", 200)] | None = key(
        "The name that is sent with the code.", "New patient", None
    )


class NoAuthPart(Part):
    """No login at the server."""

    kind: Literal["none"] = key("No login.", "none")


class BearerPart(Part):
    """A fixed bearer token."""

    kind: Literal["bearer"] = key("A fixed bearer token.", "bearer")
    token_env: Variable = key("The environment variable of the service that holds the token.", "HARBOR_FHIR_TOKEN")


class ClientCredentialsPart(Part):
    """OAuth 2.0 client credentials with a secret."""

    kind: Literal["clientCredentials"] = key("OAuth 2.0 client credentials.", "clientCredentials")
    token_url: Address = key("The token endpoint.", "https://ehr.example.com/oauth2/token")
    client_id: Text = key("The client id at the server.", "frontdesk-harbor")
    client_secret_env: Variable = key(
        "The environment variable of the service that holds the secret.", "HARBOR_FHIR_SECRET"
    )
    scope: Text | None = key("The scopes to request.", "system/Appointment.* system/Patient.*", None)


class SmartBackendPart(Part):
    """SMART backend services: assertions signed with a private key."""

    kind: Literal["smartBackend"] = key("SMART backend services.", "smartBackend")
    token_url: Address = key("The token endpoint.", "https://ehr.example.com/oauth2/token")
    client_id: Text = key("The client id at the server.", "frontdesk-harbor")
    private_key_file: Annotated[str, form(r"/[^\x00-\x1f\x7f]+", "must be an absolute path", 1000)] = key(
        "The PEM file of the private key, which the service reads.", "/etc/frontdesk/harbor.pem"
    )
    key_id: Text | None = key("The id of the key, if the server knows several.", "2026", None)
    scope: Text = key("The scopes to request.", "system/Appointment.* system/Patient.*")


_AUTH_PARTS: tuple[type[Part], ...] = (NoAuthPart, BearerPart, ClientCredentialsPart, SmartBackendPart)
_AUTH_KINDS = {part.model_fields["kind"].annotation.__args__[0]: part for part in _AUTH_PARTS}  # type: ignore[union-attr]

AuthPart = Annotated[NoAuthPart | BearerPart | ClientCredentialsPart | SmartBackendPart, Field(discriminator="kind")]
ServicePart = Annotated[
    Annotated[ServiceReference, Tag("reference")] | Annotated[CodingPart, Tag("coding")],
    Discriminator(lambda value: "reference" if isinstance(value, str) else "coding"),
]


class FhirPart(Part):
    """A FHIR R4 server that keeps the calendar and the patients."""

    kind: Literal["fhir"] = key("The calendar and the patients are kept by a FHIR R4 server.", "fhir")
    base_url: Address = key("The address of the server.", "https://ehr.example.com/fhir/r4")
    auth: AuthPart | None = key(
        "How the service logs in; without it, it sends no credentials.",
        {"kind": "bearer", "tokenEnv": "HARBOR_FHIR_TOKEN"},
        None,
    )
    locations: dict[Key, LocationReference] | None = key(
        "The server's Location of each location, by its id.", {"1": "Location/downtown"}, None
    )
    providers: dict[Key, PractitionerReference] | None = key(
        "The server's Practitioner of each provider, by its id.", {"10": "Practitioner/chen"}, None
    )
    visit_types: dict[Key, ServicePart] | None = key(
        "The server's code or HealthcareService of each visit type, by its id.",
        {"20": {"system": "https://ehr.example.com/visit-types", "code": "NEW"}},
        None,
    )
    procedures: dict[Key, ServicePart] | None = key(
        "The server's code or HealthcareService of each procedure, by its id.",
        {"100": "HealthcareService/exams"},
        None,
    )
    attendance: CodingPart | None = key(
        "The tag that marks a confirmed appointment; without it, the patient's participation status.",
        {"system": "https://ehr.example.com/attendance", "code": "confirmed"},
        None,
    )
    timeout_seconds: Annotated[int, within(1, 60)] = key(
        "Time limit for the requests of one read together, in seconds.", 20, 10
    )
    max_concurrent: Annotated[int, within(1, 64)] = key(
        "The most requests that each worker process sends at the same time.", 4, 8
    )
    scheduling_operations: Literal["medplum", "ihe", "argonaut", "none"] | None = key(
        "The server's scheduling operations; without it, those that its CapabilityStatement lists.", "ihe", None
    )


def errors(system: Mapping[str, object]) -> Iterator[tuple[Steps, ErrorDetails]]:
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


def references(
    system: Mapping[str, object], listed: Mapping[str, set[int]], known: Directory | None
) -> Iterator[Finding]:
    """Errors in references between the settings, the ids that the file lists and the stored directory."""
    kept, active = _stored_ids(known), _active_ids(known)
    stored = known.practice.scheduling_system if known is not None else {}
    for section, noun in _NOUNS.items():
        given = system.get(section)
        mapped = given if isinstance(given, dict) else {}
        if section in ("locations", "providers"):
            missing = (listed[section] | active[section]) - {int(key) for key in mapped if _ID.fullmatch(key)}
            for number in sorted(missing):
                unlisted = "" if number in listed[section] else ", which is not in the file and stays active,"
                text = f"the {noun} with the id {number}{unlisted} needs its upstream reference"
                yield Finding((*PLACE, section), text)
        existing = listed[section] | kept.get(section, set())
        yield from _of_section(section, noun, mapped, existing, stored.get(section) or {})


def _of_section(
    section: str, noun: str, mapped: Mapping[str, object], existing: set[int], stored: Mapping[str, object]
) -> Iterator[Finding]:
    owners = {_record(value): number for number, value in stored.items()}
    seen: set[str] = set()
    for number, value in mapped.items():
        steps, record = (*PLACE, section, number), _record(value)
        if _ID.fullmatch(number) and int(number) not in existing:
            yield Finding(steps, f"there is no {noun} with this id")
        if record in seen:
            yield Finding(steps, "this upstream record is already used in this mapping")
        elif owners.get(record, number) != number:
            yield Finding(steps, f"this upstream record is known as the {noun} with the id {owners[record]}")
        seen.add(record)


def _record(value: object) -> str:
    """The FHIR record of an entry; two entries must not share it."""
    return f"{value.get('system')}|{value.get('code')}" if isinstance(value, dict) else str(value)


def _active_ids(known: Directory | None) -> dict[str, set[int]]:
    """Of the stored records that need a reference."""
    if known is None:
        return {"locations": set(), "providers": set()}
    return {
        "locations": {each.id for each in known.locations.values() if each.active},
        "providers": {each.id for each in known.providers.values() if each.active},
    }


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
