"""The request log: one record per answered request, made in one place and told to everybody who writes or counts.

The line in the log, the metrics and whatever else counts requests observe the same records, so that they never
disagree. A record says who called what and how it ended; nothing that a caller sent or was answered is in it.
"""

import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from frontdesk.access.caller import Caller
from frontdesk.logs import Lines, as_json

_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
_log = logging.getLogger("frontdesk.request")


class AnsweredRequest(NamedTuple):
    """A named tuple, not a dataclass: one is made for every request, and a tuple is made in a fifth of the time."""

    door: str  # rest, mcp, oauth or gateway
    operation: str | None  # None where the request named none that exists
    practice_slug: str | None
    practice_id: int | None
    client_id: str | None  # None where the caller is not known
    method: str
    status: int  # the operation's own, also where MCP carries a refusal in a successful exchange
    code: str | None  # of the problem that was answered
    milliseconds: float
    request_id: str | None  # None where the gateway itself answered


def answered(
    door: str,
    operation: str | None,
    caller: Caller | None,
    method: str,
    status: int,
    code: str | None,
    began: float,
    request_id: str | None,
) -> AnsweredRequest:
    """The record of a request that began so, by the performance counter, and is answered now."""
    practice, practice_id, client = (
        (None, None, None) if caller is None else (caller.practice_slug, caller.practice_id, caller.client_id)
    )
    milliseconds = (time.perf_counter() - began) * 1000
    return AnsweredRequest(
        door, operation, practice, practice_id, client, method, status, code, milliseconds, request_id
    )


Observer = Callable[[AnsweredRequest], None]


class RequestLog:
    """`observers` are called in the event loop, after the answer was sent, and must not block."""

    __slots__ = ("observers",)

    def __init__(self, *observers: Observer) -> None:
        self.observers: list[Observer] = list(observers)

    def note(self, request: AnsweredRequest) -> None:
        for observer in self.observers:
            try:
                observer(request)
            except Exception:  # whoever counts wrongly does not break the exchange
                _log.exception("an observer of the requests failed", extra={"requestId": request.request_id})


def log_line(request: AnsweredRequest) -> None:
    """The observer that writes a request as a line of the ordinary log."""
    if _log.isEnabledFor(logging.INFO):
        door, operation, practice, _, client, method, status, _, milliseconds, request_id = request
        fields = _fields(door, operation, practice, client, _known(method), status)
        _log.info("request", extra=fields | {"milliseconds": round(milliseconds, 2), "requestId": request_id})


def request_lines(lines: Lines) -> RequestLog:
    """What a server process logs: the same lines, where its log level lets them through, at a fraction of the price."""

    def observe(request: AnsweredRequest) -> None:
        lines.write_soon(_members, request)

    return RequestLog(observe) if _log.isEnabledFor(logging.INFO) else RequestLog()


def _members(request: AnsweredRequest) -> str:
    """A line as members of a JSON object."""
    door, operation, practice, _, client, method, status, _, milliseconds, request_id = request
    kept = _kept(door, operation, practice, client, _known(method), status)
    traced = "" if request_id is None else f',"requestId":"{request_id}"'
    return f'{kept},"milliseconds":{milliseconds:.2f}{traced}'


def _known(method: str) -> str:
    """Anything may be sent as a method, of any length."""
    return method if method in _METHODS else "OTHER"


@lru_cache(maxsize=1024)
def _kept(*values: Any) -> str:
    """What many lines have in common."""
    members = {name: value for name, value in _fields(*values).items() if value is not None}
    return as_json({"message": "request"} | members)[1:-1]


def _fields(
    door: str, operation: str | None, practice: str | None, client: str | None, method: str, status: int
) -> dict[str, Any]:
    return {
        "door": door,
        "operation": operation,
        "practice": practice,
        "client": client,
        "method": method,
        "status": status,
    }
