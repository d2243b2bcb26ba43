"""Parts of the published examples: one practice, one patient and one visit, the same in every operation."""

PATIENT_ID = "pat_0123456789ABCDEFGHIJKL"
APPOINTMENT_ID = "apt_0123456789ABCDEFGHIJKL"
SLOT_ID = "slt_AAAACgAAAAEAAAAUAAAAZAGvs1AAHgEjRWeJq83v"

IDS = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 102}
_TIMES = {"start": "2026-11-16T09:00:00-05:00", "end": "2026-11-16T09:45:00-05:00"}
NAMES = {
    "providerName": "Dr. Robert Chen",
    "locationName": "Downtown",
    "visitTypeName": "Follow-up",
    "procedureName": "Long follow-up",
    "timeZone": "America/New_York",
}

LOCATION: dict[str, object] = {
    "id": 1,
    "name": "Downtown",
    "aliases": ["Main Street"],
    "timeZone": "America/New_York",
    "phone": "+1 555 0101",
    "address": {"line1": "1 Main Street", "city": "Boston", "state": "MA", "postalCode": "02110", "country": "US"},
}
PROVIDER: dict[str, object] = {
    "id": 10,
    "name": "Dr. Robert Chen",
    "aliases": ["Bob Chen"],
    "specialty": "Family medicine",
    "locationIds": [1],
    "acceptsNewPatients": True,
}
VISIT_TYPE: dict[str, object] = {
    "id": 21,
    "name": "Follow-up",
    "aliases": [],
    "description": "For patients we know.",
    "patientKind": "existing",
}
SLOT: dict[str, object] = {"id": SLOT_ID, **_TIMES, **IDS}
APPOINTMENT: dict[str, object] = {"id": APPOINTMENT_ID, "status": "booked", **_TIMES, "patientId": PATIENT_ID, **IDS}
VISIT_READ_BACK: dict[str, object] = {**_TIMES, **NAMES, "weekday": "Monday"}
PATIENT_NAME = {"firstName": "Ada", "lastName": "Lovelace"}
APPOINTMENT_READ_BACK: dict[str, object] = {
    **PATIENT_NAME,
    "appointmentId": APPOINTMENT_ID,
    "patientId": PATIENT_ID,
    "status": "booked",
    **VISIT_READ_BACK,
}


def page(*items: dict[str, object], limit: int = 50) -> dict[str, object]:
    return {"items": [*items], "limit": limit}
