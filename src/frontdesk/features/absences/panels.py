"""Links to absences, on the calendar and on the page of blocked time."""

from collections.abc import Mapping

from frontdesk.console.guard import ConsoleRequest
from frontdesk.console.panels import Panel, ShownDays
from frontdesk.features.absences.absences import Absences


async def _tool(_request: ConsoleRequest, _days: ShownDays | None) -> Mapping[str, object]:
    return {}


async def _current(request: ConsoleRequest, days: ShownDays | None) -> Mapping[str, object] | None:
    if days is None:
        return None
    found = await request.services[Absences].current(request.context, days.first, days.last)
    providers = days.directory.providers
    return {"absences": [{"id": each.absence_id, "provider": providers[each.provider_id].name} for each in found]}


async def _block(_request: ConsoleRequest, given: Mapping[str, str]) -> Mapping[str, object] | None:
    return {} if given["who"].startswith("provider-") else None


TOOL = Panel("absences/tool.html", _tool, place="tools")
NOTICES = Panel("absences/notices.html", _current, place="notices")
BLOCK = Panel("absences/block.html", _block)
