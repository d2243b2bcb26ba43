"""Taking in request bodies: at most so large, within a fixed time, in a format we read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid

LARGEST_BODY = 64 * 1024
RECEIVE_SECONDS = 15.0
_LETTING_GO_SECONDS = 0.5


async def read_body(
    headers: Mapping[str, str],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    faults: list[Problem],
    largest: int = LARGEST_BODY,
) -> bytes:
    """The body, or nothing and a noted fault. A body that is announced too large is not read at all."""
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced[:20]) > largest:
        return _unread(faults, Problem("payload_too_large"))
    body = bytearray()
    try:
        async with asyncio.timeout(RECEIVE_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    incomplete = FieldError("$", BINDING, "the body did not arrive completely")
                    return _unread(faults, invalid([incomplete]))
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > largest:
                    return _unread(faults, Problem("payload_too_large"))
    except TimeoutError:
        # The server must have let go of the body before the answer ends, or it does not close the connection.
        await asyncio.sleep(_LETTING_GO_SECONDS)
        return _unread(faults, invalid([FieldError("$", BINDING, "the body did not arrive in time")]))
    return bytes(body)


def _unread(faults: list[Problem], problem: Problem) -> bytes:
    """What was not read must not be taken for the next request: the connection ends with the answer."""
    problem.headers["Connection"] = "close"
    faults.append(problem)
    return b""


def require_json_body(headers: Mapping[str, str], body: bytes) -> None:
    """Refuses a body that does not say it is JSON in UTF-8. No body needs no type."""
    if not body:
        return
    media_type, *parameters = headers.get("content-type", "").lower().split(";")
    media_type = media_type.strip()
    is_json = media_type in ("application/json", "text/json") or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    charsets = [p.partition("=")[2].strip(' "') for p in parameters if p.strip().startswith("charset=")]
    if not is_json or any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise Problem("unsupported_media_type")
