"""Changes as the JSON that `commit_write` takes."""

from typing import Any

import orjson

from frontdesk.domain.names import digits
from frontdesk.domain.patients import name_key
from frontdesk.systems.changes import Book, Booking, Change, ChangeStatus, PatientDetails, Reschedule


def as_json(change: Change) -> str:
    return orjson.dumps(_data(change)).decode()


def _data(change: Change) -> dict[str, Any]:
    if isinstance(change, Book):
        return {
            "appointmentId": change.appointment_id,
            "patientId": change.patient_id,
            **_booking(change.booking),
        }
    if isinstance(change, Reschedule):
        return {
            "appointmentId": change.appointment_id,
            "patientId": change.patient_id,
            "fromProviderId": change.from_provider_id,
            "fromStates": change.from_states,
            **_booking(change.booking),
        }
    if isinstance(change, ChangeStatus):
        return {
            "appointmentId": change.appointment_id,
            "status": change.status,
            "fromStates": change.from_states,
            "onlyUpcoming": change.only_upcoming,
            "reason": change.reason,
        }
    return {"patientId": change.patient_id, **_details(change.details)}


def _booking(booking: Booking) -> dict[str, Any]:
    return {
        "providerId": booking.provider_id,
        "locationId": booking.location_id,
        "visitTypeId": booking.visit_type_id,
        "procedureId": booking.procedure_id,
        "startsAt": booking.starts_at,
        "endsAt": booking.ends_at,
        "busyUntil": booking.busy_until,
    }


def _details(details: PatientDetails) -> dict[str, Any]:
    return {
        "firstName": details.first_name,
        "lastName": details.last_name,
        "nameKey": name_key(details.first_name, details.last_name),
        "dob": details.dob,
        "phone": details.phone,
        "phoneDigits": digits(details.phone),
        "email": details.email,
    }
