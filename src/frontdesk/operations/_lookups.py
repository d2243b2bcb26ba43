"""Loads the record that a request names, or raises not_found. Notes patients and appointments for the audit record."""

from collections.abc import Mapping
from typing import TypeVar

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Location, Provider, VisitType
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import APPOINTMENT_ID, PATIENT_ID
from frontdesk.domain.patients import Patient
from frontdesk.operations._operation import Context
from frontdesk.texts import N_

NO_LOCATION = N_("There is no such location.")
NO_PROVIDER = N_("There is no such provider.")
NO_VISIT_TYPE = N_("There is no such visit type.")

R = TypeVar("R", Location, Provider, VisitType)


def existing_record(records: Mapping[int, R], record_id: int, missing: str) -> R:
    """A record of the directory. Raises `not_found` with the sentence `missing`."""
    found = records.get(record_id)
    if found is None or not found.active:
        raise Problem("not_found", missing)
    return found


async def existing_patient(context: Context, reference: str | int) -> Patient:
    """Reads a patient by `pat_` id or by the practice's own number. Raises `not_found`."""
    known_form = isinstance(reference, int) or PATIENT_ID.match(reference)
    patient = await context.system.patients.get_patient(reference) if known_form else None
    if patient is None:
        raise Problem("not_found", "There is no such patient.")
    context.subjects.append(patient.id)
    return patient


async def existing_appointment(context: Context, appointment_id: str) -> Appointment:
    found = (
        await context.system.appointments.get_appointment(appointment_id)
        if APPOINTMENT_ID.match(appointment_id)
        else None
    )
    if found is None:
        raise Problem("not_found", "There is no such appointment.")
    context.subjects.extend((found.id, found.patient_id))
    return found
