"""Implements the port for a practice with the native calendar."""

from collections.abc import Awaitable, Sequence
from datetime import date, datetime, timedelta
from typing import TypeVar

import orjson
from asyncpg import Record

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.availability import Busy
from frontdesk.domain.directory import Directory
from frontdesk.domain.holds import Hold
from frontdesk.domain.local_time import instant_at
from frontdesk.domain.names import digits
from frontdesk.domain.patients import Contact, Patient, PhoneMatch, name_key, spelling_key
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.calendar_versions import PracticeVersions
from frontdesk.store.database import DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.directories import StoredDirectory
from frontdesk.store.rows import from_row
from frontdesk.systems.challenges import issue_challenge
from frontdesk.systems.changes import Book, Change, CreatePatient, UpdatePatient
from frontdesk.systems.native import rows
from frontdesk.systems.native.changes import as_json
from frontdesk.systems.native.slots import NativeCalendar, NativeSlots
from frontdesk.systems.offers import directory_records
from frontdesk.systems.port import (
    AppointmentFilter,
    AppointmentPage,
    AppointmentPosition,
    BookingCheck,
    BookingSeen,
    Capability,
    ChallengeRecord,
    FoundSlots,
    Outcome,
    OutcomeKind,
    OverrideCheck,
    PatientSearch,
    SchedulingSystem,
    SlotPosition,
    SlotQuery,
    SlotState,
    SystemUnavailable,
    Versions,
    WriteRecord,
)

_EVERYTHING = frozenset(Capability)
_WRITE_ATTEMPTS = 2
_NOT_BUSY = Busy((), (), ())
_MAX_SEARCHED = 200  # patients that a search reads before it sorts them

T = TypeVar("T")
Timed = TypeVar("Timed", Appointment, Hold)


class NativeSystem:
    def __init__(
        self, calendar: NativeCalendar, practice_id: int, known_version: int, current: PracticeVersions | None = None
    ) -> None:
        """`current` are the practice's versions, if the call has read them."""
        self._calendar = calendar
        self._database = calendar.database
        self._practice_id = practice_id
        self._known_version = known_version
        self._slots = NativeSlots(calendar, practice_id, current)
        self.versions: Versions | None = None

    @property
    def parts(self) -> SchedulingSystem:
        return SchedulingSystem(
            kind="native",
            remote=False,
            capabilities=_EVERYTHING,
            directory=self.directory,
            calendar=self,
            own_calendar=self,
            matching=self,
            searching=self,
            patients=self,
            appointments=self,
            bookings=self,
            overrides=self,
            holds=self,
            changes=self,
        )

    async def directory(self) -> Directory:
        stored = await self._unless_unavailable(self._stored(self._known_version))
        if self.versions is None:
            self.versions = Versions(stored.version)
        return stored.directory

    async def find_slots(
        self, query: SlotQuery, now: datetime, *, limit: int, after: SlotPosition | None
    ) -> FoundSlots:
        found, self.versions = await self._unless_unavailable(self._slots.find(query, now, limit, after))
        return found

    async def slot_state(self, slot: SlotRef, now: datetime) -> SlotState | None:
        state, self.versions = await self._unless_unavailable(self._slots.state(slot, now))
        return state

    async def check_booking(
        self,
        slot: SlotRef,
        patient_id: str,
        now: datetime,
        moved: Appointment | None = None,
        hold_id: str | None = None,
    ) -> BookingCheck | None:
        row = await self._booking_state(slot, patient_id, now, hold_id if moved is None else moved.id)
        stored = await self._stored(row["version"])
        slot_state = self._slots.compute_state(slot, stored, now, Busy(row["starts"], row["ends"], row["lanes"]))
        if slot_state is None:
            return None
        return BookingCheck(slot_state, row["patient_seen"], row["patient_busy"])

    async def check_override(
        self, slot: SlotRef, patient_id: str, now: datetime, moved: Appointment | None = None
    ) -> OverrideCheck | None:
        row = await self._booking_state(slot, patient_id, now, None if moved is None else moved.id)
        stored = await self._stored(row["version"])
        visit = self._slots.proposed(slot, stored)
        if visit is None:
            return None
        procedure = visit.procedure
        exists = (
            visit.provider.active and visit.location.active and visit.visit_type.active and procedure.active
        ) and procedure.duration_minutes == slot.duration_minutes
        busy, seen = Busy(row["starts"], row["ends"], row["lanes"]), bool(row["patient_seen"])
        broken = visit.broken_rules(busy, now.timestamp(), seen=seen)
        state = SlotState(exists, stored.directory, visit.visit_type, procedure, stored.version)
        return OverrideCheck(state, row["patient_seen"], row["patient_busy"], broken)

    async def _booking_state(self, slot: SlotRef, patient_id: str, now: datetime, except_id: str | None) -> Record:
        starts = instant_at(slot.start)
        [row] = await self._fetch(
            "SELECT * FROM booking_state($1, $2, $3, $4, $5, $6, $7)",
            self._practice_id,
            patient_id,
            slot.provider_id,
            starts,
            starts + timedelta(minutes=slot.duration_minutes),
            except_id,
            now,
        )
        return row

    async def find_hold(self, hold_id: str, client_id: str, now: datetime) -> Hold | None:
        sql = "SELECT * FROM find_hold($1, $2, $3, $4)"
        found = await self._fetch(sql, self._practice_id, client_id, hold_id, now)
        return (await self._named_in_directory([rows.hold(found[0])]))[0] if found else None

    async def list_holds(self, first: datetime, last: datetime, now: datetime) -> list[Hold]:
        sql = "SELECT * FROM list_holds($1, $2, $3, $4)"
        found = await self._fetch(sql, self._practice_id, first, last, now)
        return await self._named_in_directory([rows.hold(row) for row in found])

    async def slot_by_hours(self, slot: SlotRef, now: datetime) -> SlotState | None:
        stored = await self._unless_unavailable(self._stored(self._known_version))
        return self._slots.compute_state(slot, stored, now, _NOT_BUSY)

    async def match_patients(
        self, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
    ) -> list[Patient]:
        wanted = spelling_key(first_name, last_name)
        found = await self._with_name_key(first_name, last_name, phone, dob, phone_match)
        return [each for each in found if spelling_key(each.first_name, each.last_name) == wanted]

    async def _with_name_key(
        self, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
    ) -> list[Patient]:
        """Those who match, and those who would but for the marks of their names."""
        found = await self._fetch(
            "SELECT * FROM match_patients($1, $2, $3, $4, $5)",
            self._practice_id,
            name_key(first_name, last_name),
            dob,
            digits(phone),
            phone_match == "ending",
        )
        return [rows.patient(row) for row in found]

    async def search_patients(self, search: PatientSearch, *, limit: int) -> list[Patient]:
        found = await self._fetch(
            "SELECT * FROM search_patients($1, $2, $3, $4, $5, $6)",
            self._practice_id,
            [first for first, _ in search.names],
            [last for _, last in search.names],
            search.phone_tail,
            search.dob,
            _MAX_SEARCHED,
        )
        found.sort(key=lambda row: (row["last_key"], row["name_key"], row["number"]))
        return [rows.patient(row) for row in found[:limit]]

    async def get_patient(self, patient: str | int) -> Patient | None:
        by_id = isinstance(patient, str)
        found = await self._fetch(
            "SELECT * FROM get_patient($1, $2, $3)",
            self._practice_id,
            patient if by_id else None,
            None if by_id else patient,
        )
        return rows.patient(found[0]) if found else None

    async def contacts(self, patient_ids: Sequence[str]) -> dict[str, Contact]:
        found = await self._fetch("SELECT * FROM patient_contacts($1, $2)", self._practice_id, list(patient_ids))
        return {row["patient_id"]: from_row(Contact, row) for row in found}

    async def list_appointments(
        self, wanted: AppointmentFilter, *, limit: int, after: AppointmentPosition | None
    ) -> AppointmentPage:
        windows = None
        if wanted.first is not None or wanted.last is not None:
            # An appointment at a location that is missing in the cached directory would be left out.
            stored, _ = await self._unless_unavailable(self._slots.current())
            self._known_version = stored.version
            windows = rows.day_windows(stored.directory, wanted)
        found = await self._fetch(
            "SELECT (found).*, listed_under, snapshot, began_at FROM appointment_page($1, $2, $3, $4)",
            self._practice_id,
            rows.filter_json(wanted, windows),
            rows.position_json(after),
            limit + 1,
        )
        shown = await self._named_in_directory([rows.appointment(row) for row in found[:limit]])
        return AppointmentPage(shown, rows.position(found[limit - 1]) if len(found) > limit else None)

    async def calendar_checksum(self, wanted: AppointmentFilter, now: datetime) -> int:
        filtered = rows.filter_json(wanted, rows.day_windows(await self.directory(), wanted))
        sql = "SELECT calendar_checksum($1, $2, $3) AS checksum"
        [row] = await self._fetch(sql, self._practice_id, filtered, now)
        checksum: int = row["checksum"]
        return checksum

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        found = await self._fetch("SELECT * FROM get_appointment($1, $2)", self._practice_id, appointment_id)
        return (await self._named_in_directory([rows.appointment(found[0])]))[0] if found else None

    async def _named_in_directory(self, found: list[Timed]) -> list[Timed]:
        """Reloads the directory if it lacks a record that these appointments or holds refer to."""
        directory = await self.directory()
        if any(directory_records(directory, each) is None for each in found):
            self._known_version = (await self._calendar.directories.newest(self._practice_id)).version
        return found

    async def _namesakes(self, change: Change) -> list[tuple[str, str]]:
        """The names that only `name_key` takes for the patient's, which the database leaves out when it looks for
        duplicates. A patient who gets such a name before the commit is a conflict, which a retry resolves."""
        if not isinstance(change, CreatePatient | UpdatePatient):
            return []
        person = change.details
        wanted = spelling_key(person.first_name, person.last_name)
        found = await self._with_name_key(person.first_name, person.last_name, person.phone, person.dob)
        names = {(each.first_name, each.last_name) for each in found}
        return [name for name in names if spelling_key(*name) != wanted]

    async def perform(self, change: Change, record: WriteRecord) -> Outcome:
        intent = record.intent
        arguments = (
            self._practice_id,
            change.kind,
            as_json(change, record.members, await self._namesakes(change)),
            record.actor,
            record.operation,
            record.request_id,
            record.now,
            None if intent is None else intent.id,
            intent is not None and intent.is_key,
            None if intent is None else intent.fingerprint,
            record.keep_until,
        )
        sql = "SELECT * FROM commit_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        for attempt in range(1, _WRITE_ATTEMPTS + 1):
            try:
                row = await self._database.write(sql, *arguments)
                break
            except DatabaseUnavailable as error:
                # An earlier attempt was lost, and may have committed.
                raise (SystemUnavailable if attempt == 1 else OutcomeUnknown) from error
            except OutcomeUnknown:
                # With an intent the call is idempotent: a retry executes it or finds the stored result.
                if intent is None or attempt == _WRITE_ATTEMPTS:
                    raise
        assert row is not None
        return self._outcome(row["outcome"], row["reason"], row["result"])

    async def challenge(self, change: Change, record: ChallengeRecord) -> Outcome:
        booking = as_json(change, {}) if isinstance(change, Book) else None
        row = await issue_challenge(self._database, self._practice_id, record, booking)
        if row["outcome"] == "challenged":
            return Outcome("challenged", None, row)
        return self._outcome(row["outcome"], None, row["result"])

    def _outcome(self, kind: OutcomeKind, reason: str | None, result: str | None) -> Outcome:
        found = None if result is None else orjson.loads(result)
        if kind == "refused" and found is not None:
            seen = BookingSeen(found["available"], found["patientSeen"], found["patientBusy"])
            return Outcome(kind, reason, seen=seen)
        if kind == "stale":
            if found is not None:
                self._known_version = found["version"]
            return Outcome(kind, reason)
        return Outcome(kind, reason, found)

    async def _stored(self, version: int) -> StoredDirectory:
        return await self._calendar.directories.at(self._practice_id, version)

    async def _fetch(self, sql: str, *args: object) -> list[Record]:
        return await self._unless_unavailable(self._database.fetch(sql, *args))

    async def _unless_unavailable(self, reading: Awaitable[T]) -> T:
        try:
            return await reading
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error
