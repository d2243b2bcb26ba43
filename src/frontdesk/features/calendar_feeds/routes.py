"""Serves calendar feeds at GET /feeds/{secret}.ics. The secret is the only credential."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.console.guard import Console
from frontdesk.features.calendar_feeds.reading import CalendarFeeds
from frontdesk.web.http_request import address_of, request_of
from frontdesk.web.responses import TRACE_HEADER

_HEADERS = {
    "Cache-Control": "private, max-age=300",
    "Content-Disposition": 'inline; filename="calendar.ics"',
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}


def feed_routes(console: Console) -> list[Route]:
    feeds = console.desk.engine.services[CalendarFeeds]

    async def feed(request: Request) -> Response:
        request_id = request_of(request.scope).request_id
        body = await feeds.read(request.path_params["address"], address_of(request), request_id)
        return Response(body, media_type="text/calendar", headers={**_HEADERS, TRACE_HEADER: request_id})

    return [Route("/feeds/{address}.ics", feed)]
