"""Shows what patients have left behind, and writes it down."""

from starlette.responses import Response

from frontdesk.console.forms import errors_of
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.navigation import NavItem
from frontdesk.domain.errors import Problem
from frontdesk.features.lost_property.lost_items import LostItems
from frontdesk.texts import N_

_PATH = "/lost-property"
NAVIGATION = {"Front desk": (NavItem(_PATH, N_("Lost property"), "list", "staff"),)}
NOTICES = {"lost_item_added": N_("The lost item has been written down.")}


async def _show(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    return request.render(
        "lost_property/list.html",
        title=_("Lost property"),
        status=200 if refused is None else refused.status,
        items=await request.services[LostItems].of(request.context.practice_id),
        errors={} if refused is None else errors_of(refused),
    )


async def _add(request: ConsoleRequest) -> Response:
    try:
        await request.services[LostItems].add(request.context, request.form.get("what"), request.form.get("key"))
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _show(request, problem)
    return request.redirect(_PATH, notice="lost_item_added")


PAGES = (Page("GET", _PATH, _show), Page("POST", _PATH, _add))
