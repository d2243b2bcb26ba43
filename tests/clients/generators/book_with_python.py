"""Books an appointment with the client that openapi-python-client makes from the published document."""

import os
from datetime import UTC, date, datetime, timedelta

import httpx
from practice_api import AuthenticatedClient
from practice_api.api.appointments import book_appointment, get_appointment
from practice_api.api.patients import get_patient, match_patient
from practice_api.api.slots import find_first_available
from practice_api.models import (
    Appointment,
    BookAppointmentRequest,
    BookAppointmentResult,
    Challenge,
    MatchPatientRequest,
    MatchPatientResult,
    NotFoundProblem,
    SlotPage,
)

url = os.environ["DESK_URL"]
form = {
    "grant_type": "client_credentials",
    "client_id": os.environ["DESK_CLIENT_ID"],
    "client_secret": os.environ["DESK_CLIENT_SECRET"],
}
token: str = httpx.post(f"{url}/oauth/token", data=form, timeout=30).raise_for_status().json()["access_token"]
timeout = httpx.Timeout(30)
client = AuthenticatedClient(base_url=f"{url}/api", token=token, timeout=timeout, raise_on_unexpected_status=True)

ada = MatchPatientRequest(first_name="Ada", last_name="Lovelace", phone="555 010 0199", dob=date(1985, 12, 10))
found = match_patient.sync(client=client, body=ada)
assert isinstance(found, MatchPatientResult), found

missing = get_patient.sync("pat_0123456789ABCDEFGHIJKL", client=client)
assert isinstance(missing, NotFoundProblem), missing
assert missing.code.value == "not_found"

next_week = datetime.now(UTC).date() + timedelta(days=7)  # the earliest slot of all may be too close in a moment
slots = find_first_available.sync(client=client, visit_type_id=23, procedure_id=106, from_=next_week)
assert isinstance(slots, SlotPage), slots
slot = slots.items[0]

booking = BookAppointmentRequest(patient_id=os.environ["PATIENT_ID"], slot_id=slot.id)
challenge = book_appointment.sync(client=client, body=booking)
assert isinstance(challenge, Challenge), challenge
assert challenge.read_back["providerName"]

booking.confirmation_token = challenge.confirmation_token
booked = book_appointment.sync(client=client, body=booking)
assert isinstance(booked, BookAppointmentResult), booked

appointment = get_appointment.sync(booked.appointment_id, client=client)
assert isinstance(appointment, Appointment), appointment
assert appointment.start == slot.start
print(booked.appointment_id)
