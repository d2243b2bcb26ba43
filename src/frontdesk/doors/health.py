"""Health: /healthz says that the process is up, /readyz that the database answers and knows this version's schema."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def health_routes(unreadiness: Callable[[], Awaitable[str | None]]) -> list[Route]:
    """`unreadiness()` says why the service cannot work now; None when it can."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "up"}, headers=_HEADERS)

    async def readyz(_request: Request) -> Response:
        reason = await unreadiness()
        if reason is not None:
            return JSONResponse({"status": reason}, 503, {**_HEADERS, "Retry-After": "2"})
        return JSONResponse({"status": "ready"}, headers=_HEADERS)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
