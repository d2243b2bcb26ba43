"""Connected assistants: who connected what and when, what they may do, and disconnecting them."""

from starlette.responses import Response

from frontdesk.access.clients.resources import MCP_RESOURCE
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.connect import GROUPS


async def _list(request: ConsoleRequest) -> Response:
    public_url = request.console.settings.public_url
    return request.render(
        "assistants.html",
        title=_("Connected assistants"),
        connections=await request.desk.assistants.all(request.context),
        are_allowed=await request.desk.assistants.are_allowed(request.context),
        groups=GROUPS,
        address=public_url + MCP_RESOURCE,
        is_public=public_url.startswith("https://"),
    )


async def _disconnect(request: ConsoleRequest) -> Response:
    await request.desk.assistants.disconnect(request.context, request.param("client_id"))
    return request.redirect("/assistants", notice="assistant_disconnected")


PAGES = (
    Page("GET", "/assistants", _list),
    Page("POST", "/assistants/{client_id}/disconnect", _disconnect),
)
