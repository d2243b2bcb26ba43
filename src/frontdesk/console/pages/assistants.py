"""Connected assistants: who connected what and when, what they may do, and disconnecting them."""

from starlette.responses import Response

from frontdesk.access.assistants.redirects import names_operator
from frontdesk.access.clients.resources import MCP_RESOURCE
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.connect import GROUPS


async def _list(request: ConsoleRequest) -> Response:
    public_url = request.console.settings.public_url
    connections = await request.desk.assistants.all(request.context)
    trusted = await request.desk.assistants.trusted_hosts(request.context) if request.context.staff.may("admin") else []
    connected = {each.callback_host for each in connections if each.revoked_at is None}
    return request.render(
        "assistants.html",
        title=_("Connected assistants"),
        connections=connections,
        hosts=[(host, host in trusted) for host in sorted({*filter(names_operator, connected), *trusted})],
        are_allowed=await request.desk.assistants.are_allowed(request.context),
        groups=GROUPS,
        address=public_url + MCP_RESOURCE,
        is_public=public_url.startswith("https://"),
    )


async def _disconnect(request: ConsoleRequest) -> Response:
    await request.desk.assistants.disconnect(request.context, request.param("client_id"))
    return request.redirect("/assistants", notice="assistant_disconnected")


async def _trust_or_distrust(request: ConsoleRequest) -> Response:
    trusted = request.page.path.endswith("/trust")
    await request.desk.assistants.change_trust(request.context, request.form.get("host"), trusted=trusted)
    return request.redirect("/assistants", notice="host_trusted" if trusted else "host_distrusted")


PAGES = (
    Page("GET", "/assistants", _list),
    Page("POST", "/assistants/{client_id}/disconnect", _disconnect),
    Page("POST", "/assistants/trust", _trust_or_distrust, role="admin"),
    Page("POST", "/assistants/distrust", _trust_or_distrust, role="admin"),
)
