"""An HTTP request: its headers by name, its access token, and its caller if the gateway knows them."""

import re
import time
from dataclasses import dataclass
from random import getrandbits
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope, Send

from frontdesk.access.clients.caller import Caller
from frontdesk.engine.sandbox import META_KEY

RawHeaders = list[tuple[bytes, bytes]]

SIMULATE = META_KEY.encode()
_SCOPE_KEY = "frontdesk.request"
_REFUSED = 400
# Version 00 has exactly four parts; later versions may append more, which is ignored.
_TRACEPARENT = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?\Z"
)


@dataclass(slots=True)
class HttpRequest:
    method: str
    path: str
    query: bytes
    raw_headers: RawHeaders
    began: float  # on the monotonic clock
    headers: dict[bytes, bytes]  # by lower-case name; the last of several values, except that Accept is one list
    token: str | None  # of an Authorization header with the scheme Bearer
    request_id: str  # the W3C trace id of a valid traceparent, else a fresh one
    added: RawHeaders  # the gateway's headers for the answer
    caller: Caller | None = None
    response_started: bool = False


def request_of(scope: Scope) -> HttpRequest:
    """The request of a scope, read once. It holds no reference to the scope: a cycle would wait for the collector."""
    request: HttpRequest | None = scope.get(_SCOPE_KEY)
    if request is None:
        request = scope[_SCOPE_KEY] = _read(scope)
    return request


def _read(scope: Scope) -> HttpRequest:
    raw: RawHeaders = scope["headers"]
    headers = dict(raw)
    if len(headers) != len(raw) and b"accept" in headers:
        headers[b"accept"] = b", ".join([value for name, value in raw if name == b"accept"])
    return HttpRequest(
        scope["method"],
        scope["path"],
        scope["query_string"],
        raw,
        time.monotonic(),
        headers,
        _bearer_token(headers.get(b"authorization")),
        _request_id(headers.get(b"traceparent")),
        [],
    )


def _bearer_token(authorization: bytes | None) -> str | None:
    if authorization is None or authorization[:7].lower() != b"bearer ":
        return None
    return authorization[7:].strip().decode("latin-1")


def _request_id(traceparent: bytes | None) -> str:
    found = None if traceparent is None else _TRACEPARENT.match(traceparent.decode("latin-1").strip())
    return found.group(1) if found else f"{getrandbits(128):032x}"


def decoded(value: bytes | None) -> str | None:
    """The value of a header as text. HTTP allows any byte, which Latin-1 maps to a character."""
    return None if value is None else value.decode("latin-1")


def origin_of(url: str) -> tuple[str, str] | None:
    """Scheme and authority; None if it is not an origin (such as `null`, which sandboxed pages send)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return (parts.scheme, parts.netloc.lower()) if parts.netloc else None


async def send_response(send: Send, request: HttpRequest, status: int, headers: RawHeaders, body: bytes) -> None:
    """Sends an answer with the gateway's headers."""
    request.response_started = True
    await send({"type": "http.response.start", "status": status, "headers": with_added(headers, request, status)})
    await send({"type": "http.response.body", "body": body})


def with_added(headers: RawHeaders, request: HttpRequest, status: int) -> RawHeaders:
    if status < _REFUSED:
        return headers + request.added
    # A simulated rate limit has a RateLimit header of its own, which the gateway's would contradict.
    present = {name for name, _ in headers}
    return headers + [each for each in request.added if each[0] not in present]


def address_of(request: Request) -> str | None:
    """The client's, as the wire or a trusted proxy tells it."""
    return None if request.client is None else request.client.host
