"""The calendars of one call's providers: those that are cached and unchanged, and those that it reads."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.domain.local_time import minute_of
from frontdesk.store.calendar_versions import PracticeVersions
from frontdesk.store.database import Database
from frontdesk.systems.native.calendar_cache import (
    CalendarCache,
    CalendarRange,
    CalendarRow,
    ProviderCalendar,
    covers,
    range_to_read,
)


class CalendarReader:
    def __init__(
        self,
        database: Database,
        cache: CalendarCache,
        practice_id: int,
        provider_ids: Sequence[int],
        current: PracticeVersions,
        now: datetime,
    ) -> None:
        """`current` are the practice's versions, read during this call."""
        self._now = now
        minute = self._minute = minute_of(now)
        self._database = database
        self._cache = cache
        self._practice_id = practice_id
        self._provider_ids = provider_ids
        self._cached = cache.cached(practice_id, provider_ids)
        # Current as of this call, and read as far as it needed them.
        self.calendars: dict[int, ProviderCalendar] = {}
        for provider_id, calendar in self._cached.items():
            if minute < calendar.until:
                if calendar.changes == current.calendars.get(provider_id, 0):
                    self.calendars[provider_id] = calendar
                elif booked := self._with_last_booking(provider_id, calendar, current):
                    self.calendars[provider_id] = booked
        self._cached |= self.calendars
        self.changes = {provider_id: calendar.changes for provider_id, calendar in self.calendars.items()}
        """Of each provider's calendar, as the first read saw it."""

    def _with_last_booking(
        self, provider_id: int, calendar: ProviderCalendar, current: PracticeVersions
    ) -> ProviderCalendar | None:
        booking = current.last_booking(provider_id)
        return None if booking is None else self._cache.add_booking(self._practice_id, calendar, booking)

    @property
    def cached_until(self) -> int:
        ends = (self._cached[each].end if each in self._cached else 0 for each in self._provider_ids)
        return min(ends, default=0)

    async def read(self, begin: int, end: int, horizon: int) -> int | None:
        """Reads the calendars that are not known from begin to end. Returns the version of the directory they were read
        under, or None if there was nothing to read."""
        wanted = {
            each: range_to_read(self._cached.get(each), begin, end, self._minute, horizon)
            for each in self._provider_ids
            if each not in self.calendars or not covers(self.calendars[each], begin, end)
        }
        if not wanted:
            return None
        known = {each: self._known(each, span) for each, span in wanted.items()}
        rows = await self._database.fetch(
            "SELECT * FROM changed_busy_times($1, $2, $3, $4, $5, $6, $7)",
            self._practice_id,
            [*wanted],
            [None if calendar is None else calendar.changes for calendar in known.values()],
            [None if calendar is None else calendar.mark for calendar in known.values()],
            *([*column] for column in zip(*wanted.values(), strict=True)),
            self._now,
        )
        for _, provider_id, *row in rows:
            read, span = CalendarRow(*row), wanted[provider_id]
            updated = self._cache.update(self._practice_id, provider_id, span, read, known[provider_id])
            self._cached[provider_id] = self.calendars[provider_id] = updated
            self.changes.setdefault(provider_id, read.changes)
        version: int = rows[0]["version"]
        return version

    def _known(self, provider_id: int, span: CalendarRange) -> ProviderCalendar | None:
        """The cached calendar, also one that has changed since, if it covers the range."""
        cached = self._cached.get(provider_id)
        return cached if cached is not None and covers(cached, *span) else None
