"""Implements the port for a practice whose calendar is in a FHIR server.

One instance serves one call. It keeps what the call has read, so that a write updates exactly the versions that were
checked.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from secrets import token_hex
from typing import cast

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import instant_at, minute_of
from frontdesk.domain.patients import Contact, Patient, PhoneMatch
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.database import DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.changes import (
    Book,
    Change,
    ChangeStatus,
    CreatePatient,
    RecordChange,
    Reschedule,
    UpdatePatient,
)
from frontdesk.systems.fhir.reading.lookups import Reader
from frontdesk.systems.fhir.reading.open_slots import SlotFinder
from frontdesk.systems.fhir.records import PendingWrite
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.elements import Resource, reference_of
from frontdesk.systems.fhir.resources.patients import is_closed
from frontdesk.systems.fhir.resources.slots import Opening
from frontdesk.systems.fhir.transport.queries import CombinedQuery
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.fhir.write_data import WriteData
from frontdesk.systems.fhir.writing.steps import UNAVAILABLE, WriteOutcomeUnknown
from frontdesk.systems.fhir.writing.stored import StoredWrite
from frontdesk.systems.fhir.writing.writes import PreparedWrite, Writer
from frontdesk.systems.offers import directory_records, is_offered
from frontdesk.systems.port import (
    AppointmentFilter,
    AppointmentPage,
    AppointmentPosition,
    BookingCheck,
    ChallengeRecord,
    FoundSlots,
    Outcome,
    SchedulingSystem,
    SlotPosition,
    SlotQuery,
    SlotState,
    SystemUnavailable,
    Versions,
    WriteRecord,
)

LEASE_MARGIN = timedelta(seconds=30)
FIRST_CHECK = timedelta(seconds=2)  # when the reconciler begins to settle what is left
_TURNS, _TURN_SECONDS = 20, 0.1  # how long a write waits for another of the same subject


class FhirSystem:
    versions: Versions | None = None

    def __init__(self, upstream: Upstream, version: int, practice: PracticeMap, on_open: Callable[[int], None]) -> None:
        self._upstream = upstream
        self._version = version
        self._practice = practice
        self._on_open = on_open
        deadline = upstream.deadline()
        self._reader = Reader(upstream, practice, deadline)
        self._finder = SlotFinder(upstream, practice, deadline)
        self._deadline = deadline
        self._read: dict[str, Resource] = {}  # by our id
        self._patients: dict[str, str] = {}  # patient ids by appointment id
        self._openings: dict[tuple[int, int, int], Opening] = {}  # by provider, location and start

    @property
    def parts(self) -> SchedulingSystem:
        return SchedulingSystem(
            kind="fhir",
            remote=True,
            capabilities=self._upstream.capabilities,
            directory=self.directory,
            calendar=self,
            matching=self,
            patients=self,
            appointments=self,
            bookings=self,
            changes=self,
        )

    async def directory(self) -> Directory:
        return self._practice.directory

    async def find_slots(
        self, query: SlotQuery, now: datetime, *, limit: int, after: SlotPosition | None
    ) -> FoundSlots:
        return await self._finder.find(query, now, limit, after)

    async def slot_state(self, slot: SlotRef, now: datetime) -> SlotState | None:
        found = directory_records(self._practice.directory, slot)
        if found is None:
            return None
        provider, location, visit_type, procedure = found
        available = is_offered(provider, visit_type, procedure, location)
        if available:

            async def queries() -> Sequence[CombinedQuery[object]]:
                return [await self._finder.opening(slot, visit_type, procedure, now)]

            [opening] = await self._upstream.read_live(self._deadline, self._practice, queries)
            available = opening is not None
        return SlotState(available, self._practice.directory, visit_type, procedure, self._version)

    async def check_booking(
        self,
        slot: SlotRef,
        patient_id: str,
        now: datetime,
        moved: Appointment | None = None,
        hold_id: str | None = None,  # noqa: ARG002
    ) -> BookingCheck | None:
        found = directory_records(self._practice.directory, slot)
        if found is None:
            return None
        provider, location, visit_type, procedure = found
        before = None if moved is None else self._read[moved.id]
        starts = instant_at(slot.start)
        ends = starts + timedelta(minutes=slot.duration_minutes)
        record = await self._reader.patient_record(patient_id)

        async def queries() -> Sequence[CombinedQuery[object]]:
            beside = [] if record is None else await self._finder.practitioners_of(provider.id)
            together = record.reference if record is not None and beside else None
            opening = await self._finder.opening(slot, visit_type, procedure, now, before, together)
            if record is None:
                return [opening]
            own = frozenset() if before is None else frozenset((reference_of(before),))
            seen = visit_type.patient_kind != "any" or not provider.accepts_new_patients
            return [
                opening,
                self._reader.patient_query(record, seen=seen),
                self._reader.is_busy(record.reference, starts, ends, own, beside),
            ]

        found_live = await self._upstream.read_live(self._deadline, self._practice, queries)
        opening, patient, busy = (*found_live, None, False)[:3]
        if opening is not None:
            self._openings[slot.provider_id, slot.location_id, slot.start] = opening
        seen = None
        if patient is not None and not (moved is None and is_closed(patient[1])):
            person, self._read[patient_id] = patient
            seen = person.seen
        available = is_offered(provider, visit_type, procedure, location) and opening is not None
        state = SlotState(available, self._practice.directory, visit_type, procedure, self._version)
        return BookingCheck(state, seen, busy)

    async def match_patients(
        self, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
    ) -> list[Patient]:
        found = await self._reader.matching(first_name, last_name, phone, dob, phone_match)
        return await self._reader.patients(found)

    async def get_patient(self, patient: str | int) -> Patient | None:
        found = await self._reader.patient(patient)
        if found is None:
            return None
        self._read[found[0].id] = found[1]
        return found[0]

    async def contacts(self, patient_ids: Sequence[str]) -> dict[str, Contact]:
        return await self._reader.contacts(patient_ids)

    async def list_appointments(
        self, wanted: AppointmentFilter, *, limit: int, after: AppointmentPosition | None
    ) -> AppointmentPage:
        return await self._reader.page(wanted, limit, after)

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        found = await self._reader.appointment(appointment_id)
        if found is None:
            return None
        self._read[appointment_id] = found[1]
        self._patients[appointment_id] = found[0].patient_id
        return found[0]

    async def perform(self, change: Change, record: WriteRecord) -> Outcome:
        if not isinstance(change, RecordChange):
            raise Problem("capability_not_supported")
        asked = self._asked(change)
        intent = record.intent
        stored = StoredWrite(self._upstream.server, self._practice, asked, self._patient(change))
        write = PendingWrite(
            id=token_hex(16),
            intent=token_hex(32) if intent is None else intent.id.hex(),
            holder=token_hex(8),
            phase="executing",
            change=change.kind,
            data=stored.data(change, record.now) | cast(WriteData, record.members),
            began_at=record.now,
        )
        lease = timedelta(seconds=2 * self._upstream.settings.timeout_seconds) + LEASE_MARGIN
        for _ in range(_TURNS):
            outcome, result = await self._upstream.records.begin(write, change, record, record.now + lease)
            if outcome != "busy":
                break
            await asyncio.sleep(_TURN_SECONDS)
        else:
            raise SystemUnavailable(1)
        if outcome not in ("begun", "begun again"):
            return Outcome(outcome, None, result)  # type: ignore[arg-type]
        return await self._carry_out(write, replace(asked, is_resent=outcome == "begun again"), record)

    async def challenge(self, change: Change, record: ChallengeRecord) -> Outcome:  # noqa: ARG002
        return Outcome("challenged", None, await self._upstream.records.issue_challenge(record))

    async def _carry_out(self, write: PendingWrite, asked: PreparedWrite, record: WriteRecord) -> Outcome:
        writer = Writer(self._upstream, self._practice, self._upstream.deadline(), write, asked)
        records, practice_id = self._upstream.records, self._upstream.records.practice_id
        due = record.now + FIRST_CHECK
        try:
            ending = await writer.execute(record.now)
        except WriteOutcomeUnknown as outcome:
            self._on_open(practice_id)
            try:
                await records.defer(write, record.now, due, writer.subjects, wrong=outcome.wrong)
            except DatabaseUnavailable as error:
                raise OutcomeUnknown from error
            return Outcome("incomplete")
        if writer.releases:
            self._on_open(practice_id)
        result = await records.finish(write, ending, writer.releases, record.now, record.keep_until, due)
        if result is None:  # the lease ended, and the reconciler settles it
            return Outcome("incomplete")
        if ending.outcome == UNAVAILABLE:
            raise ending.unavailable
        executed = ending.outcome in ("executed", "unchanged")
        return Outcome(ending.outcome, ending.reason, result if executed else None)  # type: ignore[arg-type]

    def _patient(self, change: RecordChange) -> str:
        if isinstance(change, Book | Reschedule):
            return reference_of(self._read[change.patient_id])
        return self._patients.get(change.appointment_id, "") if isinstance(change, ChangeStatus) else change.patient_id

    def _asked(self, change: RecordChange) -> PreparedWrite:
        """The change with the records that this call has read for it."""
        if isinstance(change, CreatePatient | UpdatePatient):
            return PreparedWrite(change, self._read.get(change.patient_id))
        before = self._read.get(change.appointment_id)
        if isinstance(change, ChangeStatus):
            return PreparedWrite(change, before)
        booking = change.booking
        start = minute_of(booking.starts_at)
        return PreparedWrite(change, before, self._openings.get((booking.provider_id, booking.location_id, start)))
