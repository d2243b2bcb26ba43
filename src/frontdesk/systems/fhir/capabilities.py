"""What a FHIR server can do, from its CapabilityStatement, and how open times are found and booked.

A server with `$find` and `$book` proposes and books times by its own rules. At any other, free Slots are searched and
claimed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frontdesk.systems.fhir.resources.elements import Resource, listed
from frontdesk.systems.fhir.settings import ConfiguredShape, Service, Shape
from frontdesk.systems.port import Capability

_SLOTS = ("Schedule search-type", "Slot search-type")
_SLOT_END = "Slot search by end"
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
_NEEDS_BESIDE_OPERATIONS: Mapping[Capability, tuple[str, ...]] = {
    Capability.FIND_SLOTS: (),
    Capability.BOOK: ("Patient read", "Appointment search-type"),
    Capability.RESCHEDULE: ("Patient read", "Appointment search-type", *_MOVES),
}
_SHAPES: Mapping[str, Shape] = {"ITI/Scheduling": "ihe", "argonaut": "argonaut", "medplum": "medplum"}  # in definitions


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """What a server said about itself. `able` holds texts like `Slot update`; None: it has not said what it can do.
    `shape`: the form of its scheduling operations, None without them. `lists_cancel`: `$cancel` is among them."""

    able: frozenset[str] | None
    fhir_version: str | None = None
    software: str | None = None
    batches: bool = False
    shape: Shape | None = None
    lists_cancel: bool = False

    def can(self, ability: str) -> bool:
        return self.able is None or ability in self.able

    def needs(self, capability: Capability) -> tuple[str, ...]:
        if self.shape in (None, "medplum"):  # Medplum's operations read Schedules, and services without them need Slots
            return NEEDS[capability]
        return _NEEDS_BESIDE_OPERATIONS.get(capability, NEEDS[capability])

    def missing(self, capability: Capability) -> list[str]:
        return [need for need in self.needs(capability) if not self.can(need)]

    def proposes(self, services: Sequence[Service]) -> bool:
        """Whether times for these services are found by `$find` and booked by `$book`, else by free Slots. Medplum's
        operations are about one HealthcareService."""
        if self.shape == "medplum":
            return any(isinstance(each, str) for each in services)
        return self.shape is not None

    @property
    def is_frontdesk(self) -> bool:
        """Whether it is another frontdesk: what it proposes is open, and it books no time twice."""
        return self.software == "frontdesk" and self.shape is not None

    @property
    def searches_exactly(self) -> bool:
        """Whether one search finds the live appointments of a patient and of a practitioner."""
        return self.shape == "medplum"

    @property
    def finds_slots_by_end(self) -> bool:
        """Whether one search finds the slots that overlap a time. R4 has no search parameter for a Slot's end: a server
        names its own."""
        return self.shape == "medplum" or (self.able is not None and _SLOT_END in self.able)

    @property
    def cancels(self) -> bool:
        """Whether an appointment that was booked by `$book` is cancelled by `$cancel`."""
        return self.shape == "medplum" or (self.lists_cancel and self.shape is not None and not self.is_frontdesk)

    @property
    def cancels_at_once(self) -> bool:
        """Whether `$cancel` takes the identifier and the reason of a cancellation: another frontdesk's does."""
        return self.is_frontdesk and self.lists_cancel

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(capability for capability in NEEDS if not self.missing(capability))


UNKNOWN = ServerCapabilities(None)


def unknown(configured: ConfiguredShape) -> ServerCapabilities:
    """A server whose statement was not read yet."""
    return replace(UNKNOWN, shape=_shape({}, configured))


def read_statement(statement: Resource, configured: ConfiguredShape = None) -> ServerCapabilities:
    """`configured`: the scheduling operations that the practice file names."""
    servers = [rest for rest in listed(statement.get("rest")) if rest.get("mode") == "server"]
    resources = [each for rest in servers for each in listed(rest.get("resource"))]
    operations = _operations(resources)
    software = statement.get("software")
    return ServerCapabilities(
        frozenset(ability for each in resources for ability in _abilities(each)) if servers else None,
        str(statement.get("fhirVersion")) if statement.get("fhirVersion") else None,
        str(software.get("name")) if isinstance(software, dict) and software.get("name") else None,
        any(each.get("code") == "batch" for rest in servers for each in listed(rest.get("interaction"))),
        _shape(operations, configured),
        "cancel" in operations,
    )


def _operations(resources: Sequence[Resource]) -> dict[str, str]:
    """The definitions of the scheduling operations, by name."""
    return {
        str(operation.get("name")).removeprefix("$"): str(operation.get("definition"))
        for each in resources
        if each.get("type") in ("Appointment", "Schedule")
        for operation in listed(each.get("operation"))
    }


def _shape(operations: Mapping[str, str], configured: ConfiguredShape) -> Shape | None:
    """The practice file decides, because servers may have operations that their statements do not list."""
    if configured is not None:
        return None if configured == "none" else configured
    if not {"find", "book"} <= operations.keys():
        return None
    return next((shape for part, shape in _SHAPES.items() if part in operations["book"]), None)


def _abilities(resource: Resource) -> set[str]:
    kind = resource.get("type")
    able = {f"{kind} {interaction.get('code')}" for interaction in listed(resource.get("interaction"))}
    if resource.get("conditionalCreate") is True:
        able.add(f"{kind} conditional-create")
    able |= {f"{kind} search by {parameter.get('name')}" for parameter in listed(resource.get("searchParam"))}
    if resource.get("versioning") != "no-version":
        able.add(f"{kind} versions")
    return able
