"""What open pages ask the service for by themselves: a stream that tells a calendar to refresh, and the session.

The stream carries no data, and ends with the session or the process.
"""

import time
from collections.abc import AsyncIterator
from contextlib import ExitStack

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.desk.desk import outages_as_problems
from frontdesk.desk.live_updates import Listener, TooManyStreams
from frontdesk.domain.errors import Problem

HEARTBEAT_SECONDS = 15.0
_CHECK_SECONDS = 5.0
_RETRY = b"retry: 2000\n\n"
_CHANGED = b"event: calendar\ndata: changed\n\n"
_SIGNED_OUT = b"event: signed-out\ndata: bye\n\n"
_ALIVE = b": still here\n\n"


class _Stream(StreamingResponse):
    """Releases its slot however it ends, even if it is never read."""

    def __init__(self, request: ConsoleRequest, listener: Listener, place: ExitStack) -> None:
        super().__init__(
            _events(request, listener),
            headers={"X-Accel-Buffering": "no"},  # proxies must not buffer it
            media_type="text/event-stream",
        )
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


async def _live(request: ConsoleRequest) -> Response:
    staff, place = request.staff, ExitStack()
    try:
        listener = place.enter_context(
            request.desk.live.listening(staff.practice_id, staff.practice_slug, staff.staff_id)
        )
    except TooManyStreams:
        raise Problem("rate_limited", "Too many live pages are open.", retry_after=30) from None
    return _Stream(request, listener, place)


async def _events(request: ConsoleRequest, listener: Listener) -> AsyncIterator[bytes]:
    yield _RETRY
    checked = time.monotonic()
    while (signal := await listener.next(HEARTBEAT_SECONDS)) != "over":
        if time.monotonic() - checked >= _CHECK_SECONDS:
            checked = time.monotonic()
            try:
                with outages_as_problems():
                    signed_in = await request.still_signed_in()
            except Problem:  # unknown: the browser reconnects and asks again
                return
            if not signed_in:
                yield _SIGNED_OUT
                return
        yield _CHANGED if signal == "changed" else _ALIVE


async def _session(request: ConsoleRequest) -> Response:
    """Whose session this browser has, and the token of its forms: a page that outlived its session goes on with it."""
    return JSONResponse({"staff": request.staff.staff_id, "csrf": request.csrf})


PAGES = (
    Page("GET", "/live", _live, counts_as_use=False),
    Page("GET", "/session", _session, counts_as_use=False),
)
