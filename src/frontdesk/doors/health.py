"""Health checks: /healthz for the process; /readyz for the database, its schema and the background work."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.doors.http_request import request_of
from frontdesk.doors.responses import TRACE_HEADER


def health_routes(unreadiness: Callable[[], Awaitable[str | None]], failing: Callable[[], list[str]]) -> list[Route]:
    """`unreadiness()` says why the database cannot be used, or None; `failing()` names failing background steps."""

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "up"}, headers=_headers(request))

    async def readyz(request: Request) -> Response:
        reason, steps = await unreadiness(), failing()
        state = {"failing": steps} if steps else {}
        if reason is None:  # failing background work is reported, not refused: calls are still answered
            return JSONResponse({"status": "degraded" if steps else "ready", **state}, headers=_headers(request))
        return JSONResponse({"status": reason, **state}, 503, {**_headers(request), "Retry-After": "2"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _headers(request: Request) -> dict[str, str]:
    trace = {TRACE_HEADER: request_of(request.scope).request_id}
    return {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **trace}
