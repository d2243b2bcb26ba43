"""Lays out a calendar page: days, provider columns, lanes, open and closed time.

A column is shown for each provider who has hours or an appointment on the day. Times are the location's own.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from frontdesk.console.calendar.axis import HOUR, STEP, Axis, GridPosition
from frontdesk.console.calendar.view import CalendarEntry, CalendarView, Column, Day, Shade, ShadeKind
from frontdesk.console.domain_texts import rule_names
from frontdesk.console.language import gettext as _
from frontdesk.desk.calendar import FoundAppointments
from frontdesk.desk.names import names_of
from frontdesk.desk.opening_hours import open_spans
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.availability import time_away
from frontdesk.domain.directory import Location, Provider
from frontdesk.domain.holds import Hold
from frontdesk.domain.local_time import DAY_MINUTES, instant_at, local_date, local_day_bounds, minute_of, zone

_USUAL_HOURS = (8 * HOUR, 17 * HOUR)
_MIN_HOURS = 8 * HOUR
_MAX_FREE_LANES = 4  # beyond that, only lanes in use are shown
_USUAL_ROWS = 6  # of an appointment, on a day that has none
MAX_LANES = 12
HUES = 8


async def lay_out(found: FoundAppointments) -> CalendarView:
    """Places appointments and holds in the columns of the calendar.

    Without known hours nothing is shaded, and all providers of the locations are shown.
    """
    directory, locations, days, provider_ids = found.directory, found.locations, found.days, found.query.providers
    appointments: list[Appointment | Hold] = [*found.appointments, *found.holds]
    name = locations[0].time_zone
    minute = minute_of(found.now)
    today = local_date(minute, name)
    by_column: dict[tuple[date, int], list[Appointment | Hold]] = {}
    for appointment in appointments:
        starts, ends = minute_of(appointment.starts_at), minute_of(appointment.ends_at)
        for day in {local_date(starts, name), local_date(ends - 1, name)}:
            by_column.setdefault((day, appointment.provider_id), []).append(appointment)
    columns = {
        day: [
            (provider, open_spans(directory, provider, locations, day) if found.hours_known else [])
            for provider in directory.providers.values()
            if (not provider_ids or provider.id in provider_ids)
            and (
                (provider.active and _scheduled(provider, locations, day if found.hours_known else None))
                or (day, provider.id) in by_column
            )
        ]
        for day in days
    }
    axis = Axis(days, name, *_hours(columns, appointments, name))
    page = _Page(found, axis, name)
    shown = []
    for day in days:
        closures = [
            closure.reason or _("Closed")
            for location in locations
            for closure in location.closures
            if closure.first <= day <= closure.last
        ]
        filled = []
        for provider, spans in columns[day]:
            filled.append(page.column(day, provider, spans, closures, by_column.get((day, provider.id), [])))
            await asyncio.sleep(0)  # other calls do not wait for a whole page
        shown.append(
            Day(
                date=day,
                columns=filled,
                closures=closures,
                begins=axis.begins(day),
                clocks=axis.clocks(day),
                now=axis.place(day, minute, minute + 1) if day == today else None,
            )
        )
    shortest = min(
        (entry.place.rows for day in shown for column in day.columns for entry in column.entries), default=_USUAL_ROWS
    )
    return CalendarView(
        shown, name, axis.rows, shortest, axis.marks, locations, today, found.hours_known, found.is_complete
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """What the columns of a page share."""

    found: FoundAppointments
    axis: Axis
    zone: str

    def column(
        self,
        day: date,
        provider: Provider,
        spans: Sequence[tuple[int, int]],
        closures: Sequence[str],
        appointments: Sequence[Appointment | Hold],
    ) -> Column:
        shades = self._shades(day, provider, spans, [] if spans else closures) if self.found.hours_known else []
        capacity = min(provider.capacity, _MAX_FREE_LANES)
        entries = self._entries(day, capacity, appointments)
        lanes = max([capacity, *(entry.lane for entry in entries)])
        if lanes > 1:
            entries = [replace(entry, width=_width(entry, entries, capacity, lanes)) for entry in entries]
        opened = [(_local(start, self.zone), _local(end, self.zone)) for start, end in spans]
        return Column(provider.id, provider.name, provider.capacity, lanes, opened, shades, entries)

    def _shades(
        self, day: date, provider: Provider, spans: Sequence[tuple[int, int]], closures: Sequence[str]
    ) -> list[Shade]:
        begins, ends = local_day_bounds(day, self.zone)
        edges = [begins, *(edge for span in spans for edge in span), ends]
        away = (
            [] if closures else [(off.reason or _("Time off"), *time_away(off, self.zone)) for off in provider.time_off]
        )
        shaded: list[tuple[ShadeKind, str, int, int]] = [
            *(("closed", _("Closed"), start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)),
            *(("closure", reason, begins, ends) for reason in closures),
            *(("off", reason, max(start, begins), min(end, ends)) for reason, start, end in away),
        ]
        first, last = _local(begins, self.zone), _local(ends, self.zone)
        shades = [
            Shade("missing", place, _("This hour does not exist"), first, last) for place in self.axis.missing(day)
        ]
        for kind, label, start, end in shaded:
            place = self.axis.place(day, start, end) if start < end else None
            if place is not None:
                shades.append(Shade(kind, place, label, _local(start, self.zone), _local(end, self.zone)))
        return shades

    def _entries(self, day: date, capacity: int, appointments: Sequence[Appointment | Hold]) -> list[CalendarEntry]:
        """Appointments that overlap are side by side; those in a row share a lane. Those against the rules have lanes
        of their own, right of the capacity. Cancelled ones come last."""
        lanes: list[list[tuple[int, int, GridPosition]]] = []  # start, end and place of what is in each lane, in order
        hues = {number: 1 + at % HUES for at, number in enumerate(self.found.directory.visit_types)}
        entries = []
        beside = capacity  # the first lane of those against the rules
        for appointment in sorted(appointments, key=self._order):
            start, end = minute_of(appointment.starts_at), minute_of(appointment.ends_at)
            place = self.axis.place(day, start, end)
            if place is None:
                continue
            against = appointment.id in self.found.overrides
            lane, place = _take_lane(lanes, start, end, place, beside if against else 0)
            if not against:
                beside = max(beside, len(lanes))
            entries.append(
                CalendarEntry(
                    id=appointment.id,
                    start=_local(start, self.zone),
                    end=_local(end, self.zone),
                    place=place,
                    lane=min(lane + 1, MAX_LANES),
                    width=1,
                    hue=hues[appointment.visit_type_id],
                    **self._details(appointment),
                )
            )
        return sorted(entries, key=lambda entry: (entry.start.timestamp(), entry.lane))

    def _details(self, shown: Appointment | Hold) -> dict[str, Any]:  # arguments of an entry
        details: dict[str, object] = dict(names_of(shown, self.found.directory))
        if isinstance(shown, Hold):
            until = _local(minute_of(shown.held_until), self.zone)
            actor = self.found.actors.get(shown.client_id)
            held = {"status": "held", "patient_id": "", "patient": None, "booked_by": actor, "moved": False}
            return details | held | {"held_until": until}
        override = self.found.overrides.get(shown.id)
        return details | {
            "status": shown.status,
            "patient_id": shown.patient_id,
            "patient": self.found.contacts.get(shown.patient_id),
            "booked_by": self.found.actors.get(shown.booked_by or ""),
            "moved": shown.rescheduled_from is not None,
            "against_rules": None if override is None else rule_names(override.rules),
        }

    def _order(self, shown: Appointment | Hold) -> tuple[bool, bool, datetime, str]:
        cancelled = isinstance(shown, Appointment) and shown.status == "cancelled"
        return cancelled, shown.id in self.found.overrides, shown.starts_at, shown.id


def _take_lane(
    lanes: list[list[tuple[int, int, GridPosition]]], start: int, end: int, place: GridPosition, beside: int
) -> tuple[int, GridPosition]:
    """Takes the first lane from `beside` on in which nothing overlaps. Returns it and the place there: a row begun by
    the one before is left to it."""
    lanes.extend([] for _ in range(beside - len(lanes)))
    for number, taken in enumerate(lanes[beside:], beside):
        at = bisect_left(taken, (start,))
        before, after = taken[at - 1] if at else None, taken[at] if at < len(taken) else None
        if (before is not None and before[1] > start) or (after is not None and after[0] < end):
            continue
        first, last = place.at, place.at + place.rows
        if before is not None:
            first = max(first, before[2].at + before[2].rows)
        if after is not None:
            last = min(last, after[2].at)
        if first < last:
            taken.insert(at, (start, end, place := GridPosition(first, last - first)))
            return number, place
    lanes.append([(start, end, place)])
    return len(lanes) - 1, place


def _width(entry: CalendarEntry, entries: Sequence[CalendarEntry], capacity: int, lanes: int) -> int:
    """Extends over free lanes to the right, except those of the capacity, which show that there is room."""
    if entry.lane < capacity:
        return 1
    ends = entry.place.at + entry.place.rows
    taken = [
        other.lane
        for other in entries
        if other.lane > entry.lane and other.place.at < ends and other.place.at + other.place.rows > entry.place.at
    ]
    return min([lanes + 1, *taken]) - entry.lane


def _hours(
    columns: Mapping[date, Sequence[tuple[Provider, Sequence[tuple[int, int]]]]],
    appointments: Sequence[Appointment | Hold],
    name: str,
) -> tuple[int, int]:
    """The first and last hour to show."""
    spans = {span for providers in columns.values() for _, open_spans in providers for span in open_spans}
    spans |= {(minute_of(each.starts_at), minute_of(each.ends_at)) for each in appointments}
    if not spans:
        return _USUAL_HOURS
    walls = [(_wall(start, name), _wall(end - 1, name) + 1) for start, end in spans]
    if any(start >= end for start, end in walls):  # over midnight, or a repeated hour
        return 0, DAY_MINUTES
    opens = min(start for start, _ in walls) // HOUR * HOUR
    closes = max(-(-max(end for _, end in walls) // HOUR) * HOUR, opens + _MIN_HOURS)
    return min(opens, DAY_MINUTES - HOUR), min(closes, DAY_MINUTES)


def _scheduled(provider: Provider, locations: Iterable[Location], day: date | None) -> bool:
    """Whether the provider has weekly hours there on that day, or on any day."""
    places = {location.id for location in locations}
    return any(
        hours.location_id in places
        and (day is None or day.weekday() in hours.days)
        and (day is None or hours.effective_from is None or hours.effective_from <= day)
        and (day is None or hours.effective_to is None or day <= hours.effective_to)
        for hours in provider.hours
    )


@lru_cache(maxsize=4096)  # the columns of a page, and pages of the same days, share most times
def _local(minute: int, name: str) -> datetime:
    return instant_at(minute).astimezone(zone(name))


def _wall(minute: int, name: str) -> int:
    local = _local(minute, name)
    return local.hour * HOUR + local.minute // STEP * STEP
