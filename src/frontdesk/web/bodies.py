"""Reads request bodies within limits of size and format. The server limits their time."""

from functools import lru_cache

from starlette.types import Receive

from frontdesk.access.clients.authentication import Authenticator
from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.web.http_request import HttpRequest
from frontdesk.web.responses import BodyNotRead

MAX_BODY_BYTES = 64 * 1024


async def read_body(request: HttpRequest, receive: Receive, limit: int = MAX_BODY_BYTES) -> bytes:
    content_length = request.headers.get(b"content-length")
    if content_length is not None and (not content_length.isdigit() or int(content_length[:20]) > limit):
        raise BodyNotRead("payload_too_large")
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _missing("the body did not arrive completely")
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BodyNotRead("payload_too_large")
        more = message.get("more_body", False)
    return b"".join(parts)


def identify_again(request: HttpRequest, authenticator: Authenticator, resource: str) -> None:
    """Forgets the caller unless their status is still the one that the gateway has checked: the client
    may have been disabled while the body arrived."""
    if request.token and request.caller is not None:
        request.caller = authenticator.lookup(request.token, resource)


def _missing(message: str) -> BodyNotRead:
    problem = invalid([FieldError("$", BINDING, message)])
    return BodyNotRead(problem.code, problem.text, status=problem.status, errors=problem.errors)


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
