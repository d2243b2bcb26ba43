"""Open slots of one practice, from cached calendars that are unchanged and from those it reads.

If the directory changes during a read, it is read again, so an answer never uses old hours or appointments.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from frontdesk.domain.availability import MAX_APPOINTMENT_MINUTES, Busy
from frontdesk.domain.booking_rules import ProposedVisit
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.store.calendar_versions import CurrentVersions, PracticeVersions
from frontdesk.store.database import Database
from frontdesk.store.directories import DirectoryCache, StoredDirectory
from frontdesk.systems.native.calendar_cache import CalendarCache
from frontdesk.systems.native.calendar_reader import CalendarReader
from frontdesk.systems.native.opening_times import OpeningTimesCache
from frontdesk.systems.native.slot_search import SlotSearch
from frontdesk.systems.offers import directory_records, is_offered
from frontdesk.systems.port import FoundSlots, SlotPosition, SlotQuery, SlotState, SystemUnavailable, Versions

_STALE_ATTEMPTS = 5


class NativeCalendar:
    """What the native systems of all practices share: the database and its caches."""

    def __init__(self, database: Database, directories: DirectoryCache, current_versions: CurrentVersions) -> None:
        self.database = database
        self.directories = directories
        self.current_versions = current_versions
        self.opening = OpeningTimesCache()
        self.calendars = CalendarCache()

    def clear(self) -> None:
        """Empties the caches of what may be newer than the database."""
        self.directories.clear()
        self.calendars.clear()


class NativeSlots:
    def __init__(self, calendar: NativeCalendar, practice_id: int, current: PracticeVersions | None) -> None:
        self._calendar = calendar
        self._practice_id = practice_id
        self._read_already = current

    async def find(
        self, query: SlotQuery, now: datetime, limit: int, after: SlotPosition | None
    ) -> tuple[FoundSlots, Versions]:
        for _ in range(_STALE_ATTEMPTS):
            stored, current = await self.current()
            offers = self._calendar.opening.offers(self._practice_id, stored, query)
            search = SlotSearch(stored.directory, offers, query, now, limit, after)
            reader = self._reader(search.provider_ids, current, now)
            open_starts = partial(
                self._calendar.calendars.open_starts,
                self._practice_id,
                reader.calendars,
                search.procedure,
                search.limit,
            )
            version = stored.version
            for begin, end in search.windows(reader.cached_until - search.margin):
                version = await reader.read(begin, end + search.margin, search.horizon) or version
                if version != stored.version or search.add_starts(begin, end, open_starts):
                    break
            if version == stored.version:
                found = FoundSlots(query.visit_type_id, search.procedure, search.found())
                return found, Versions(version, reader.changes)
        raise SystemUnavailable

    async def state(self, slot: SlotRef, now: datetime) -> tuple[SlotState | None, Versions]:
        for _ in range(_STALE_ATTEMPTS):
            stored, current = await self.current()
            if slot.provider_id not in stored.directory.providers:
                return None, Versions(stored.version, {})
            reader = self._reader([slot.provider_id], current, now)
            end = slot.start + MAX_APPOINTMENT_MINUTES
            version = await reader.read(slot.start, end, end) or stored.version
            if version == stored.version:
                calendar, begin = reader.calendars[slot.provider_id], slot.start - MAX_APPOINTMENT_MINUTES
                state = self.compute_state(slot, stored, now, calendar.busy.starting(begin, end))
                if state is not None and not state.available and calendar.has_holds:
                    unheld = self.compute_state(slot, stored, now, calendar.appointments.starting(begin, end))
                    state = replace(state, held=unheld is not None and unheld.available)
                return state, Versions(version, reader.changes)
        raise SystemUnavailable

    def compute_state(self, slot: SlotRef, stored: StoredDirectory, now: datetime, busy: Busy) -> SlotState | None:
        """The state of a slot, given what takes its provider's time. None if the practice does not have what the slot
        id names."""
        found = directory_records(stored.directory, slot)
        if found is None:
            return None
        provider, location, visit_type, procedure = found
        available = (
            is_offered(provider, visit_type, procedure, location)
            and procedure.duration_minutes == slot.duration_minutes
            and self._calendar.opening.offer(self._practice_id, stored, provider, location).times.is_open(
                procedure, slot.start, now.timestamp(), busy
            )
        )
        return SlotState(available, stored.directory, visit_type, procedure, stored.version)

    def proposed(self, slot: SlotRef, stored: StoredDirectory) -> ProposedVisit | None:
        """The visit whether its time is open or not; None if the practice does not have what the slot id names."""
        found = directory_records(stored.directory, slot)
        if found is None:
            return None
        provider, location, visit_type, procedure = found
        times = self._calendar.opening.offer(self._practice_id, stored, provider, location).times
        return ProposedVisit(stored.directory, provider, location, visit_type, procedure, slot.start, times)

    async def current(self) -> tuple[StoredDirectory, PracticeVersions]:
        """The versions of this call, and the directory at that version."""
        for _ in range(_STALE_ATTEMPTS):
            current, self._read_already = self._read_already, None
            if current is None:
                current = await self._calendar.current_versions.read(self._practice_id)
            stored = await self._calendar.directories.at(self._practice_id, current.directory)
            if stored.version == current.directory:
                return stored, current
            await self._calendar.directories.newest(self._practice_id)  # the cached version may be lost by a fail-over
        raise SystemUnavailable

    def _reader(self, provider_ids: Sequence[int], current: PracticeVersions, now: datetime) -> CalendarReader:
        calendar = self._calendar
        return CalendarReader(calendar.database, calendar.calendars, self._practice_id, provider_ids, current, now)
