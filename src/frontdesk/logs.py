"""Structured logs: one JSON object per line on standard error. Fields come from `extra`; values of callers never do."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

import orjson

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line.update({k: v for k, v in record.__dict__.items() if k not in _STANDARD and v is not None})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["trace"] = _frames(record.exc_info[1], set())
        try:
            return orjson.dumps(line, default=str).decode()
        except (
            TypeError
        ):  # half characters and the like: a line that cannot be written would be printed with its values
            return json.dumps(line, default=str)


def _frames(error: BaseException | None, seen: set[int]) -> list[str]:
    """Where it went wrong, through every part and cause. Messages of exceptions are left out: they may quote what was
    sent."""
    if error is None or id(error) in seen:
        return []
    seen.add(id(error))
    frames = [type(error).__qualname__]
    frames += [f"{f.filename}:{f.lineno} in {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        frames += _frames(part, seen)
    return frames + _frames(error.__cause__ or error.__context__, seen)


def configure_logging(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("asyncio", "httpx", "httpcore", "mcp", "sse_starlette"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
