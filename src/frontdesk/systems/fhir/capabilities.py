"""What a FHIR server can do, from its CapabilityStatement."""

from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.systems.fhir.resources.elements import Resource, listed
from frontdesk.systems.port import Capability

_SLOTS = ("Schedule search-type", "Slot search-type")
_MOVES = ("Appointment read", "Appointment update", "Appointment versions")

# Creating is conditional and changing is versioned: without these a repeated or concurrent write would do harm.
NEEDS: Mapping[Capability, tuple[str, ...]] = {
    Capability.FIND_SLOTS: _SLOTS,
    Capability.MATCH_PATIENTS: ("Patient search-type",),
    Capability.READ_PATIENTS: ("Patient read",),
    Capability.CREATE_PATIENTS: ("Patient search-type", "Patient create", "Patient conditional-create"),
    Capability.UPDATE_PATIENTS: ("Patient search-type", "Patient read", "Patient update", "Patient versions"),
    Capability.LIST_APPOINTMENTS: ("Appointment search-type",),
    Capability.READ_APPOINTMENTS: ("Appointment read",),
    Capability.BOOK: (
        *_SLOTS, "Slot read", "Patient read", "Appointment search-type", "Appointment create",
        "Appointment conditional-create",
    ),
    Capability.RESCHEDULE: (*_SLOTS, "Slot read", "Patient read", "Appointment search-type", *_MOVES),
    Capability.CHANGE_STATUS: _MOVES,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """What a server said about itself. `able` holds texts like `Slot update`; None: it has not said what it can do."""

    able: frozenset[str] | None
    fhir_version: str | None = None
    software: str | None = None
    batches: bool = False

    def can(self, ability: str) -> bool:
        return self.able is None or ability in self.able

    def missing(self, capability: Capability) -> list[str]:
        return [need for need in NEEDS[capability] if not self.can(need)]

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(capability for capability in NEEDS if not self.missing(capability))


UNKNOWN = ServerCapabilities(None)


def read_statement(statement: Resource) -> ServerCapabilities:
    servers = [rest for rest in listed(statement.get("rest")) if rest.get("mode") == "server"]
    software = statement.get("software")
    return ServerCapabilities(
        frozenset(ability for rest in servers for each in listed(rest.get("resource")) for ability in _abilities(each))
        if servers
        else None,
        str(statement.get("fhirVersion")) if statement.get("fhirVersion") else None,
        str(software.get("name")) if isinstance(software, dict) and software.get("name") else None,
        any(each.get("code") == "batch" for rest in servers for each in listed(rest.get("interaction"))),
    )


def _abilities(resource: Resource) -> set[str]:
    kind = resource.get("type")
    able = {f"{kind} {interaction.get('code')}" for interaction in listed(resource.get("interaction"))}
    if resource.get("conditionalCreate") is True:
        able.add(f"{kind} conditional-create")
    if resource.get("versioning") != "no-version":
        able.add(f"{kind} versions")
    return able
