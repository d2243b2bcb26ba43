"""Confirmations: pending, and recently executed or expired."""

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.desk.confirmations import MAX_SHOWN, STATES


async def _confirmations(request: ConsoleRequest) -> Response:
    asked = request.http.query_params
    state = next((each for each in STATES if each == asked.get("state")), None)
    client_id = asked.get("client") or None
    found = await request.desk.confirmations.recent(request.context, client_id=client_id, state=state)
    return request.render(
        "confirmations.html",
        title=_("Confirmations"),
        found=found,
        state=state,
        states=STATES,
        client_id=client_id,
        limit=MAX_SHOWN,
        now=request.context.now,
    )


PAGES = (Page("GET", "/confirmations", _confirmations),)
