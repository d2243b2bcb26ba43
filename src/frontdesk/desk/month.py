"""How full each day of a month is. It contains nothing about patients, and leaves no record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from frontdesk.desk.calendar import CalendarQuery, shown_locations
from frontdesk.desk.context import ActionContext
from frontdesk.domain.directory import Directory, Location
from frontdesk.domain.local_time import instant_at, local_date, local_day_bounds, minute_of
from frontdesk.engine.execute import Systems
from frontdesk.store.database import Database
from frontdesk.systems.port import Capability

_COUNTED = """
SELECT (starts_at AT TIME ZONE $2)::date AS day, count(*) AS appointments,
       (sum(extract(epoch FROM ends_at - starts_at)) / 60)::integer AS minutes
FROM appointment
WHERE practice_id = $1 AND starts_at >= $3 AND starts_at < $4 AND status <> 'cancelled' AND location_id = ANY ($5)
  AND ($6::integer[] = '{}' OR provider_id = ANY ($6)) AND ($7::integer[] = '{}' OR visit_type_id = ANY ($7))
GROUP BY 1
"""
_WEEKS = 6  # always: a month that needs fewer takes the same room


@dataclass(frozen=True, slots=True)
class DayCount:
    appointments: int = 0  # without cancelled ones
    minutes: int = 0


@dataclass(frozen=True, slots=True)
class MonthCounts:
    query: CalendarQuery
    directory: Directory
    locations: Sequence[Location]
    day: date
    today: date
    counts: Mapping[date, DayCount]
    counted: bool  # False: the appointments are in the practice's own system


@dataclass(frozen=True, slots=True)
class Months:
    database: Database
    systems: Systems

    async def read(self, context: ActionContext, query: CalendarQuery) -> MonthCounts:
        """The month of the query's day."""
        system = await self.systems(context.staff.caller())
        directory = await system.directory()
        locations = shown_locations(directory, query.location_id)
        today = local_date(minute_of(context.now), locations[0].time_zone)
        day = query.day or today
        counted = Capability.OPENING_HOURS in system.capabilities
        counts = (
            await self._counts(context, query, [each.id for each in locations], day, locations[0].time_zone)
            if counted
            else {}
        )
        return MonthCounts(query, directory, locations, day, today, counts, counted)

    async def _counts(
        self, context: ActionContext, query: CalendarQuery, location_ids: list[int], day: date, time_zone: str
    ) -> dict[date, DayCount]:
        days = days_shown(day)
        bounds = local_day_bounds(days[0], time_zone)[0], local_day_bounds(days[-1], time_zone)[1]
        begin, end = (instant_at(minute) for minute in bounds)
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(
                _COUNTED,
                context.practice_id,
                time_zone,
                begin,
                end,
                location_ids,
                list(query.providers),
                list(query.visit_types),
            )
        return {row["day"]: DayCount(row["appointments"], row["minutes"]) for row in rows}


def days_shown(day: date) -> list[date]:
    """Whole weeks from the Monday on or before the first of the month."""
    first = day.replace(day=1)
    monday = first - timedelta(days=first.weekday())
    return [monday + timedelta(days=number) for number in range(7 * _WEEKS)]
