"""Health checks: /healthz for the process; /readyz for the database, its schema and the background work."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.doors.http_request import request_of
from frontdesk.doors.responses import TRACE_HEADER


class Health:
    """`unreadiness()` says why the database cannot be used, or None; `lost_workers()` names the servers of it that
    cannot, and `failing()` failing background steps."""

    def __init__(
        self,
        unreadiness: Callable[[], Awaitable[str | None]],
        lost_workers: Callable[[], Awaitable[list[str]]],
        failing: Callable[[], list[str]],
    ) -> None:
        self._unreadiness = unreadiness
        self._lost_workers = lost_workers
        self._failing = failing
        self._stopping = False
        self.routes = [Route("/healthz", self._healthz), Route("/readyz", self._readyz)]

    def drain(self) -> None:
        """From now on load balancers are told to send calls elsewhere."""
        self._stopping = True

    async def _healthz(self, request: Request) -> Response:
        return JSONResponse({"status": "up"}, headers=_headers(request))

    async def _readyz(self, request: Request) -> Response:
        reason, steps = "stopping" if self._stopping else await self._unreadiness(), self._failing()
        state = {"failing": steps} if steps else {}
        if reason is None:  # what fails is reported, not refused: other calls are still answered
            lost = await self._lost_workers()
            state |= {"lostWorkers": lost} if lost else {}
            return JSONResponse({"status": "degraded" if state else "ready", **state}, headers=_headers(request))
        return JSONResponse({"status": reason, **state}, 503, {**_headers(request), "Retry-After": "2"})


def _headers(request: Request) -> dict[str, str]:
    trace = {TRACE_HEADER: request_of(request.scope).request_id}
    return {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **trace}
