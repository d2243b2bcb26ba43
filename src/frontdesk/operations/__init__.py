"""THE PRODUCT: one file per operation, named like it. This registry is explicit and ordered; everything follows it."""

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
from frontdesk.operations._operation import Context, Operation, Proposal

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

__all__ = ["OPERATIONS", "Context", "Operation", "Proposal"]
