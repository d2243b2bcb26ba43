"""Confirmations: pending, and recently executed or expired."""

from starlette.responses import Response

from frontdesk.console.actions.confirmations import MOST, STATES
from frontdesk.console.visit import Page, Visit


async def _confirmations(visit: Visit) -> Response:
    asked = visit.request.query_params
    state = next((each for each in STATES if each == asked.get("state")), None)
    client_id = asked.get("client") or None
    found = await visit.desk.confirmations.recent(visit.context, client_id=client_id, state=state)
    return visit.render(
        "confirmations.html",
        title="Confirmations",
        found=found,
        state=state,
        states=STATES,
        client_id=client_id,
        most=MOST,
        now=visit.context.now,
    )


PAGES = (Page("GET", "/confirmations", _confirmations),)
