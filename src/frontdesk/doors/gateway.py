"""The gateway in front of all doors: client addresses, CORS, size limits, rate limits and quotas.

Calls without a valid token count against their address only; the door answers them. The gateway's own answers carry no
request id.
"""

import re
from collections.abc import Callable
from itertools import chain

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk import tracing
from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.clients.resources import API_RESOURCE, FHIR_RESOURCE, MCP_RESOURCE
from frontdesk.access.limits.addresses import is_address, trusted_proxy_check
from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.access.limits.forwarded_headers import ForwardedHeaders
from frontdesk.access.limits.invalid_tokens import InvalidTokens
from frontdesk.access.limits.rate_limiter import RateLimiter, Refused
from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.doors.fhir import outcome_document
from frontdesk.settings import Settings
from frontdesk.texts import Text
from frontdesk.web.error_handlers import unexpected_error, unexpected_problem
from frontdesk.web.http_request import HttpRequest, RawHeaders, request_of, send_response, with_added
from frontdesk.web.request_log import RequestLog
from frontdesk.web.responses import problem_answer, problem_document

MAX_REQUEST_TARGET_LENGTH = 8 * 1024
MAX_HEADER_BYTES = 32 * 1024
_API, _FHIR = f"{API_RESOURCE}/", f"{FHIR_RESOURCE}/"
_COUNTED = (_API, MCP_RESOURCE, _FHIR)
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]+)(?::[0-9]*)?\Z")  # RFC 3986
_ONLY_ONCE = {b"host": "Host", b"authorization": "Authorization", b"idempotency-key": "Idempotency-Key"}
# Of the OAuth endpoints that use no cookie: browsers may read what anybody may.
_FOR_EVERY_ORIGIN = ("/.well-known/", "/oauth/token", "/oauth/register", "/oauth/revoke")
_PREFLIGHT_SECONDS = b"600"
_METHODS = b"GET, POST, PATCH, PUT"
_REQUEST_HEADERS = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Frontdesk-Simulate, Frontdesk-Confirmation-Token, "
    b"traceparent, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Prefer, If-None-Match, "
    b"If-Modified-Since, If-Match, If-None-Exist"
)
_EXPOSED = (
    b"X-SVC-TRACE-ID, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, ETag, Last-Modified, Mcp-Session-Id"
)


class Gateway:
    """ASGI middleware in front of the doors and, for any other path, an application."""

    # For the server that runs it.
    connection_limit: ConnectionLimit
    on_drain: Callable[[], None]
    on_close: Callable[[], None]

    def __init__(
        self,
        app: ASGIApp,
        door_of: Callable[[str], ASGIApp | None],
        authenticator: Authenticator,
        limiter: RateLimiter,
        settings: Settings,
        requests: RequestLog,
        invalid_tokens: InvalidTokens,
        forwarded_headers: ForwardedHeaders,
    ) -> None:
        """`door_of` finds the door for a path, ahead of the application's router."""
        self._app = app
        self._door_of = door_of
        self._authenticator = authenticator
        self._limiter = limiter
        self._settings = settings
        self._requests = requests
        self._origins = frozenset(origin.encode() for origin in settings.allowed_origins)
        self._trusts = trusted_proxy_check(settings.trusted_proxies)
        self._invalid_tokens = invalid_tokens
        self._forwarded_headers = forwarded_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with tracing.tracer.request(scope):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if b"%2f" in scope.get("raw_path", b"").lower():
            # Nothing is there: no path of ours contains one, and it must not act as a slash.
            scope["path"] = _FHIR if scope["path"].startswith(_FHIR) else ""
        request = request_of(scope)
        try:
            if (self._origins or b"origin" in request.headers) and await self._is_preflight(request, send):
                return
            if b"x-forwarded-for" in request.headers:
                self._find_client(scope)
            _check_sizes(request)
            _check_headers(request, scope["http_version"])
            if request.token and request.path.startswith(_COUNTED) and not self._try_count(request, request.token):
                await self._count(request, request.token, scope)
        except Refused as refused:
            request.added[:0] = refused.headers
            await self._refuse(request, send, refused.problem)
            return
        except Problem as problem:
            await self._refuse(request, send, problem)
            return
        except Exception as error:
            await self._refuse(request, send, unexpected_problem(error, request.request_id))
            return
        door = self._door_of(request.path)
        if door is None:
            await self._app(scope, receive, _adding(send, request) if request.added else send)
            return
        try:
            await door(scope, receive, send)
        except Exception as error:
            await unexpected_error(error, scope, receive, send, self._settings)

    async def _is_preflight(self, request: HttpRequest, send: Send) -> bool:
        """Answers a CORS preflight request; adds the CORS headers of any other."""
        origin = request.headers.get(b"origin")
        if origin is not None and request.path.startswith(_FOR_EVERY_ORIGIN):
            origin = b"*"
        elif not self._origins:
            return False
        elif origin is None or origin not in self._origins:
            request.added.append((b"vary", b"Origin"))
            return False
        if request.method == "OPTIONS" and b"access-control-request-method" in request.headers:
            await send_response(send, request, 204, _preflight(origin), b"")
            return True
        request.added += [
            (b"vary", b"Origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
        ]
        return False

    def _try_count(self, request: HttpRequest, token: str) -> bool:
        """Counts a call whose caller is known and has calls left: nearly every call, and without waiting."""
        caller = request.caller = self._authenticator.lookup(token, _resource(request))
        limits = None if caller is None else self._limiter.try_charge(caller)
        if limits is None:
            return False
        request.added += limits
        return True

    async def _count(self, request: HttpRequest, token: str, scope: Scope) -> None:
        address: str = (scope.get("client") or ("",))[0]
        caller = request.caller or await self._authenticator.identify_or_none(
            token, _resource(request), on_invalid=lambda: self._invalid_tokens.count(address), even_forbidden=True
        )
        if caller is not None:
            request.added += await self._limiter.charge(caller)
            # It may be suspended, or have been disabled meanwhile.
            caller = await self._authenticator.identify_or_none(token, _resource(request))
        request.caller = caller

    async def _refuse(self, request: HttpRequest, send: Send, problem: Problem) -> None:
        is_fhir = self._settings.fhir_server and request.path.startswith(_FHIR)
        document = outcome_document if is_fhir else problem_document
        headers, body = problem_answer(problem, self._settings, None, document=document)
        await send_response(send, request, problem.status, headers, body)
        method, status = request.method, problem.status
        self._requests.record("gateway", None, request.caller, method, status, problem.code, request.began, None)

    def _find_client(self, scope: Scope) -> None:
        """The nearest address that is not one of our proxies; anything before it may be forged."""
        peer = scope.get("client") or ("", 0)
        address = peer[0]
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        hops = b",".join(forwarded).decode("latin-1").split(",")
        if not self._trusts(address):
            if address:  # a peer of a Unix socket has none
                self._forwarded_headers.ignored(address)
            return
        while hops and self._trusts(address):
            address = hops.pop().strip()
        if is_address(address):
            scope["client"] = (address, 0 if address != peer[0] else peer[1])


def _resource(request: HttpRequest) -> str:
    """The door that the request is for; empty where there is none."""
    if request.path.startswith(_API):
        return API_RESOURCE
    if request.path == MCP_RESOURCE:
        return MCP_RESOURCE
    return FHIR_RESOURCE if request.path.startswith(_FHIR) else ""


def _check_sizes(request: HttpRequest) -> None:
    if sum(map(len, chain.from_iterable(request.raw_headers))) > MAX_HEADER_BYTES:
        raise Problem("payload_too_large", "The header fields of the request are too large.", status=431)
    if len(request.path) + len(request.query) > MAX_REQUEST_TARGET_LENGTH:
        raise Problem("payload_too_large", "The address of the request is too long.", status=414)


def _check_headers(request: HttpRequest, http_version: str) -> None:
    host = request.headers.get(b"host")
    if not (_HOST.match(host) if host is not None else http_version == "1.0"):
        raise _refusal("Host", "%(field)s must be given once, as the name and port of this server")
    if len(request.headers) != len(request.raw_headers):
        names = [name for name, _ in request.raw_headers]
        for name, published in _ONLY_ONCE.items():
            if names.count(name) > 1:
                raise _refusal(published, "%(field)s must be given only once")


def _refusal(field: str, template: str) -> Problem:
    return invalid([FieldError(field, BINDING, Text(template))])


def _adding(send: Send, request: HttpRequest) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = with_added([*message["headers"]], request, message["status"])
        await send(message)

    return send_with_headers


def _preflight(origin: bytes) -> RawHeaders:
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _REQUEST_HEADERS),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
        (b"vary", b"Origin"),
    ]
