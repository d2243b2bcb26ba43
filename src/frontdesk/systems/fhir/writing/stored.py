"""What is stored of a write until it is settled: ids, references and times, no personal data."""

import hashlib
from datetime import datetime

from frontdesk.domain.patients import name_key
from frontdesk.systems.changes import Book, ChangeStatus, CreatePatient, RecordChange, Reschedule, UpdatePatient
from frontdesk.systems.fhir.capabilities import ServerCapabilities
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.elements import CLAIMS, Resource, identifier_values, reference_of, references
from frontdesk.systems.fhir.resources.slots import Opening
from frontdesk.systems.fhir.write_data import Release, WriteData
from frontdesk.systems.fhir.writing.writes import PreparedWrite


class StoredWrite:
    """`patient`: the reference of the patient of a booking, or our id of the patient of another change."""

    def __init__(self, server: ServerCapabilities, practice: PracticeMap, asked: PreparedWrite, patient: str) -> None:
        self._server = server
        self._practice = practice
        self._asked = asked
        self._patient = patient

    def data(self, change: RecordChange, now: datetime) -> WriteData:
        stored: WriteData = {"subject": _subject(change)}
        if self._asked.before is not None:
            stored["reference"] = reference_of(self._asked.before)
        if isinstance(change, CreatePatient | UpdatePatient):
            return stored | {"patientId": change.patient_id}
        stored["appointmentId"] = change.appointment_id
        if isinstance(change, ChangeStatus):
            return stored | {"status": change.status} | self._status(change)
        return stored | self._booking(change, now)

    def _status(self, change: ChangeStatus) -> WriteData:
        before = self._asked.before
        if before is None:
            return {}
        stored: WriteData = {"patientId": self._patient, "from": self._practice.status(before)}
        if change.status == "cancelled":
            cancels = self._server.cancels and self._is_proposed(before)
            stored |= {"cancels": True} if cancels else {"givesUp": self._given_up(before, [])}
        return stored

    def _booking(self, change: Book | Reschedule, now: datetime) -> WriteData:
        booking, before = change.booking, self._asked.before
        opening = self._asked.opening or Opening()
        taken = [slot.reference for slot in opening.run]
        old = [] if before is None else references(before.get("slot"), "Slot")
        stored: WriteData = {
            "patientId": change.patient_id,
            "providerId": booking.provider_id,
            "locationId": booking.location_id,
            "visitTypeId": booking.visit_type_id,
            "procedureId": booking.procedure_id,
            "startsAt": booking.starts_at.isoformat(),
            "endsAt": booking.ends_at.isoformat(),
            "askedAt": now.isoformat(),
            "patient": self._patient,
            "run": taken,
            "slots": [slot for slot in taken if slot not in old],
            "proposed": opening.proposal is not None,
        }
        if before is not None:
            stored |= {"before": self._practice.place_and_time(before), "givesUp": self._given_up(before, taken)}
            if isinstance(change, Reschedule):
                stored |= self._moved_from(before)
        return stored

    def _moved_from(self, before: Resource) -> WriteData:
        """By which staff can move it back; empty if the place cannot be mapped to the directory."""
        place, service, ends = self._practice.place_of(before), self._practice.service_of(before), before.get("end")
        if place is None or service is None or ends is None:
            return {}
        ids = {"visitTypeId": service[0].id, "procedureId": service[1].id}
        return {"movedFrom": {"providerId": place[0], "locationId": place[1], **ids, "endsAt": ends}}

    def _is_proposed(self, appointment: Resource) -> bool:
        """Whether the server proposes the times of the appointment's service, and makes slots for each booking."""
        service = self._practice.service_of(appointment)
        return service is not None and self._server.proposes(self._practice.services(service[0].id, service[1].id))

    def _given_up(self, before: Resource, kept: list[str]) -> list[Release]:
        """The slots to free when the appointment moves or is cancelled, if the server lets us."""
        if not self._server.can("Slot update"):
            return []
        marks, made = identifier_values(before, CLAIMS), self._is_proposed(before)
        return [
            {"slot": slot, "claims": marks, "ours": False, "made": made}
            for slot in references(before.get("slot"), "Slot")
            if slot not in kept
        ]


def _subject(change: RecordChange) -> str:
    """The patient or appointment of a write; two writes of one subject never run at once."""
    if isinstance(change, ChangeStatus):
        return change.appointment_id
    if isinstance(change, CreatePatient):
        person = change.details
        # All releases must agree on this key, so people whose names differ only in marks wait for each other.
        key = f"{name_key(person.first_name, person.last_name)}|{person.dob.isoformat()}"
        return hashlib.sha256(key.encode()).hexdigest()
    return change.patient_id
