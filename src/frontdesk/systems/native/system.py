"""The native scheduling system of one practice, behind the port.

A search reads busy times and the directory's version in one round trip; where the version has moved on, the directory
is loaded anew and the search repeated, so an answer never rests on old hours.
"""

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import orjson

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.calendar import Busy, OpenTimes
from frontdesk.domain.directory import Directory, Location, Provider
from frontdesk.domain.names import digits
from frontdesk.domain.patients import Patient, name_key
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.directories import DirectoryCache, StoredDirectory
from frontdesk.systems.native import rows
from frontdesk.systems.native.search import Search
from frontdesk.systems.offers import named, offered
from frontdesk.systems.port import (
    AppointmentFilter,
    BookingCheck,
    Change,
    FoundSlots,
    OpenSlots,
    Outcome,
    SlotQuery,
    SlotState,
    SystemUnavailable,
    WriteRecord,
)

_WRITE_ATTEMPTS = 2
_STALE_ATTEMPTS = 5


class NativeCalendar:
    """What the native systems of all practices share: the database, the directories, and computed opening times."""

    def __init__(self, database: Database, directories: DirectoryCache) -> None:
        self.database = database
        self.directories = directories
        self._open_times: dict[int, tuple[int, dict[tuple[int, int], OpenTimes]]] = {}

    def open_times(
        self, practice_id: int, stored: StoredDirectory, provider: Provider, location: Location
    ) -> OpenTimes:
        version, by_pair = self._open_times.get(practice_id, (0, {}))
        if version != stored.version:
            by_pair = {}
            self._open_times[practice_id] = (stored.version, by_pair)
        pair = (provider.id, location.id)
        if pair not in by_pair:
            by_pair[pair] = OpenTimes(stored.directory.practice, provider, location)
        return by_pair[pair]


class NativeSystem:
    kind = "native"

    def __init__(
        self, calendar: NativeCalendar, practice_id: int, known_version: int, supports: frozenset[str]
    ) -> None:
        self._calendar = calendar
        self._database = calendar.database
        self._practice_id = practice_id
        self._known_version = known_version
        self.supports = supports

    async def directory(self) -> Directory:
        try:
            return (await self._stored(self._known_version)).directory
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error

    async def find_slots(
        self, query: SlotQuery, now: datetime, *, most: int, after: tuple[int, int, int] | None
    ) -> FoundSlots:
        version = self._known_version
        for _ in range(_STALE_ATTEMPTS):
            stored = await self._stored(version)
            open_times = partial(self._calendar.open_times, self._practice_id, stored)
            search = Search(stored.directory, open_times, query, now, most, after)
            found: list[OpenSlots] = []
            for first, last in search.windows():
                version, busy = await self._busy_times(search, first, last)
                if version != stored.version:
                    break
                found = search.open_slots(first, last, busy)
                if sum(len(slots.starts) for slots in found) >= most:
                    break
            if version == stored.version:
                return FoundSlots(query.visit_type_id, search.procedure, found)
        raise SystemUnavailable

    async def slot_state(self, slot: SlotRef, now: datetime) -> SlotState | None:
        checked = await self.check_booking(slot, "", now, None)
        return None if checked is None else checked.slot

    async def check_booking(
        self, slot: SlotRef, patient_id: str, now: datetime, moved: Appointment | None
    ) -> BookingCheck | None:
        starts = datetime.fromtimestamp(slot.start * 60, tz=UTC)
        row = await self._fetchrow(
            "SELECT * FROM booking_context($1, $2, $3, $4, $5, $6)",
            self._practice_id,
            patient_id,
            slot.provider_id,
            starts,
            starts + timedelta(minutes=slot.duration_minutes),
            None if moved is None else moved.id,
        )
        stored = await self._stored(row["version"])
        directory = stored.directory
        found = named(directory, slot)
        if found is None:
            return None
        provider, location, visit_type, procedure = found
        available = (
            offered(provider, visit_type, procedure, location)
            and procedure.duration_minutes == slot.duration_minutes
            and self._calendar.open_times(self._practice_id, stored, provider, location).is_open(
                procedure, slot.start, now.timestamp(), Busy(row["starts"], row["ends"], row["lanes"])
            )
        )
        return BookingCheck(
            SlotState(available, directory, visit_type, procedure),
            row["patient_seen"],
            row["patient_busy"],
            stored.version,
        )

    async def match_patients(self, first_name: str, last_name: str, phone: str, dob: date) -> list[Patient]:
        found = await self._fetch(
            "SELECT * FROM match_patients($1, $2, $3, $4)",
            self._practice_id,
            name_key(first_name, last_name),
            dob,
            digits(phone),
        )
        return [rows.patient(row) for row in found]

    async def get_patient(self, patient: str | int) -> Patient | None:
        by_id = isinstance(patient, str)
        row = await self._fetchrow(
            "SELECT * FROM get_patient($1, $2, $3)",
            self._practice_id,
            patient if by_id else None,
            None if by_id else patient,
        )
        return None if row is None else rows.patient(row)

    async def list_appointments(
        self, wanted: AppointmentFilter, *, most: int, after: tuple[datetime, str] | None
    ) -> list[Appointment]:
        locations, froms, tos = None, None, None
        if wanted.first is not None or wanted.last is not None:
            directory = await self.directory()
            locations, froms, tos = rows.day_windows(directory, wanted.first, wanted.last)
        found = await self._fetch(
            "SELECT * FROM list_appointments($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            self._practice_id,
            wanted.patient_id,
            wanted.provider_id,
            wanted.location_id,
            wanted.visit_type_id,
            wanted.procedure_id,
            locations,
            froms,
            tos,
            None if after is None else after[0],
            None if after is None else after[1],
            most,
        )
        return await self._named_in_directory([rows.appointment(row) for row in found])

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        row = await self._fetchrow("SELECT * FROM get_appointment($1, $2)", self._practice_id, appointment_id)
        return None if row is None else (await self._named_in_directory([rows.appointment(row)]))[0]

    async def _named_in_directory(self, found: list[Appointment]) -> list[Appointment]:
        """Sees to it that the directory in hand knows every name that these appointments refer to."""
        directory = await self.directory()
        if any(not _knows(directory, appointment) for appointment in found):
            self._known_version = (await self._calendar.directories.newest(self._practice_id)).version
        return found

    async def perform(self, change: Change, record: WriteRecord) -> Outcome:
        intent = record.intent
        arguments = (
            self._practice_id,
            change.version,
            change.kind,
            orjson.dumps(change.data).decode(),
            record.actor,
            record.operation,
            record.request_id,
            record.now,
            None if intent is None else intent.id,
            intent is not None and intent.is_key,
            None if intent is None else intent.fingerprint,
            record.keep_until,
        )
        sql = "SELECT * FROM commit_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        for attempt in range(1, _WRITE_ATTEMPTS + 1):
            try:
                row = await self._database.write(sql, *arguments)
                break
            except DatabaseUnavailable as error:
                raise SystemUnavailable from error
            except OutcomeUnknown:
                # With an intent the call is idempotent: a second one executes, or finds what the first one did.
                if intent is None or attempt == _WRITE_ATTEMPTS:
                    raise
        assert row is not None
        return Outcome(row["outcome"], row["reason"], None if row["result"] is None else orjson.loads(row["result"]))

    async def _busy_times(self, search: Search, first: date, last: date) -> tuple[int, dict[int, Busy]]:
        from_minute, to_minute = search.minutes(first, last)
        found = await self._fetch(
            "SELECT * FROM busy_times($1, $2, $3, $4)",
            self._practice_id,
            search.provider_ids,
            datetime.fromtimestamp(from_minute * 60, tz=UTC),
            datetime.fromtimestamp(to_minute * 60, tz=UTC),
        )
        return found[0]["version"], {
            row["provider_id"]: Busy(row["starts"], row["ends"], row["lanes"]) for row in found
        }

    async def _stored(self, version: int) -> StoredDirectory:
        return await self._calendar.directories.at(self._practice_id, version)

    async def _fetch(self, sql: str, *args: Any) -> list[Any]:
        try:
            return await self._database.fetch(sql, *args)
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error

    async def _fetchrow(self, sql: str, *args: Any) -> Any:
        try:
            return await self._database.fetchrow(sql, *args)
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error


def _knows(directory: Directory, appointment: Appointment) -> bool:
    visit_type = directory.visit_types.get(appointment.visit_type_id)
    return (
        appointment.provider_id in directory.providers
        and appointment.location_id in directory.locations
        and visit_type is not None
        and visit_type.procedure(appointment.procedure_id) is not None
    )
