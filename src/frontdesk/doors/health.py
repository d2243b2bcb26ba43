"""Health checks: /healthz for the process; /readyz for the database, its schema and the background work."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.web.http_request import request_of
from frontdesk.web.responses import TRACE_HEADER


class Health:
    """`readiness()` says why the database cannot be used, or None, and which of its workers are lost; `failing()` names
    failing background steps."""

    def __init__(
        self, readiness: Callable[[], Awaitable[tuple[str | None, Sequence[str]]]], failing: Callable[[], list[str]]
    ) -> None:
        self._readiness = readiness
        self._failing = failing
        self._stopping = False
        self.routes = [Route("/healthz", self._healthz), Route("/readyz", self._readyz)]

    def drain(self) -> None:
        """Tells load balancers from now on to send calls elsewhere."""
        self._stopping = True

    async def _healthz(self, request: Request) -> Response:
        return JSONResponse({"status": "up"}, headers=_headers(request))

    async def _readyz(self, request: Request) -> Response:
        reason, lost = ("stopping", ()) if self._stopping else await self._readiness()
        reported = {"failing": self._failing(), "lostWorkers": lost}
        state = {name: found for name, found in reported.items() if found}
        if reason is None:  # what fails is reported, not refused: other calls are still answered
            return JSONResponse({"status": "degraded" if state else "ready", **state}, headers=_headers(request))
        return JSONResponse({"status": reason, **state}, 503, {**_headers(request), "Retry-After": "2"})


def _headers(request: Request) -> dict[str, str]:
    trace = {TRACE_HEADER: request_of(request.scope).request_id}
    return {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **trace}
