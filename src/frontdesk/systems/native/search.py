"""One slot search against one version of a practice's directory: who and where, which dates, and what is open.

Owns the choice of providers, locations and windows. Refuses the database: busy times are handed in.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta

from frontdesk.domain.calendar import Busy, OpenTimes
from frontdesk.domain.directory import Directory, Location, Provider
from frontdesk.domain.local_time import local_date
from frontdesk.systems.offers import offered_pairs
from frontdesk.systems.port import OpenSlots, SlotQuery

_FIRST_LOOK_DAYS = 7  # an open-ended search reads ahead this far, then twice as far, until it has enough

Position = tuple[int, int, int]  # start, provider, location


class Search:
    def __init__(
        self,
        directory: Directory,
        open_times: Callable[[Provider, Location], OpenTimes],
        query: SlotQuery,
        now: datetime,
        most: int,
        after: Position | None,
    ) -> None:
        self._query, self._now, self._most, self._after = query, now.timestamp(), most, after
        visit_type = directory.visit_types.get(query.visit_type_id)
        self.procedure = visit_type.procedure(query.procedure_id) if visit_type is not None else None
        self._pairs: list[tuple[Provider, Location, OpenTimes]] = []
        if visit_type is not None and self.procedure is not None:
            for provider, location in offered_pairs(directory, visit_type, self.procedure, query):
                self._pairs.append((provider, location, open_times(provider, location)))
        self._first, self._last = self._dates(directory.practice.booking_horizon_days)
        if self._first > self._last:
            self._pairs.clear()
        # The version must be read even where nothing fits: the directory in hand may be an old one.
        self.provider_ids = sorted({provider.id for provider, _, _ in self._pairs}) or [query.provider_id or 0]

    def windows(self) -> Iterator[tuple[date, date]]:
        """The dates to look at: the asked ones at once, an open end in growing steps. Nowhere to look is one look."""
        at_once = self._query.last is not None or not self._pairs
        days = max((self._last - self._first).days + 1, 1) if at_once else _FIRST_LOOK_DAYS
        while True:
            last = min(self._first + timedelta(days=days - 1), self._last)
            yield self._first, last
            if last >= self._last or at_once:
                return
            days *= 2

    def minutes(self, first: date, last: date) -> tuple[int, int]:
        """The time in which appointments stand in the way of slots that start on these dates."""
        if self.procedure is None or not self._pairs:
            return 0, 0
        spans = [open_times.window(first, last) for _, _, open_times in self._pairs]
        taken = self.procedure.duration_minutes + self.procedure.buffer_after_minutes
        return min(start for start, _ in spans), max(end for _, end in spans) + taken

    def open_slots(self, first: date, last: date, busy: dict[int, Busy]) -> list[OpenSlots]:
        """The earliest open slots on these dates, at most as many as were asked for; those that start together in order
        of provider and location."""
        found = []
        for provider, location, open_times in self._pairs:
            assert self.procedure is not None
            after = None
            if self._after is not None:
                start, *place = self._after
                # Of slots that start together, those of a later provider and location are still to come.
                after = start - 1 if [provider.id, location.id] > place else start
            starts = open_times.starts(self.procedure, first, last, self._now, busy[provider.id], self._most, after)
            if starts:
                found.append(OpenSlots(provider.id, location.id, location.time_zone, starts))
        return found if len(self._pairs) <= 1 else self._merged(found, first, last)

    def _merged(self, found: Sequence[OpenSlots], first: date, last: date) -> list[OpenSlots]:
        # The last date ends at another moment in every zone. What starts after the first of these moments may come
        # later than a slot of the day after, which is looked at with the next window only.
        known_until = min(open_times.window(first, last)[1] for _, _, open_times in self._pairs)
        merged = sorted(
            (start, slots.provider_id, slots.location_id, slots.time_zone)
            for slots in found
            for start in slots.starts
            if start < known_until or last >= self._last
        )
        return [OpenSlots(provider, place, zone, [start]) for start, provider, place, zone in merged[: self._most]]

    def _dates(self, horizon_days: int) -> tuple[date, date]:
        """The first and the last date that can have open slots in any of the zones."""
        minute = int(self._now) // 60
        todays = [local_date(minute, location.time_zone) for _, location, _ in self._pairs]
        todays = todays or [local_date(minute, "UTC")]
        last = max(todays) + timedelta(days=horizon_days)
        if self._query.last is not None:
            last = min(last, self._query.last)
        return max(self._query.first or min(todays), min(todays)), last
