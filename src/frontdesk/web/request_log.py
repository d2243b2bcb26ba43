"""The request log: reports every answered request to its observers, such as the log line, the metrics and usage.

Labels and lines hold nothing that a caller sent or was answered.
"""

import logging
import time
from collections.abc import Callable
from functools import partial

from frontdesk.access.clients.caller import Caller
from frontdesk.logs import Lines, RequestLabels, request_labels

_log = logging.getLogger("frontdesk.request")


Observer = Callable[[RequestLabels, float, str | None], None]  # labels, milliseconds, request id


class RequestLog:
    """`observers` are called in the event loop, after the answer was sent, and must not block."""

    __slots__ = ("observers",)

    def __init__(self, *observers: Observer) -> None:
        self.observers: list[Observer] = list(observers)

    def record(
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
        self.report(labels, milliseconds, request_id)

    def report(self, labels: RequestLabels, milliseconds: float, request_id: str | None) -> None:
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
