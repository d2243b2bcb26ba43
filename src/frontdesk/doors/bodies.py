"""Reads request bodies within limits of size, time and format."""

import asyncio
from functools import lru_cache

from starlette.requests import Request

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.doors.http_request import Receive
from frontdesk.doors.responses import BodyNotRead

LARGEST_BODY = 64 * 1024
RECEIVE_SECONDS = 15.0


async def read_body(
    content_length: bytes | None, receive: Receive, faults: list[Problem], largest: int = LARGEST_BODY
) -> bytes:
    """The body, or an empty one and a problem added to `faults`."""
    if content_length is not None and (not content_length.isdigit() or int(content_length[:20]) > largest):
        return _unread(faults, Problem("payload_too_large"))
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(RECEIVE_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return _unread(faults, invalid([FieldError("$", BINDING, "the body did not arrive completely")]))
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                if size > largest:
                    return _unread(faults, Problem("payload_too_large"))
                more = message.get("more_body", False)
    except TimeoutError:
        return _unread(faults, invalid([FieldError("$", BINDING, "the body did not arrive in time")]))
    return b"".join(parts)


def content_length(request: Request) -> bytes | None:
    announced = request.headers.get("content-length")
    return None if announced is None else announced.encode("latin-1")


def _unread(faults: list[Problem], problem: Problem) -> bytes:
    faults.append(BodyNotRead(problem.code, problem.detail, status=problem.status, errors=problem.errors))
    return b""


def require_json_body(content_type: bytes | None, body: bytes) -> None:
    """Refuses a body that is not declared as JSON in UTF-8. An empty body needs no type."""
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
