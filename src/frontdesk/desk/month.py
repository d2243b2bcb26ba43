"""How full each day of a month is. It contains nothing about patients, and leaves no record."""

from dataclasses import dataclass, replace
from datetime import date

from frontdesk.console.calendar.month import DayCount, MonthView, days_shown, lay_out_month
from frontdesk.console.tags import tag_of
from frontdesk.desk.calendar import CalendarQuery, shown_locations
from frontdesk.desk.context import ActionContext
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


@dataclass(frozen=True, slots=True)
class Months:
    database: Database
    systems: Systems

    async def read(self, context: ActionContext, query: CalendarQuery, *, known: str | None = None) -> MonthView | None:
        """The month of the query's day; None if it still has the tag `known`."""
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
        view = lay_out_month(directory, locations, day, today, counts, query.providers, counted=counted)
        tag = tag_of((view.weeks, view.today, view.zone))
        return None if tag == known else replace(view, tag=tag)

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
