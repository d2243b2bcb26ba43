"""The request log: every answered request, told in one place to everybody who writes or counts.

The line in the log, the metrics and whatever else counts requests observe the same, so that they never disagree. What
many requests have in common, who called what and how it ended, is one kind, made once; a single request adds how long
it took and its id. Nothing that a caller sent or was answered is in either.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.cache import BoundedCache
from frontdesk.logs import Lines, as_json

_MOST_KINDS = 1024
_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
_log = logging.getLogger("frontdesk.request")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    door: str  # rest, mcp, oauth, console or gateway
    operation: str | None  # None where the request named none that exists
    practice_slug: str | None
    practice_id: int | None
    client_id: str | None  # None where the caller is not known
    method: str
    status: int  # the operation's own, also where MCP carries a refusal in a successful exchange
    code: str | None  # of the problem that was answered
    fields: dict[str, Any] = field(init=False, repr=False)  # of a line
    members: str = field(init=False, repr=False)  # the same as JSON, to be put into a line

    def __post_init__(self) -> None:
        told = {
            "door": self.door,
            "operation": self.operation,
            "practice": self.practice_slug,
            "client": self.client_id,
            "method": self.method,
            "status": self.status,
        }
        object.__setattr__(self, "fields", told)
        known = {name: value for name, value in told.items() if value is not None}
        object.__setattr__(self, "members", as_json({"level": "info", "message": "request"} | known)[1:-1])


def kind_of(
    door: str,
    operation: str | None,
    practice_slug: str | None,
    practice_id: int | None,
    client_id: str | None,
    method: str,
    status: int,
    code: str | None,
) -> Kind:
    key = (door, operation, practice_slug, practice_id, client_id, method, status, code)
    kind = _kinds.get(key)
    if kind is None:
        known = method in _METHODS
        shown = method if known else "OTHER"  # anything may be sent as a method, of any length
        kind = Kind(door, operation, practice_slug, practice_id, client_id, shown, status, code)
        if known:
            _kinds.put(key, kind)
    return kind


_kinds: BoundedCache[tuple[Any, ...], Kind] = BoundedCache(_MOST_KINDS)

Observer = Callable[[Kind, float, str | None], None]  # its milliseconds; no id where the gateway itself answered


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
        milliseconds = (time.monotonic() - began) * 1000
        practice = practice_id = client = None
        if caller is not None:
            practice, practice_id, client = caller.practice_slug, caller.practice_id, caller.client_id
        key = (door, operation, practice, practice_id, client, method, status, code)
        self.note(_kinds.get(key) or kind_of(*key), milliseconds, request_id)

    def note(self, kind: Kind, milliseconds: float, request_id: str | None) -> None:
        for observer in self.observers:
            try:
                observer(kind, milliseconds, request_id)
            except Exception:  # whoever counts wrongly does not break the exchange
                _log.exception("an observer of the requests failed", extra={"requestId": request_id})


def log_line(kind: Kind, milliseconds: float, request_id: str | None) -> None:
    """The observer that writes a request as a line of the ordinary log."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("request", extra=kind.fields | {"milliseconds": round(milliseconds, 2), "requestId": request_id})


def request_lines(lines: Lines) -> RequestLog:
    """What a server process logs: the same lines, where its log level lets them through, at a fraction of the price."""
    return RequestLog(partial(lines.write_soon, _worded)) if _log.isEnabledFor(logging.INFO) else RequestLog()


def _worded(moment: str, kind: Kind, milliseconds: float, request_id: str | None) -> str:
    if request_id is None:
        return f'{{"at":"{moment}",{kind.members},"milliseconds":{milliseconds:.2f}}}'
    return f'{{"at":"{moment}",{kind.members},"milliseconds":{milliseconds:.2f},"requestId":"{request_id}"}}'
