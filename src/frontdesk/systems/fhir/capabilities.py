"""What a FHIR server can do, from its CapabilityStatement, and which operations that is enough for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.systems.fhir.resources.elements import Resource, listed

ALWAYS = frozenset(
    (
        "get_capabilities", "get_practice", "list_locations", "get_location", "list_providers", "get_provider",
        "list_visit_types", "get_visit_type", "list_procedures",
    )
)  # fmt: skip

_SLOTS = ("Schedule search-type", "Slot search-type")
_MOVES = ("Appointment read", "Appointment update", "Appointment versions")

# What each operation needs of the server. Creating is conditional and changing is versioned, or it is not safe.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "search_slots": _SLOTS,
    "find_first_available": _SLOTS,
    "get_slot": _SLOTS,
    "match_patient": ("Patient search-type",),
    "get_patient": ("Patient read",),
    "create_patient": ("Patient search-type", "Patient create", "Patient conditional-create"),
    "update_patient": ("Patient search-type", "Patient read", "Patient update", "Patient versions"),
    "list_appointments": ("Appointment search-type",),
    "get_appointment": ("Appointment read",),
    "book_appointment": (
        *_SLOTS, "Slot read", "Patient read", "Appointment search-type", "Appointment create",
        "Appointment conditional-create",
    ),
    "cancel_appointment": _MOVES,
    "confirm_attendance": _MOVES,
    "reschedule_appointment": (*_SLOTS, "Slot read", "Patient read", "Appointment search-type", *_MOVES),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`able` holds texts like `Slot update`; None where the server has not said what it can do."""

    able: frozenset[str] | None
    fhir_version: str | None = None
    software: str | None = None

    def can(self, ability: str) -> bool:
        return self.able is None or ability in self.able

    def missing(self, operation: str) -> list[str]:
        return [need for need in NEEDS.get(operation, ()) if not self.can(need)]

    @property
    def supports(self) -> frozenset[str]:
        return ALWAYS | {operation for operation in NEEDS if not self.missing(operation)}


UNKNOWN = Capabilities(None)


def capabilities(statement: Resource) -> Capabilities:
    servers = [rest for rest in listed(statement.get("rest")) if rest.get("mode") == "server"]
    software = statement.get("software")
    return Capabilities(
        frozenset(ability for rest in servers for each in listed(rest.get("resource")) for ability in _abilities(each))
        if servers
        else None,
        str(statement.get("fhirVersion")) if statement.get("fhirVersion") else None,
        str(software.get("name")) if isinstance(software, dict) and software.get("name") else None,
    )


def _abilities(resource: Resource) -> set[str]:
    kind = resource.get("type")
    able = {f"{kind} {interaction.get('code')}" for interaction in listed(resource.get("interaction"))}
    if resource.get("conditionalCreate") is True:
        able.add(f"{kind} conditional-create")
    if resource.get("versioning") != "no-version":
        able.add(f"{kind} versions")
    return able
