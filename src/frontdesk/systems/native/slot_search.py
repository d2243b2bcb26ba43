"""One slot search against one version of a directory: the windows to read, and the earliest slots in order.

It does not read the database: offers and their open starts are passed in.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from frontdesk.domain.directory import Directory
from frontdesk.domain.local_time import DAY_MINUTES, minute_of
from frontdesk.systems.native.opening_times import Offers, ProviderOffers
from frontdesk.systems.offers import by_place
from frontdesk.systems.port import OpenSlots, SlotPosition, SlotQuery

_FIRST_WINDOW_DAYS = 7  # an open-ended search looks this far ahead, and then at all the rest


class SlotSearch:
    def __init__(
        self,
        directory: Directory,
        offers: Offers,
        query: SlotQuery,
        now: datetime,
        limit: int,
        after: SlotPosition | None,
    ) -> None:
        self.limit, self._at_once, self._after = limit, query.last is not None, after
        visit_type = directory.visit_types.get(query.visit_type_id)
        self.procedure = visit_type.procedure(query.procedure_id) if visit_type is not None else None
        # By time zone: earliest and latest start.
        self._reaches = {
            zone: times.reach(query.first, query.last, now.timestamp()) for zone, times in offers.time_zones.items()
        }
        open_zones = {zone for zone, (begin, end) in self._reaches.items() if begin < end}
        self._offers = offers if len(open_zones) == len(self._reaches) else offers.within(open_zones)
        self.provider_ids = self._offers.provider_ids
        self.horizon = minute_of(now) + (directory.practice.booking_horizon_days + 2) * DAY_MINUTES
        self._found: list[SlotPosition] = []  # in the order of the answer
        self._directory = directory

    def windows(self, known_until: int) -> Iterator[tuple[int, int]]:
        """The windows to read: a closed date range at once, an open end in two steps unless its calendars are cached.
        An empty window is read, too, because the cached directory may be out of date."""
        begin = min((begin for begin, _ in self._reaches.values()), default=0)
        end = max((end for _, end in self._reaches.values()), default=0)
        step = max(begin + _FIRST_WINDOW_DAYS * DAY_MINUTES, known_until)
        if self._at_once or step >= end:
            yield begin, end
        else:
            yield begin, step
            yield step, end

    @property
    def margin(self) -> int:
        """How far past a start to read appointments; at least a day, so that visits of any length share the cache."""
        if self.procedure is None:
            return 0
        return max(self.procedure.duration_minutes + self.procedure.buffer_after_minutes, DAY_MINUTES)

    def add_starts(
        self, begin: int, end: int, open_starts: Callable[[ProviderOffers, int, int], Sequence[int]]
    ) -> bool:
        """Adds starts in begin <= t < end, a window after all earlier ones; True once enough were found. `open_starts`
        returns a provider's starts between two times as `OpenWeeks` has them, at least as many as are wanted if there
        are."""
        found, limit, reaches, after = self._found, self.limit, self._reaches, self._after
        for offers in self._offers.each:
            provider, time_zone, location_ids, _ = offers
            first, last = reaches[time_zone]
            if first < begin:
                first = begin
            if last > end:
                last = end
            if len(found) == limit:  # later starts cannot be among the earliest; at another location an equal one can
                last = min(last, found[-1][0] + (found[-1][1] == provider.id))
            count = len(location_ids)
            first, last = first * count, last * count
            if after is not None:
                start, *place = after
                first = max(first, start * count + sum([provider.id, each] <= place for each in location_ids))
            if first >= last:
                continue
            earliest = open_starts(offers, first, last)
            if earliest:
                found += [(each // count, provider.id, location_ids[each % count]) for each in earliest]
                found.sort()
                del found[limit:]
        return len(found) >= limit

    def found(self) -> list[OpenSlots]:
        """The earliest slots, equal starts in order of provider and location."""
        return by_place(self._found, self._directory)
