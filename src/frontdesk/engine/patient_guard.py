"""Limits a client's use of a scheduling system: counts its matches, and hides patients it does not know where that is
set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from frontdesk.access.clients.caller import Caller
from frontdesk.access.limits.match_attempts import MatchAttempts
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.patients import Contact, Patient, PhoneMatch
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.database import Database
from frontdesk.systems.port import (
    AppointmentFilter,
    AppointmentPage,
    AppointmentPosition,
    BookingCheck,
    PatientMatching,
    SchedulingSystem,
)

ASKED_PERSON = "asked_"  # and the hash of the person that a match asked for, in the subjects of an audit record
_NOBODY = ""


@dataclass(frozen=True, slots=True)
class PatientGuard:
    database: Database
    attempts: MatchAttempts

    def guard(self, system: SchedulingSystem, caller: Caller, now: datetime, subjects: list[str]) -> SchedulingSystem:
        """The system as the caller may use it."""
        limits = caller.limits
        if limits.match_misses or limits.phone_match != "anywhere":
            system = replace(system, matching=GuardedMatches(system.matching, self.attempts, caller, now, subjects))
        if limits.known_patients_only:
            known = KnownPatients(system, self.database, caller)
            # Without an own calendar, every booking is checked before it is proposed.
            system = replace(system, patients=known, appointments=known, bookings=known, own_calendar=None)
        return system


@dataclass(frozen=True, slots=True)
class GuardedMatches:
    """Matches phone numbers as the practice demands, and counts what a client learns from matches: of match_patient,
    and of creating and updating patients, which tell whether a patient is on file."""

    matching: PatientMatching
    attempts: MatchAttempts
    caller: Caller
    now: datetime
    subjects: list[str]

    async def match_patients(
        self, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
    ) -> list[Patient]:
        limits = self.caller.limits
        if limits.phone_match == "ending":
            phone_match = limits.phone_match
        found = await self.matching.match_patients(first_name, last_name, phone, dob, phone_match)
        if not limits.match_misses:
            return found
        person = self.attempts.person(self.caller.practice_id, first_name, last_name, dob)
        self.subjects.append(ASKED_PERSON + person.hex())
        await self.attempts.count(self.caller, person, phone, self.now, is_hit=bool(found))
        return found


@dataclass(frozen=True, slots=True)
class KnownPatients:
    """Shows only patients that the client has matched, created or booked, and their appointments."""

    system: SchedulingSystem
    database: Database
    caller: Caller

    async def get_patient(self, patient: str | int) -> Patient | None:
        found = await self.system.patients.get_patient(patient)
        return found if await self._may_see(_NOBODY if found is None else found.id) else None

    async def contacts(self, patient_ids: Sequence[str]) -> dict[str, Contact]:
        return await self.system.patients.contacts(patient_ids)

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        found = await self.system.appointments.get_appointment(appointment_id)
        return found if await self._may_see(_NOBODY if found is None else found.patient_id) else None

    async def list_appointments(
        self, wanted: AppointmentFilter, *, limit: int, after: AppointmentPosition | None
    ) -> AppointmentPage:
        known = replace(wanted, known_to=self.caller.client_id)
        return await self.system.appointments.list_appointments(known, limit=limit, after=after)

    async def check_booking(
        self,
        slot: SlotRef,
        patient_id: str,
        now: datetime,
        moved: Appointment | None = None,
        hold_id: str | None = None,
    ) -> BookingCheck | None:
        checked = await self.system.bookings.check_booking(slot, patient_id, now, moved, hold_id)
        knows = await self._may_see(patient_id)
        return checked if checked is None or knows else replace(checked, patient_seen=None)

    async def _may_see(self, patient_id: str) -> bool:
        """Asked also where nothing was found: an unknown patient takes as long as one that does not exist."""
        sql, caller = "SELECT known_to($1, $2, $3)", self.caller
        return bool(await self.database.fetchval(sql, caller.practice_id, caller.client_id, [patient_id]))
