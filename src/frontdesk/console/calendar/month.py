"""The month view: for each day how many appointments there are, how full it is, and whether it is closed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from frontdesk.console.language import gettext as _
from frontdesk.console.tags import tag_of
from frontdesk.desk.month import DayCount, MonthCounts, days_shown
from frontdesk.desk.opening_hours import open_spans
from frontdesk.domain.directory import Location


@dataclass(frozen=True, slots=True)
class MonthDay:
    date: date
    in_month: bool
    appointments: int
    percent: int  # booked, of the opening hours
    closed: str | None  # why: a closure, or no provider has hours


@dataclass(frozen=True, slots=True)
class MonthView:
    first: date
    weeks: Sequence[Sequence[MonthDay]]
    today: date
    zone: str
    locations: Sequence[Location]
    counted: bool  # False: the appointments are in the practice's own system
    tag: str = ""


def lay_out_month(found: MonthCounts) -> MonthView:
    directory, locations, provider_ids = found.directory, found.locations, found.query.providers
    providers = [
        each for each in directory.providers.values() if each.active and (not provider_ids or each.id in provider_ids)
    ]
    days = []
    for shown in days_shown(found.day):
        count = found.counts.get(shown, DayCount())
        minutes = sum(
            provider.capacity * (end - start)
            for provider in providers
            for start, end in open_spans(directory, provider, locations, shown)
        )
        percent = min(100, round(100 * count.minutes / minutes)) if minutes else 100 if count.appointments else 0
        closed = _why_closed(locations, shown) if found.counted and not minutes else None
        days.append(MonthDay(shown, shown.month == found.day.month, count.appointments, percent, closed))
    weeks = [days[at : at + 7] for at in range(0, len(days), 7)]
    view = MonthView(found.day.replace(day=1), weeks, found.today, locations[0].time_zone, locations, found.counted)
    return replace(view, tag=tag_of((view.weeks, view.today, view.zone)))


def _why_closed(locations: Sequence[Location], day: date) -> str:
    reasons = {
        closure.reason or _("Closed")
        for location in locations
        for closure in location.closures
        if closure.first <= day <= closure.last
    }
    return ", ".join(sorted(reasons)) or _("Nobody in")
