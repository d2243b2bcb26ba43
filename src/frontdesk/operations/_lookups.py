"""Loads the patient or appointment of a request, or raises not_found. Notes their ids for the audit record."""

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import APPOINTMENT_ID, PATIENT_ID
from frontdesk.domain.patients import Patient
from frontdesk.operations._operation import Context


async def existing_patient(context: Context, patient_id: str) -> Patient:
    patient = await context.system.get_patient(patient_id) if PATIENT_ID.match(patient_id) else None
    if patient is None:
        raise Problem("not_found", "There is no such patient.")
    context.subjects.append(patient.id)
    return patient


async def existing_appointment(context: Context, appointment_id: str) -> Appointment:
    found = await context.system.get_appointment(appointment_id) if APPOINTMENT_ID.match(appointment_id) else None
    if found is None:
        raise Problem("not_found", "There is no such appointment.")
    context.subjects.extend((found.id, found.patient_id))
    return found
