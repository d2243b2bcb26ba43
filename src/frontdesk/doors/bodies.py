"""Taking in request bodies: at most so large, within a fixed time, in a format we read."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from starlette.requests import Request

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.doors.arrival import BODY_WHOLE, Scope

LARGEST_BODY = 64 * 1024
RECEIVE_SECONDS = 15.0


async def read_body(
    announced: bytes | None,
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    faults: list[Problem],
    largest: int = LARGEST_BODY,
    scope: Scope | None = None,
) -> bytes:
    """The body, or nothing and a noted fault. `announced` is its Content-Length: what is too large is not read at
    all. With its scope, one that is there already is not waited for."""
    if announced is not None and (not announced.isdigit() or int(announced[:20]) > largest):
        return _unread(faults, Problem("payload_too_large"))
    whole = None if scope is None else scope.get(BODY_WHOLE)
    body: bytes | None = None if whole is None else whole(scope)
    if body is not None:
        return body if len(body) <= largest else _unread(faults, Problem("payload_too_large"))
    parts, size, more = [], 0, True
    patience = _Patience(RECEIVE_SECONDS)
    try:
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                incomplete = FieldError("$", BINDING, "the body did not arrive completely")
                return _unread(faults, invalid([incomplete]))
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > largest:
                return _unread(faults, Problem("payload_too_large"))
            more = message.get("more_body", False)
    except asyncio.CancelledError:
        if not patience.ended_the_wait():
            raise
        return _unread(faults, invalid([FieldError("$", BINDING, "the body did not arrive in time")]))
    finally:
        patience.end()
    return b"".join(parts)


class _Patience:
    """Cancels the task that made it after so many seconds. What asyncio.timeout does, for less: that was felt in every
    call over MCP."""

    __slots__ = ("_late", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        self._late = False
        self._timer = loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self._late = True
        if self._task is not None:
            self._task.cancel()

    def ended_the_wait(self) -> bool:
        """Whether that, and nobody else, cancelled the task; it then goes on."""
        return self._late and self._task is not None and self._task.uncancel() == 0

    def end(self) -> None:
        self._timer.cancel()


def content_length(request: Request) -> bytes | None:
    announced = request.headers.get("content-length")
    return None if announced is None else announced.encode("latin-1")


def _unread(faults: list[Problem], problem: Problem) -> bytes:
    """What was not read must not be taken for the next request: the connection ends with the answer."""
    problem.headers["Connection"] = "close"
    faults.append(problem)
    return b""


def require_json_body(content_type: bytes | None, body: bytes) -> None:
    """Refuses a body that does not say it is JSON in UTF-8. No body needs no type."""
    if body and not _is_json(content_type or b""):
        raise Problem("unsupported_media_type")


@lru_cache(maxsize=64)
def _is_json(content_type: bytes) -> bool:
    media_type, *parameters = content_type.decode("latin-1").lower().split(";")
    media_type = media_type.strip()
    charsets = [p.partition("=")[2].strip(' "') for p in parameters if p.strip().startswith("charset=")]
    return all(charset in ("utf-8", "utf8") for charset in charsets) and (
        media_type in ("application/json", "text/json")
        or (media_type.startswith("application/") and media_type.endswith("+json"))
    )
