"""The request log: one record per answered request, made in one place and told to everybody who writes or counts.

The line in the log, the metrics and whatever else counts requests observe the same records, so that they never
disagree. A record says who called what and how it ended; nothing that a caller sent or was answered is in it.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from frontdesk.access.caller import Caller
from frontdesk.logs import Lines, as_json

_MOST_MEMBERS = 1024
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


Observer = Callable[[AnsweredRequest], None]
_made = partial(tuple.__new__, AnsweredRequest)  # as its constructor does, which first sorts its arguments by name


class RequestLog:
    """`observers` are called in the event loop, after the answer was sent, and must not block."""

    __slots__ = ("observers",)

    def __init__(self, *observers: Observer) -> None:
        self.observers: list[Observer] = list(observers)

    def answered(
        self,
        door: str,
        operation: str | None,
        caller: Caller | None,
        method: str,
        status: int,
        code: str | None,
        began: float,
        request_id: str | None,
    ) -> None:
        """Notes a request that began so, by the monotonic clock, and is answered now."""
        practice = practice_id = client = None
        if caller is not None:
            practice, practice_id, client = caller.practice_slug, caller.practice_id, caller.client_id
        took = (time.monotonic() - began) * 1000
        self.note(_made((door, operation, practice, practice_id, client, method, status, code, took, request_id)))

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

    return RequestLog(partial(lines.write_soon, _worded)) if _log.isEnabledFor(logging.INFO) else RequestLog()


def _worded(moment: str, request: AnsweredRequest) -> str:
    door, operation, practice, _, client, method, status, _, milliseconds, request_id = request
    alike = (door, operation, practice, client, method, status)
    members = _members.get(alike) or _members_of(*alike)
    if request_id is None:
        return f'{{"at":"{moment}",{members},"milliseconds":{milliseconds:.2f}}}'
    return f'{{"at":"{moment}",{members},"milliseconds":{milliseconds:.2f},"requestId":"{request_id}"}}'


_members: dict[tuple[Any, ...], str] = {}  # what many lines have in common, as members of a JSON object; oldest first


def _members_of(
    door: str, operation: str | None, practice: str | None, client: str | None, method: str, status: int
) -> str:
    fields = _fields(door, operation, practice, client, _known(method), status)
    given = {name: value for name, value in fields.items() if value is not None}
    members = as_json({"level": "info", "message": "request"} | given)[1:-1]
    if method in _METHODS:
        if len(_members) >= _MOST_MEMBERS:
            del _members[next(iter(_members))]
        _members[door, operation, practice, client, method, status] = members
    return members


def _known(method: str) -> str:
    """Anything may be sent as a method, of any length."""
    return method if method in _METHODS else "OTHER"


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
