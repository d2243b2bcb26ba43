"""Settings of a FHIR server, read from the practice file's `schedulingSystem`.

They were validated when the practice file was imported. Secrets are not among them, only where to read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic.alias_generators import to_snake

OWN_VISIT_TYPES = "urn:frontdesk:visit-type"
OWN_PROCEDURES = "urn:frontdesk:procedure"


@dataclass(frozen=True, slots=True)
class Coding:
    system: str
    code: str
    display: str | None = None

    @property
    def token(self) -> str:
        return f"{self.system}|{self.code}"


Shape = Literal["medplum", "ihe", "argonaut"]  # the forms of $find and $book
ConfiguredShape = Shape | Literal["none"] | None  # None: what the CapabilityStatement lists
Service = Coding | str  # a code, or a reference to a HealthcareService


def token(service: Service) -> str:
    return service.token if isinstance(service, Coding) else service


@dataclass(frozen=True, slots=True)
class Auth:
    kind: Literal["none", "bearer", "clientCredentials", "smartBackend"]
    token_env: str = ""
    token_url: str = ""
    client_id: str = ""
    client_secret_env: str = ""
    private_key_file: str = ""
    key_id: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class FhirSettings:
    base_url: str
    auth: Auth
    locations: Mapping[int, str]
    providers: Mapping[int, str]
    visit_types: Mapping[int, Service]
    procedures: Mapping[int, Service]
    attendance: Coding | None  # None: the patient's participation status says it
    timeout_seconds: float
    max_concurrent: int
    scheduling_operations: ConfiguredShape

    def visit_type(self, number: int) -> Service:
        """A visit type without an entry gets a code of our own."""
        return self.visit_types.get(number) or Coding(OWN_VISIT_TYPES, str(number))

    def procedure(self, number: int) -> Service:
        return self.procedures.get(number) or Coding(OWN_PROCEDURES, str(number))


def fhir_settings(system: Mapping[str, Any]) -> FhirSettings:
    """The settings from the stored mapping."""
    auth = system.get("auth") or {"kind": "none"}
    return FhirSettings(
        base_url=system["baseUrl"].rstrip("/"),
        auth=Auth(**{to_snake(key): value for key, value in auth.items()}),
        locations=_by_id(system, "locations"),
        providers=_by_id(system, "providers"),
        visit_types=_by_id(system, "visitTypes"),
        procedures=_by_id(system, "procedures"),
        attendance=None if system.get("attendance") is None else Coding(**system["attendance"]),
        timeout_seconds=system.get("timeoutSeconds") or 10,
        max_concurrent=system.get("maxConcurrent") or 8,
        scheduling_operations=system.get("schedulingOperations"),
    )


def _by_id(system: Mapping[str, Any], section: str) -> dict[int, Any]:  # records, or codings of services
    mapped = (system.get(section) or {}).items()
    return {int(key): value if isinstance(value, str) else Coding(**value) for key, value in mapped}
