"""Structured logs: one JSON object per line on standard error, without values that callers sent.

Request lines bypass `logging` and are written in batches, because they are frequent.
"""

import asyncio
import contextlib
import json
import logging
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TextIO

import orjson

FLUSH_SECONDS = 0.1
_MAX_WAITING = 100  # a larger batch would delay concurrent requests
_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": _moment(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line.update({k: v for k, v in record.__dict__.items() if k not in _STANDARD and v is not None})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["trace"] = _frames(record.exc_info[1], set())
        return as_json(line)


class Lines(logging.Handler):
    """Writes lines to a stream in order."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._waiting: deque[str | tuple[float, Callable[..., str], tuple[object, ...]]] = deque()
        self._scheduled = False
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.append(self.format(record))
            self.flush()
        except Exception:
            self.handleError(record)

    def write_soon(self, worded: Callable[..., str], *about: object) -> None:
        """A line that is worded when it is written, from its moment and what it is about. To be called in the event
        loop."""
        self._waiting.append((time.time(), worded, about))
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush_scheduled)
        elif len(self._waiting) >= _MAX_WAITING:
            self.flush()

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        with self.lock or contextlib.nullcontext():
            text: list[str] = []
            written, moment = 0.0, ""
            while self._waiting:
                line = self._waiting.popleft()
                if isinstance(line, str):
                    text.append(line)
                    continue
                created, worded, about = line
                if not written <= created < written + 0.001:  # a busy server answers many requests in a millisecond
                    written, moment = created, _moment(created)
                text.append(worded(moment, *about))
            if text:
                text.append("")
                with contextlib.suppress(OSError, ValueError):  # the log is closed
                    self._stream.write("\n".join(text))
                    self._stream.flush()


@dataclass(frozen=True, slots=True, eq=False)
class RequestLabels:
    """Who called what, and the outcome. Requests with equal labels share one object."""

    door: str  # rest, mcp, fhir, oauth, console or gateway
    operation: str | None  # None: the request named no known operation
    practice_slug: str | None
    practice_id: int | None
    client_id: str | None  # None: the caller is unknown
    method: str
    status: int  # the operation's own status, even if MCP reports it inside an HTTP 200
    code: str | None  # of the problem that was answered
    fields: dict[str, object] = field(init=False, repr=False)  # of the log line
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
        object.__setattr__(self, "members", as_json({"level": "info", "message": "request", **known})[1:-1])


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


def _moment(created: float) -> str:
    return datetime.fromtimestamp(created, tz=UTC).isoformat(timespec="milliseconds")


def as_json(line: Mapping[str, object]) -> str:
    try:
        return orjson.dumps(line, default=str).decode()
    except TypeError:  # half characters and the like: a line that cannot be written would be printed with its values
        return json.dumps(line, default=str)


def _frames(error: BaseException | None, seen: set[int]) -> list[str]:
    """The traceback through all causes, without exception messages, which may quote what was sent."""
    if error is None or id(error) in seen:
        return []
    seen.add(id(error))
    frames = [type(error).__qualname__]
    frames += [f"{f.filename}:{f.lineno} in {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        frames += _frames(part, seen)
    return frames + _frames(error.__cause__ or error.__context__, seen)


def configure_logging(level: str) -> Lines:
    lines = Lines(sys.stderr)
    logging.basicConfig(level=level.upper(), handlers=[lines], force=True)
    for noisy in ("asyncio", "httpx", "httpcore", "mcp", "sse_starlette"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return lines
