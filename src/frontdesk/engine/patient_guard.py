"""Wraps a scheduling system for a client: counts its matches, and hides patients it does not know where that is set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from frontdesk.access.clients.caller import Caller
from frontdesk.access.limits.match_attempts import MatchAttempts
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.holds import Hold
from frontdesk.domain.patients import Contact, Patient
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.database import Database
from frontdesk.systems.changes import Change
from frontdesk.systems.port import (
    AppointmentFilter,
    AppointmentPage,
    AppointmentPosition,
    BookingCheck,
    ChallengeRecord,
    FoundSlots,
    Outcome,
    OverrideCheck,
    PatientSearch,
    SchedulingSystem,
    SlotPosition,
    SlotQuery,
    SlotState,
    Versions,
    WriteRecord,
)

ASKED = "asked_"  # and the hash of the person that a match asked for, in the subjects of an audit record
_NOBODY = ""


@dataclass(frozen=True, slots=True)
class PatientGuard:
    database: Database
    attempts: MatchAttempts

    def guard(self, system: SchedulingSystem, caller: Caller, now: datetime, subjects: list[str]) -> SchedulingSystem:
        """The system as the caller may use it."""
        limits = caller.patient_limits
        if limits.match_misses:
            system = CountedMatches(system, self.attempts, caller, now, subjects)
        return KnownPatients(system, self.database, caller) if limits.known_only else system


class _Wrapped:
    """Passes every call on."""

    def __init__(self, system: SchedulingSystem) -> None:
        self._system = system
        self.kind = system.kind
        self.remote = system.remote
        self.capabilities = system.capabilities

    @property
    def versions(self) -> Versions | None:
        return self._system.versions

    async def directory(self) -> Directory:
        return await self._system.directory()

    async def find_slots(self, query: SlotQuery, now: datetime, *, most: int, after: SlotPosition | None) -> FoundSlots:
        return await self._system.find_slots(query, now, most=most, after=after)

    async def slot_state(self, slot: SlotRef, now: datetime) -> SlotState | None:
        return await self._system.slot_state(slot, now)

    async def check_booking(
        self,
        slot: SlotRef,
        patient_id: str,
        now: datetime,
        moved: Appointment | None = None,
        hold_id: str | None = None,
    ) -> BookingCheck | None:
        return await self._system.check_booking(slot, patient_id, now, moved, hold_id)

    async def check_override(
        self, slot: SlotRef, patient_id: str, now: datetime, moved: Appointment | None = None
    ) -> OverrideCheck | None:
        return await self._system.check_override(slot, patient_id, now, moved)

    async def find_hold(self, hold_id: str, client_id: str, now: datetime) -> Hold | None:
        return await self._system.find_hold(hold_id, client_id, now)

    async def list_holds(self, first: datetime, last: datetime, now: datetime) -> list[Hold]:
        return await self._system.list_holds(first, last, now)

    async def slot_by_hours(self, slot: SlotRef, now: datetime) -> SlotState | None:
        return await self._system.slot_by_hours(slot, now)

    async def match_patients(self, first_name: str, last_name: str, phone: str, dob: date) -> list[Patient]:
        return await self._system.match_patients(first_name, last_name, phone, dob)

    async def search_patients(self, search: PatientSearch, *, most: int) -> list[Patient]:
        return await self._system.search_patients(search, most=most)

    async def get_patient(self, patient: str | int) -> Patient | None:
        return await self._system.get_patient(patient)

    async def contacts(self, patient_ids: Sequence[str]) -> dict[str, Contact]:
        return await self._system.contacts(patient_ids)

    async def list_appointments(
        self, wanted: AppointmentFilter, *, limit: int, after: AppointmentPosition | None
    ) -> AppointmentPage:
        return await self._system.list_appointments(wanted, limit=limit, after=after)

    async def calendar_checksum(self, wanted: AppointmentFilter, now: datetime) -> int | None:
        return await self._system.calendar_checksum(wanted, now)

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        return await self._system.get_appointment(appointment_id)

    async def perform(self, change: Change, record: WriteRecord) -> Outcome:
        return await self._system.perform(change, record)

    async def challenge(self, change: Change, record: ChallengeRecord) -> Outcome:
        return await self._system.challenge(change, record)


class CountedMatches(_Wrapped):
    """Counts what a client learns from matches: of match_patient, and of creating and updating patients, which tell
    whether a patient is on file."""

    def __init__(
        self,
        system: SchedulingSystem,
        attempts: MatchAttempts,
        caller: Caller,
        now: datetime,
        subjects: list[str],
    ) -> None:
        super().__init__(system)
        self._attempts = attempts
        self._caller = caller
        self._now = now
        self._subjects = subjects

    async def match_patients(self, first_name: str, last_name: str, phone: str, dob: date) -> list[Patient]:
        found = await self._system.match_patients(first_name, last_name, phone, dob)
        person = self._attempts.person(self._caller.practice_id, first_name, last_name, dob)
        self._subjects.append(ASKED + person.hex())
        await self._attempts.count(self._caller, person, phone, self._now, is_hit=bool(found))
        return found


class KnownPatients(_Wrapped):
    """Shows only patients that the client has matched, created or booked, and their appointments."""

    def __init__(self, system: SchedulingSystem, database: Database, caller: Caller) -> None:
        super().__init__(system)
        self._database = database
        self._caller = caller

    async def get_patient(self, patient: str | int) -> Patient | None:
        found = await self._system.get_patient(patient)
        return found if await self._knows(_NOBODY if found is None else found.id) else None

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        found = await self._system.get_appointment(appointment_id)
        return found if await self._knows(_NOBODY if found is None else found.patient_id) else None

    async def check_booking(
        self,
        slot: SlotRef,
        patient_id: str,
        now: datetime,
        moved: Appointment | None = None,
        hold_id: str | None = None,
    ) -> BookingCheck | None:
        checked = await self._system.check_booking(slot, patient_id, now, moved, hold_id)
        knows = await self._knows(patient_id)
        return checked if checked is None or knows else replace(checked, patient_seen=None)

    async def slot_by_hours(self, slot: SlotRef, now: datetime) -> None:
        """Every booking is checked here first."""

    async def list_appointments(
        self, wanted: AppointmentFilter, *, limit: int, after: AppointmentPosition | None
    ) -> AppointmentPage:
        return await self._system.list_appointments(
            replace(wanted, known_to=self._caller.client_id), limit=limit, after=after
        )

    async def _knows(self, patient_id: str) -> bool:
        """Asked also where nothing was found: an unknown patient takes as long as one that does not exist."""
        sql, caller = "SELECT known_to($1, $2, $3)", self._caller
        return bool(await self._database.fetchval(sql, caller.practice_id, caller.client_id, [patient_id]))
