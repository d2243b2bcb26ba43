"""The request log: reports every answered request to its observers, such as the log line, the metrics and usage.

Labels and lines hold nothing that a caller sent or was answered.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.logs import Lines, as_json

_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
_log = logging.getLogger("frontdesk.request")


@dataclass(frozen=True, slots=True, eq=False)
class RequestLabels:
    """Who called what, and the outcome. Requests with equal labels share one object."""

    door: str  # rest, mcp, oauth, console or gateway
    operation: str | None  # None: the request named no known operation
    practice_slug: str | None
    practice_id: int | None
    client_id: str | None  # None: the caller is unknown
    method: str
    status: int  # the operation's own status, even if MCP reports it inside an HTTP 200
    code: str | None  # of the problem that was answered
    fields: dict[str, Any] = field(init=False, repr=False)  # of the log line
    members: str = field(init=False, repr=False)  # the same fields as JSON

    def __post_init__(self) -> None:
        fields = {
            "door": self.door,
            "operation": self.operation,
            "practice": self.practice_slug,
            "client": self.client_id,
            "method": self.method,
            "status": self.status,
        }
        object.__setattr__(self, "fields", fields)
        known = {name: value for name, value in fields.items() if value is not None}
        object.__setattr__(self, "members", as_json({"level": "info", "message": "request"} | known)[1:-1])


_shared_labels = lru_cache(maxsize=1024)(RequestLabels)


def request_labels(
    door: str,
    operation: str | None,
    practice_slug: str | None,
    practice_id: int | None,
    client_id: str | None,
    method: str,
    status: int,
    code: str | None,
) -> RequestLabels:
    if method not in _METHODS:
        method = "OTHER"  # a client may send any text of any length as a method
    return _shared_labels(door, operation, practice_slug, practice_id, client_id, method, status, code)


Observer = Callable[[RequestLabels, float, str | None], None]  # labels, milliseconds, request id


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
        """Records a request that began at `began` on the monotonic clock and was answered now."""
        milliseconds = (time.monotonic() - began) * 1000
        practice = practice_id = client = None
        if caller is not None:
            practice, practice_id, client = caller.practice_slug, caller.practice_id, caller.client_id
        labels = request_labels(door, operation, practice, practice_id, client, method, status, code)
        self.record(labels, milliseconds, request_id)

    def record(self, labels: RequestLabels, milliseconds: float, request_id: str | None) -> None:
        """`request_id` is None for what the gateway itself answered."""
        for observer in self.observers:
            try:
                observer(labels, milliseconds, request_id)
            except Exception:  # a failing observer must not break the exchange
                _log.exception("an observer of the requests failed", extra={"requestId": request_id})


def log_line(labels: RequestLabels, milliseconds: float, request_id: str | None) -> None:
    """The observer that logs a request through `logging`."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("request", extra=labels.fields | {"milliseconds": round(milliseconds, 2), "requestId": request_id})


def request_lines(lines: Lines) -> RequestLog:
    """A request log that writes the same lines in batches, past `logging`, if the log level includes them."""
    return RequestLog(partial(lines.write_soon, _line)) if _log.isEnabledFor(logging.INFO) else RequestLog()


def _line(moment: str, labels: RequestLabels, milliseconds: float, request_id: str | None) -> str:
    if request_id is None:
        return f'{{"at":"{moment}",{labels.members},"milliseconds":{milliseconds:.2f}}}'
    return f'{{"at":"{moment}",{labels.members},"milliseconds":{milliseconds:.2f},"requestId":"{request_id}"}}'
