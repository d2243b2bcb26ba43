"""Problem documents for unknown paths, wrong methods and unexpected exceptions, whose details only the log shows."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.domain.errors import UNREADABLE, Problem, unreadable
from frontdesk.settings import Settings
from frontdesk.web.http_request import request_of
from frontdesk.web.responses import problem_response

Handler = Callable[[Request, Any], Awaitable[Response]]  # of errors of its own type

_CODES = {404: "not_found", 405: "method_not_allowed", 406: "not_acceptable", 413: "payload_too_large"}
_log = logging.getLogger(__name__)


def exception_handlers(settings: Settings) -> Mapping[object, Handler]:
    """Handlers for the Starlette application: errors of its router, and problems raised by its routes."""

    async def refused(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "validation")
        detail = "There is nothing at this path." if code == "not_found" else None
        status = 400 if code == "validation" else None
        return answer(request, Problem(code, detail, status=status), error.headers)

    async def problem(request: Request, error: Problem) -> Response:
        return answer(request, error)

    def answer(request: Request, error: Problem, headers: Mapping[str, str] | None = None) -> Response:
        return problem_response(error, settings, request_of(request.scope).request_id, headers)

    return {HTTPException: refused, Problem: problem}


class UnexpectedErrors:
    """ASGI middleware inside Starlette, which would answer an unexpected exception with plain text."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = request_of(scope)

        async def watched(message: Message) -> None:
            request.response_started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            await unexpected_error(error, scope, receive, send, self._settings)


async def unexpected_error(error: Exception, scope: Scope, receive: Receive, send: Send, settings: Settings) -> None:
    """Logs the exception under the request id and answers it."""
    request = request_of(scope)
    problem = unexpected_problem(error, request.request_id)
    if request.response_started:
        raise error  # half an answer was sent: only breaking the connection is left
    await problem_response(problem, settings, request.request_id)(scope, receive, send)


def unexpected_problem(error: Exception, request_id: str) -> Problem:
    """Logs an exception from outside the engine and returns its answer.

    Doors only read requests and write answers: what a parser raises there is caused by the request. It is logged
    all the same, because the parser should have refused it in its own words.
    """
    _log.error("unexpected error", exc_info=error, extra={"requestId": request_id})
    return unreadable() if isinstance(error, UNREADABLE) else Problem("internal")
