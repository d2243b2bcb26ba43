"""Usage: rate limits and quotas of clients, and their requests over time."""

from starlette.responses import Response

from frontdesk.console.charts import error_meaning, errors_chart, requests_chart, share
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.desk.usage import SPANS
from frontdesk.domain.errors import CATALOGUE

_FIRST = "24h"


async def _usage(request: ConsoleRequest) -> Response:
    asked = request.http.query_params
    span = SPANS.get(asked.get("span", _FIRST), SPANS[_FIRST])
    uses = await request.desk.usage.of_clients(request.context)
    names = {use.client.client_id: use.client.name for use in uses}
    client_id = asked.get("client") if asked.get("client") in names else None
    counted = await request.desk.usage.over_time(request.context, span, request.zone, client_id)
    return request.render(
        "usage.html",
        title=_("Usage"),
        spans=list(SPANS.values()),
        span=span,
        client_id=client_id,
        names=names,
        uses=[use for use in uses if client_id in (None, use.client.client_id)],
        counted=counted,
        requests=requests_chart(counted, request.zone, request.formats),
        errors=errors_chart(counted, request.zone, request.formats),
        error_meaning=error_meaning,
        documented=CATALOGUE,
        share=share,
    )


PAGES = (Page("GET", "/usage", _usage, role="admin"),)
