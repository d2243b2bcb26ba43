"""The view of a calendar page with tags, by which an open page tells what it shows already."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from frontdesk.console.calendar.layout import lay_out
from frontdesk.console.calendar.view import CalendarView
from frontdesk.console.tags import tag_of
from frontdesk.desk.calendar import FoundAppointments


def tagged_view(
    known: str | None = None, known_columns: frozenset[str] = frozenset()
) -> Callable[[FoundAppointments], Awaitable[CalendarView | None]]:
    """Lays out what was found. None if the view still has the tag `known`; columns with known tags are left out."""

    async def laid_out(found: FoundAppointments) -> CalendarView | None:
        view = await _tagged(await lay_out(found))
        if known == view.tag:
            return None
        tags = frozenset(column.tag for day in view.days for column in day.columns)
        return replace(view, unchanged=known_columns & tags)

    return laid_out


async def _tagged(view: CalendarView) -> CalendarView:
    """Adds tags that change with what the page shows, not with the time of day."""
    days = []
    for day in view.days:
        columns = []
        for column in day.columns:
            columns.append(replace(column, tag=tag_of((day.date, column), 12)))
            await asyncio.sleep(0)  # other calls do not wait for a whole page
        days.append(replace(day, columns=columns))
    still = [(day.date, day.closures, day.begins, [column.tag for column in day.columns]) for day in days]
    shown = (still, view.zone, view.rows, view.shortest, view.today, view.is_complete)
    return replace(view, days=days, tag=tag_of(shown))
