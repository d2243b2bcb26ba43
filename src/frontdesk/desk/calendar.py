"""A day or a week of the calendar, read through the practice's scheduling system.

Showing names of patients is recorded. A request that finds nothing new shows nothing and leaves no record.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal, Protocol, TypeVar

from frontdesk.desk.actors import actors_of
from frontdesk.desk.applied_overrides import AppliedOverride, current_overrides, overrides_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.desk.opening_hours import somebody_works
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory, Location
from frontdesk.domain.errors import Problem
from frontdesk.domain.holds import Hold
from frontdesk.domain.local_time import instant_at, local_date, local_day_bounds, minute_of
from frontdesk.domain.patients import Contact
from frontdesk.engine.execute import Systems
from frontdesk.store.database import Database
from frontdesk.systems.port import AppointmentFilter, Capability, SchedulingSystem, appointment_pages

_MAX_APPOINTMENTS = 3000
_DAYS_AHEAD = 14  # in which the next working day is looked for
_BOOKED = "SELECT * FROM appointment_changes($1, $2, 'book_appointment')"


@dataclass(frozen=True, slots=True)
class CalendarQuery:
    """`day` None is today or the next working day; `location_id` None is every location, if they share a zone."""

    day: date | None = None
    span: Literal["day", "week", "month"] = "day"
    location_id: int | None = None
    providers: tuple[int, ...] = ()  # none: all
    visit_types: tuple[int, ...] = ()  # none: all
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class FoundAppointments:
    """What a page of the calendar is made of. All locations share a zone."""

    query: CalendarQuery
    directory: Directory
    locations: Sequence[Location]
    days: Sequence[date]
    now: datetime
    appointments: Sequence[Appointment]
    holds: Sequence[Hold]
    contacts: Mapping[str, Contact]  # patients by id
    actors: Mapping[str, Actor]
    overrides: Mapping[str, AppliedOverride]  # by appointment
    hours_known: bool  # False: the hours are in the practice's own system
    is_complete: bool  # False: there are more appointments than a page can hold


class Shown(Protocol):
    @property
    def patients(self) -> Collection[str]:
        """The ids of the patients whose names are shown."""


ShownT = TypeVar("ShownT", bound=Shown)


@dataclass(frozen=True, slots=True)
class Calendar:
    database: Database
    systems: Systems

    async def directory(self, context: ActionContext) -> Directory:
        return await (await self.systems(context.staff.caller())).directory()

    async def next_working_day(self, context: ActionContext, query: CalendarQuery) -> date | None:
        """The day to show instead of today; None: today, if it has hours or appointments, or nobody has hours."""
        system = await self.systems(context.staff.caller())
        if Capability.OPENING_HOURS not in system.capabilities:
            return None
        directory = await system.directory()
        locations = shown_locations(directory, query.location_id)
        today = local_date(minute_of(context.now), locations[0].time_zone)
        if somebody_works(directory, locations, query.providers, today):
            return None
        found, _whole = await shown_appointments(system, query, locations, [today])
        ahead = [] if found else [today + timedelta(days=number) for number in range(1, _DAYS_AHEAD + 1)]
        return next((day for day in ahead if somebody_works(directory, locations, query.providers, day)), None)

    async def version(self, context: ActionContext, query: CalendarQuery) -> Sequence[object] | None:
        """Changes with all that `read` finds, except the names of staff and clients. None if the scheduling system
        would have to read the appointments."""
        system = await self.systems(context.staff.caller())
        if system.own_calendar is None:
            return None
        directory = await system.directory()
        locations = shown_locations(directory, query.location_id)
        today = local_date(minute_of(context.now), locations[0].time_zone)
        days = _days(query, today)
        checksum = await system.own_calendar.calendar_checksum(_wanted(directory, query, locations, days), context.now)
        if system.calendar.versions is None:
            return None
        return checksum, system.calendar.versions.directory, days, today

    async def read(
        self,
        context: ActionContext,
        query: CalendarQuery,
        lay_out: Callable[[FoundAppointments], Awaitable[ShownT | None]],
        *,
        purpose: Literal["calendar", "day_sheet"] = "calendar",
    ) -> ShownT | None:
        """Reads the appointments and records whose names the page that `lay_out` makes of them shows. It returns None
        if there is nothing new to show, which leaves no record."""
        found = await self._find(context, query, with_holds=purpose == "calendar")
        shown = await lay_out(found)
        if shown is not None:
            patients = found.contacts.keys() & shown.patients
            await context.record(f"console.{purpose}", *sorted(patients), read=True)
        return shown

    async def _find(self, context: ActionContext, query: CalendarQuery, *, with_holds: bool) -> FoundAppointments:
        system = await self.systems(context.staff.caller())
        directory = await system.directory()
        locations = shown_locations(directory, query.location_id)
        days = _days(query, local_date(minute_of(context.now), locations[0].time_zone))
        found, is_complete = await shown_appointments(system, query, locations, days)
        found = await self._with_bookers(context, found)
        directory = await system.directory()  # reading may have loaded a newer one
        contacts = await system.patients.contacts(list({each.patient_id for each in found})) if found else {}
        holds = await _holds(system, query, locations, days, context.now) if with_holds else []
        bookers = {each.booked_by for each in found if each.booked_by} | {each.client_id for each in holds}
        overrides = await overrides_of(self.database, context.practice_id, [each.id for each in found])
        return FoundAppointments(
            query=query,
            directory=directory,
            locations=locations,
            days=days,
            now=context.now,
            appointments=found,
            holds=holds,
            contacts=contacts,
            actors=await actors_of(self.database, context.practice_id, bookers),
            overrides=current_overrides(overrides),
            hours_known=Capability.OPENING_HOURS in system.capabilities,
            is_complete=is_complete,
        )

    async def _with_bookers(self, context: ActionContext, found: Sequence[Appointment]) -> list[Appointment]:
        """Fills in who booked them from the audit trail where the calendar does not know."""
        unsaid = [each.id for each in found if each.booked_by is None]
        if not unsaid:
            return list(found)
        rows = await self.database.fetch(_BOOKED, context.practice_id, unsaid)
        by = {row["appointment_id"]: row["actor"] for row in rows if row["outcome"] == "executed"}
        return [replace(each, booked_by=each.booked_by or by.get(each.id)) for each in found]


def shown_locations(directory: Directory, location_id: int | None) -> list[Location]:
    """The locations of one page, which share a zone: the given one, or all, or the first if zones differ."""
    active = [location for location in directory.locations.values() if location.active]
    if location_id is not None:
        active = [location for location in active if location.id == location_id]
    if not active:
        raise Problem("not_found", "There is no such location.")
    if len({location.time_zone for location in active}) > 1:
        return active[:1]
    return active


def _days(query: CalendarQuery, today: date) -> list[date]:
    day = query.day or today
    if query.span == "day":
        return [day]
    monday = day - timedelta(days=day.weekday())
    return [monday + timedelta(days=number) for number in range(7)]


async def shown_appointments(
    system: SchedulingSystem, query: CalendarQuery, locations: Sequence[Location], days: Sequence[date]
) -> tuple[list[Appointment], bool]:
    """The appointments that a page shows, also those from before midnight, and whether these are all."""
    if Capability.LIST_APPOINTMENTS not in system.capabilities:
        raise Problem("capability_not_supported")
    places, begin = {location.id for location in locations}, _begin(locations, days)
    found: list[Appointment] = []
    is_complete = True
    async for page in appointment_pages(system, _wanted(await system.directory(), query, locations, days)):
        if len(found) >= _MAX_APPOINTMENTS:
            is_complete = not page
            break
        found += page
    return [
        each
        for each in found
        if each.location_id in places
        and each.ends_at > begin
        and (query.cancelled or each.status != "cancelled")
        and (not query.providers or each.provider_id in query.providers)
        and (not query.visit_types or each.visit_type_id in query.visit_types)
    ], is_complete


def _wanted(
    directory: Directory, query: CalendarQuery, locations: Sequence[Location], days: Sequence[date]
) -> AppointmentFilter:
    """What a page shows, as far as a scheduling system can be asked for it."""
    return AppointmentFilter(
        provider_id=query.providers[0] if len(query.providers) == 1 else None,
        location_id=locations[0].id if len(locations) == 1 else None,
        first=days[0],
        last=days[-1],
        earlier=_longest(directory),
    )


def _longest(directory: Directory) -> timedelta:
    """How long before a day an appointment may begin that lasts into it."""
    minutes = [each.duration_minutes for kind in directory.visit_types.values() for each in kind.procedures]
    return timedelta(minutes=max(minutes, default=0))


def _begin(locations: Sequence[Location], days: Sequence[date]) -> datetime:
    return instant_at(local_day_bounds(days[0], locations[0].time_zone)[0])


async def _holds(
    system: SchedulingSystem, query: CalendarQuery, locations: Sequence[Location], days: Sequence[date], now: datetime
) -> list[Hold]:
    if system.holds is None:
        return []
    places, begin = {location.id for location in locations}, _begin(locations, days)
    end = instant_at(local_day_bounds(days[-1], locations[0].time_zone)[1])
    return [
        each
        for each in await system.holds.list_holds(begin - _longest(await system.directory()), end, now)
        if each.location_id in places
        and each.ends_at > begin
        and (not query.providers or each.provider_id in query.providers)
    ]
