"""Answers as the published documents show them: one practice, one patient, one visit, the same in every example.

Tests hold every answer to its operation's model, and every read-back to what the service really says.
"""

from collections.abc import Mapping
from typing import Any

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.operations import OPERATIONS

REQUEST_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CONFIRMATION_TOKEN = "9f86d081884c7d659a2feaa0c55ad015"  # noqa: S105 - an example
EXPIRES_AT = "2026-11-15T08:10:00Z"

_PATIENT_ID = "pat_0123456789ABCDEFGHIJKL"
_APPOINTMENT_ID = "apt_0123456789ABCDEFGHIJKL"
_SLOT_ID = "slt_AAAACgAAAAEAAAAUAAAAZAGvs1AAHgEjRWeJq83v"
_PAGE = {"limit": 50}
_IDS = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 102}
_TIMES = {"start": "2026-11-16T09:00:00-05:00", "end": "2026-11-16T09:45:00-05:00"}
_NAMES = {
    "providerName": "Dr. Robert Chen",
    "locationName": "Downtown",
    "visitTypeName": "Follow-up",
    "procedureName": "Long follow-up",
    "timeZone": "America/New_York",
}

_LOCATION = {
    "id": 1,
    "name": "Downtown",
    "aliases": ["Main Street"],
    "timeZone": "America/New_York",
    "phone": "+1 555 0101",
    "address": {"line1": "1 Main Street", "city": "Boston", "state": "MA", "postalCode": "02110", "country": "US"},
}
_PROVIDER = {
    "id": 10,
    "name": "Dr. Robert Chen",
    "aliases": ["Bob Chen"],
    "specialty": "Family medicine",
    "locationIds": [1],
    "acceptsNewPatients": True,
}
_VISIT_TYPE = {
    "id": 21,
    "name": "Follow-up",
    "aliases": [],
    "description": "For patients we know.",
    "patientKind": "existing",
}
_PROCEDURE = {"id": 102, "name": "Long follow-up", "aliases": [], "durationMinutes": 45}
_SLOT = {"id": _SLOT_ID, **_TIMES, **_IDS}
_SUMMARY = {"id": _APPOINTMENT_ID, "status": "booked", **_TIMES, "patientId": _PATIENT_ID, **_IDS}

ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "get_capabilities": {"capabilities": sorted(SCOPES)},
    "get_practice": {
        "id": "harbor-family",
        "name": "Harbor Family Medicine",
        "timeZone": "America/New_York",
        "phone": "+1 555 0100",
        "schedulingSystem": "native",
        "supports": sorted(operation.name for operation in OPERATIONS),
    },
    "list_locations": {"items": [_LOCATION], **_PAGE},
    "get_location": _LOCATION,
    "list_providers": {"items": [_PROVIDER], **_PAGE},
    "get_provider": _PROVIDER,
    "list_visit_types": {"items": [_VISIT_TYPE], **_PAGE},
    "get_visit_type": _VISIT_TYPE,
    "list_procedures": {"items": [_PROCEDURE], **_PAGE},
    "search_slots": {"items": [_SLOT], **_PAGE, "nextCursor": "eyJhZnRlciI6MX0"},
    "find_first_available": {"items": [_SLOT], "limit": 5},
    "get_slot": {**_SLOT, **_NAMES, "available": True},
    "match_patient": {"items": [{"id": _PATIENT_ID, "patientKind": "existing"}]},
    "get_patient": {
        "id": _PATIENT_ID,
        "number": 1,
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dob": "1985-12-10",
        "phone": "+1 555 010 0199",
        "patientKind": "existing",
    },
    "create_patient": {"patientId": _PATIENT_ID},
    "update_patient": {"patientId": _PATIENT_ID},
    "list_appointments": {"items": [_SUMMARY], **_PAGE},
    "get_appointment": {
        **_SUMMARY,
        **_NAMES,
        "createdAt": "2026-11-15T08:00:00Z",
        "updatedAt": "2026-11-15T08:00:00Z",
    },
    "book_appointment": {"appointmentId": _APPOINTMENT_ID},
    "cancel_appointment": {"appointmentId": _APPOINTMENT_ID, "status": "cancelled"},
    "confirm_attendance": {"appointmentId": _APPOINTMENT_ID, "status": "confirmed"},
    "reschedule_appointment": {"appointmentId": _APPOINTMENT_ID, "status": "booked"},
}

_SPOKEN = {**_TIMES, **_NAMES, "weekday": "Monday"}
_STANDING = {"appointmentId": _APPOINTMENT_ID, "patientId": _PATIENT_ID, "status": "booked", **_SPOKEN}

READ_BACKS: Mapping[str, Mapping[str, Any]] = {
    "create_patient": {"firstName": "Grace", "lastName": "Hopper", "dob": "1986-12-09", "phone": "+1 555 010 0142"},
    "update_patient": {"patientId": _PATIENT_ID, "phone": "+1 555 010 0143"},
    "book_appointment": {"patientId": _PATIENT_ID, "slotId": _SLOT_ID, **_SPOKEN},
    "cancel_appointment": {**_STANDING, "reason": "Travelling that week"},
    "confirm_attendance": _STANDING,
    "reschedule_appointment": {
        "appointmentId": _APPOINTMENT_ID,
        "patientId": _PATIENT_ID,
        "slotId": _SLOT_ID,
        **_SPOKEN,
    },
}
