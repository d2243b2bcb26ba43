"""What is answered where no door answers: unknown paths, wrong methods, and exceptions that nobody expected.

All of it is a problem document with a trace id. What went wrong inside goes to the log and never to the caller.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.domain.errors import Problem
from frontdesk.doors.responses import problem_response, request_id_of
from frontdesk.settings import Settings

Handler = Callable[[Request, Any], Awaitable[Response]]

_CODES = {404: "not_found", 405: "method_not_allowed", 406: "not_acceptable", 413: "payload_too_large"}
_log = logging.getLogger(__name__)


def exception_handlers(settings: Settings) -> Mapping[Any, Handler]:
    """For the application: refusals of its router, and problems that a route raised."""

    async def refused(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "validation")
        detail = "There is nothing at this path." if code == "not_found" else None
        status = 400 if code == "validation" else None
        return await problem(request, Problem(code, detail, status=status, headers=error.headers))

    async def problem(request: Request, error: Problem) -> Response:
        return problem_response(error, settings, request_id_of(request.headers.get("traceparent")))

    return {HTTPException: refused, Problem: problem}


class UnexpectedErrors:
    """Around everything: an exception that got this far is logged under its request id and answered as internal."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            await unexpected_error(error, scope, receive, send, self._settings, started=started)


async def unexpected_error(
    error: Exception, scope: Scope, receive: Receive, send: Send, settings: Settings, *, started: bool
) -> None:
    headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    request_id = request_id_of(headers.get(b"traceparent"))
    _log.error("unexpected error", exc_info=error, extra={"requestId": request_id})
    if started:
        raise error  # the answer is half sent: all that is left is to break the connection
    await problem_response(Problem("internal"), settings, request_id)(scope, receive, send)
