"""Implements the port for a practice with the native calendar.

A search reads the changed calendars of its providers and the directory's version in one round trip. If the version has
changed, it loads the directory and searches again, so an answer never uses old hours or appointments.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.availability import Busy, room
from frontdesk.domain.directory import Directory
from frontdesk.domain.names import digits
from frontdesk.domain.patients import Contact, Patient, name_key
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.directories import DirectoryCache, StoredDirectory
from frontdesk.store.rows import from_row
from frontdesk.systems.changes import Change
from frontdesk.systems.native import rows
from frontdesk.systems.native.calendar_cache import CalendarCache, to_read
from frontdesk.systems.native.changes import as_json
from frontdesk.systems.native.opening_times import Offer, OpeningTimesCache
from frontdesk.systems.native.search import Search
from frontdesk.systems.offers import named, offered
from frontdesk.systems.port import (
    AppointmentFilter,
    AppointmentPage,
    AppointmentPosition,
    BookingCheck,
    Capability,
    FoundSlots,
    Outcome,
    PatientSearch,
    SlotQuery,
    SlotState,
    SystemUnavailable,
    Versions,
    WriteRecord,
)

_WRITE_ATTEMPTS = 2
_STALE_ATTEMPTS = 5
_MOST_SEARCHED = 200  # patients that a search reads before it sorts them


class NativeCalendar:
    """What the native systems of all practices share: the database and its caches."""

    def __init__(self, database: Database, directories: DirectoryCache) -> None:
        self.database = database
        self.directories = directories
        self.opening = OpeningTimesCache()
        self.calendars = CalendarCache()


class NativeSystem:
    kind = "native"
    remote = False
    capabilities = frozenset(Capability)

    def __init__(self, calendar: NativeCalendar, practice_id: int, known_version: int) -> None:
        self._calendar = calendar
        self._database = calendar.database
        self._practice_id = practice_id
        self._known_version = known_version
        self.versions: Versions | None = None

    async def directory(self) -> Directory:
        try:
            stored = await self._stored(self._known_version)
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error
        if self.versions is None:
            self.versions = Versions(stored.version)
        return stored.directory

    async def find_slots(
        self, query: SlotQuery, now: datetime, *, most: int, after: tuple[int, int, int] | None
    ) -> FoundSlots:
        version = self._known_version
        for _ in range(_STALE_ATTEMPTS):
            stored = await self._stored(version)
            offers = self._calendar.opening.offers(self._practice_id, stored, query)
            search = Search(stored.directory, offers, query, now, most, after)
            self.versions = None
            known = self._calendar.calendars.known(self._practice_id, search.provider_ids)
            known_until = min((known[each].end if each in known else 0 for each in search.provider_ids), default=0)
            for begin, end in search.windows(known_until - search.margin):
                version, open_starts = await self._open_starts(search, begin, end, now)
                if version != stored.version or search.look(begin, end, open_starts):
                    break
            if version == stored.version:
                return FoundSlots(query.visit_type_id, search.procedure, search.found())
        raise SystemUnavailable

    async def slot_state(self, slot: SlotRef, now: datetime) -> SlotState | None:
        checked = await self.check_booking(slot, "", now, None)
        return None if checked is None else checked.slot

    async def check_booking(
        self, slot: SlotRef, patient_id: str, now: datetime, moved: Appointment | None
    ) -> BookingCheck | None:
        starts = datetime.fromtimestamp(slot.start * 60, tz=UTC)
        [row] = await self._fetch(
            "SELECT * FROM booking_context($1, $2, $3, $4, $5, $6)",
            self._practice_id,
            patient_id,
            slot.provider_id,
            starts,
            starts + timedelta(minutes=slot.duration_minutes),
            None if moved is None else moved.id,
        )
        self.versions = Versions(row["version"], row["calendar"])
        stored = await self._stored(row["version"])
        directory = stored.directory
        found = named(directory, slot)
        if found is None:
            return None
        provider, location, visit_type, procedure = found
        available = (
            offered(provider, visit_type, procedure, location)
            and procedure.duration_minutes == slot.duration_minutes
            and self._calendar.opening.offer(self._practice_id, stored, provider, location).times.is_open(
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

    async def search_patients(self, search: PatientSearch, *, most: int) -> list[Patient]:
        found = await self._fetch(
            "SELECT * FROM search_patients($1, $2, $3, $4, $5, $6)",
            self._practice_id,
            [first for first, _ in search.names],
            [last for _, last in search.names],
            search.phone_tail,
            search.dob,
            _MOST_SEARCHED,
        )
        found.sort(key=lambda row: (row["last_key"], row["name_key"], row["number"]))
        return [rows.patient(row) for row in found[:most]]

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
        listing = None if after is None else after.listing
        locations, froms, tos = None, None, None
        if wanted.first is not None or wanted.last is not None:
            directory = await self.directory()
            locations, froms, tos = rows.day_windows(directory, wanted.first, wanted.last)
        found = await self._fetch(
            "SELECT (found).*, listed_under, snapshot, began_at "
            "FROM appointment_page($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
            self._practice_id,
            wanted.patient_id,
            wanted.provider_id,
            wanted.location_id,
            wanted.visit_type_id,
            wanted.procedure_id,
            locations,
            froms,
            tos,
            None if after is None else after.starts_at,
            None if after is None else after.id,
            None if listing is None else listing.snapshot,
            None if listing is None else listing.began_at,
            wanted.known_to,
            limit + 1,
        )
        shown = await self._named_in_directory([rows.appointment(row) for row in found[:limit]])
        return AppointmentPage(shown, rows.position(found[limit - 1]) if len(found) > limit else None)

    async def get_appointment(self, appointment_id: str) -> Appointment | None:
        found = await self._fetch("SELECT * FROM get_appointment($1, $2)", self._practice_id, appointment_id)
        return (await self._named_in_directory([rows.appointment(found[0])]))[0] if found else None

    async def _named_in_directory(self, found: list[Appointment]) -> list[Appointment]:
        """Reloads the directory if it lacks a record that these appointments refer to."""
        directory = await self.directory()
        if any(named(directory, appointment) is None for appointment in found):
            self._known_version = (await self._calendar.directories.newest(self._practice_id)).version
        return found

    async def perform(self, change: Change, record: WriteRecord) -> Outcome:
        intent = record.intent
        arguments = (
            self._practice_id,
            change.version,
            change.kind,
            as_json(change),
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
                # With an intent the call is idempotent: a retry executes it or finds the stored result.
                if intent is None or attempt == _WRITE_ATTEMPTS:
                    raise
        assert row is not None
        return Outcome(row["outcome"], row["reason"], None if row["result"] is None else orjson.loads(row["result"]))

    async def _open_starts(
        self, search: Search, begin: int, end: int, now: datetime
    ) -> tuple[int, Callable[[Offer, int, int], Sequence[int]]]:
        """Reads the calendars that are not cached or have changed. Returns the directory's version, and a function for
        the open starts of an offer."""
        calendars, procedure = self._calendar.calendars, search.procedure
        kept = calendars.known(self._practice_id, search.provider_ids)
        until, minute = end + search.margin, int(now.timestamp()) // 60
        wanted = {each: to_read(kept.get(each), begin, until, minute, search.horizon) for each in search.provider_ids}
        found = await self._fetch(
            "SELECT * FROM changed_calendars($1, $2, $3, $4, $5)",
            self._practice_id,
            search.provider_ids,
            *([*column] for column in zip(*wanted.values(), strict=True)) if wanted else ([], [], []),
        )
        if self.versions is None:
            self.versions = Versions(found[0]["version"], found[0]["calendar"])
        for row in found:
            if (provider_id := row["provider_id"]) is not None:
                kept[provider_id] = calendars.learn(
                    self._practice_id, provider_id, row["changes"], wanted[provider_id], row["appointments"]
                )

        def open_starts(offer: Offer, first: int, last: int) -> Sequence[int]:
            assert procedure is not None
            calendar = kept[offer.provider.id]
            if not search.is_wide:
                gaps = room(calendar.busy, offer.provider.capacity, procedure)
                return offer.times.fitting(procedure.duration_minutes, first, last, gaps, search.most)
            starts = calendars.all_open_starts(self._practice_id, procedure, offer, calendar)
            at = bisect_left(starts, first)
            return starts[at : min(at + search.most, bisect_left(starts, last, at))]

        return found[0]["version"], open_starts

    async def _stored(self, version: int) -> StoredDirectory:
        return await self._calendar.directories.at(self._practice_id, version)

    async def _fetch(self, sql: str, *args: Any) -> list[Any]:
        try:
            return await self._database.fetch(sql, *args)
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error
