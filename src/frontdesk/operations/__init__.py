"""The operations, one file each, and the registry that all published interfaces are generated from."""

from collections.abc import Collection, Mapping
from functools import cache

from frontdesk.feature import features
from frontdesk.operations import (
    book_appointment,
    cancel_appointment,
    confirm_attendance,
    create_patient,
    find_first_available,
    get_appointment,
    get_capabilities,
    get_location,
    get_patient,
    get_practice,
    get_provider,
    get_slot,
    get_visit_type,
    list_appointments,
    list_locations,
    list_procedures,
    list_providers,
    list_visit_types,
    match_patient,
    reschedule_appointment,
    search_slots,
    update_patient,
)
from frontdesk.operations._attendance import CALL_IN, MOVE_BACK, RECORDINGS, RESTORE, RETURN_TO_WAITING, UNDO
from frontdesk.operations._booking import booking_refusal
from frontdesk.operations._operation import Context, Group, Operation, Proposal
from frontdesk.operations._overrides import OVERRIDE_BOOKING, OVERRIDE_MOVE, check_override
from frontdesk.operations._slot_json import SlotJson
from frontdesk.operations.get_practice import PRACTICE_IMPORTED
from frontdesk.operations.get_slot import SLOT_AT, SLOT_WITH_HOLDS
from frontdesk.operations.list_appointments import APPOINTMENTS_IN_FULL
from frontdesk.operations.list_procedures import ALL_PROCEDURES
from frontdesk.operations.match_patient import MATCHES_IN_FULL
from frontdesk.operations.search_slots import WIDE_SLOT_SEARCH
from frontdesk.systems.port import Capability

OPERATIONS: tuple[Operation, ...] = (
    get_capabilities.OPERATION,
    get_practice.OPERATION,
    list_locations.OPERATION,
    get_location.OPERATION,
    list_providers.OPERATION,
    get_provider.OPERATION,
    list_visit_types.OPERATION,
    get_visit_type.OPERATION,
    list_procedures.OPERATION,
    search_slots.OPERATION,
    find_first_available.OPERATION,
    get_slot.OPERATION,
    match_patient.OPERATION,
    get_patient.OPERATION,
    create_patient.OPERATION,
    update_patient.OPERATION,
    list_appointments.OPERATION,
    get_appointment.OPERATION,
    book_appointment.OPERATION,
    cancel_appointment.OPERATION,
    confirm_attendance.OPERATION,
    reschedule_appointment.OPERATION,
)

BY_NAME: Mapping[str, Operation] = {operation.name: operation for operation in OPERATIONS}
GROUPS: tuple[Group, ...] = tuple(dict.fromkeys(operation.group for operation in OPERATIONS if operation.group))
NEEDS: Mapping[str, Capability] = {
    operation.name: operation.needs for operation in OPERATIONS if operation.needs is not None
}


@cache
def extensions() -> tuple[Operation, ...]:
    """The features' operations, beyond the contract: listed only to tokens that hold their scopes."""
    return tuple(operation for feature in features() for operation in feature.parts.operations)


@cache
def published() -> Mapping[str, Operation]:
    """By name, what clients can call: the operations of the contract and the extensions."""
    return {operation.name: operation for operation in (*OPERATIONS, *extensions())}


def every_operation() -> Mapping[str, Operation]:
    """By name, the operations of clients, those that only the FHIR door offers, and those of staff."""
    pending = filter(None, (feature.parts.pending_appointments for feature in features()))
    of_pending = (operation for each in pending for operation in each.operations)
    by_staff: tuple[Operation, ...] = (
        CALL_IN, RETURN_TO_WAITING, RESTORE, MOVE_BACK, *RECORDINGS.values(), OVERRIDE_BOOKING, OVERRIDE_MOVE,
    )  # fmt: skip
    return {**published(), **{operation.name: operation for operation in (*of_pending, *by_staff)}}


def extensions_for(scopes: Collection[str]) -> tuple[Operation, ...]:
    """The extensions that a token with these scopes may call."""
    return tuple(operation for operation in extensions() if operation.scope in scopes)


@cache
def supported(capabilities: frozenset[Capability]) -> frozenset[str]:
    """The names of the operations that a scheduling system with these capabilities can perform."""
    return frozenset(
        operation.name for operation in OPERATIONS if operation.needs is None or operation.needs in capabilities
    )


__all__ = [
    "ALL_PROCEDURES",
    "APPOINTMENTS_IN_FULL",
    "BY_NAME",
    "CALL_IN",
    "GROUPS",
    "MATCHES_IN_FULL",
    "MOVE_BACK",
    "NEEDS",
    "OPERATIONS",
    "OVERRIDE_BOOKING",
    "OVERRIDE_MOVE",
    "PRACTICE_IMPORTED",
    "RECORDINGS",
    "RESTORE",
    "RETURN_TO_WAITING",
    "SLOT_AT",
    "SLOT_WITH_HOLDS",
    "UNDO",
    "WIDE_SLOT_SEARCH",
    "Context",
    "Operation",
    "Proposal",
    "SlotJson",
    "booking_refusal",
    "check_override",
    "every_operation",
    "extensions",
    "extensions_for",
    "published",
    "supported",
]
