"""The gateway: the outermost layer in front of both doors.

Counts every call that carries a valid token against its client's limits, says on every such answer what is left, and
refuses what goes beyond. Gives REST answers again that are known to be true (decision 9): only what has to be made
reaches a door. Decides whose word about the caller's address is believed, and which pages may call at all. Calls
without a valid token pass on uncounted: the door answers them. What the gateway itself refuses has no request id and no
trace header.
"""

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.callers import Callers
from frontdesk.access.limits.rate_limiter import RateLimiter, Refused
from frontdesk.domain.errors import Problem
from frontdesk.doors.arrival import (
    ANSWER_WHOLE,
    Arrival,
    Head,
    RawHeaders,
    Receive,
    Scope,
    Send,
    encoded,
    read_head,
    send_messages,
)
from frontdesk.doors.error_handlers import unexpected_error
from frontdesk.doors.request_log import RequestLog
from frontdesk.doors.responses import TRACE, answer_headers, problem_answer, trace_id_of
from frontdesk.engine.answer_cache import AnswerCache
from frontdesk.settings import Settings

App = Callable[[Scope, Receive, Send], Awaitable[None]]
Door = Callable[[Scope, Receive, Send, Arrival], Awaitable[None]]

LONGEST_ADDRESS = 8 * 1024
LARGEST_HEADERS = 32 * 1024
_COUNTED = ("/api/", "/mcp")
_PREFLIGHT_SECONDS = b"600"
_METHODS = b"GET, POST, PATCH"
_REQUEST_HEADERS = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Frontdesk-Simulate, traceparent, MCP-Protocol-Version, "
    b"Mcp-Method, Mcp-Name"
)
_EXPOSED = b"X-SVC-TRACE-ID, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate"
_log = logging.getLogger("frontdesk.request")


class Gateway:
    """An ASGI application around the doors and, for what none of them answers, around another application."""

    def __init__(
        self,
        app: App,
        door_of: Callable[[str], Door | None],
        callers: Callers,
        limiter: RateLimiter,
        warm: AnswerCache,
        settings: Settings,
        requests: RequestLog,
    ) -> None:
        """`door_of` finds the door that answers a path by itself."""
        self._app = app
        self._door_of = door_of
        self._callers = callers
        self._limiter = limiter
        self._warm = warm
        self._settings = settings
        self._requests = requests
        self._origins = frozenset(origin.encode() for origin in settings.allowed_origins)
        self._networks = tuple(ip_network(network) for network in settings.trusted_proxies)
        self._trusts = lru_cache(maxsize=1024)(self._is_trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, path, head = time.monotonic(), scope["path"], read_head(scope["headers"])
        caller = None
        added: RawHeaders = []  # what every answer says
        if self._origins and await self._is_preflight(scope, send, head, added):
            return
        if self._networks and b"x-forwarded-for" in head.headers:
            self._find_client(scope)
        try:
            if head.size > LARGEST_HEADERS or len(path) + len(scope["query_string"]) > LONGEST_ADDRESS:
                raise _too_long(head)
            if head.token and path.startswith(_COUNTED):
                caller = self._callers.at_hand(head.token, began)
                limits = None if caller is None else self._limiter.charge_at_once(caller, began)
                if limits is None:
                    caller = await self._callers.recognize(head.token)
                    if caller is not None:
                        limits = await self._limiter.charge(caller)
                        caller = await self._callers.recognize(head.token)  # that may have taken a while
                if limits is not None:
                    added += limits
        except Refused as refused:
            await self._refuse(scope, send, refused.problem, caller, [*refused.headers, *added], began)
            return
        except Problem as problem:
            await self._refuse(scope, send, problem, caller, added, began)
            return
        except Exception:
            _log.exception("unexpected error")
            await self._refuse(scope, send, Problem("internal"), caller, added, began)
            return
        arrival, trouble = None, None
        try:
            if caller is not None and head.plain is not None and scope["method"] == "GET":
                kept = self._warm.at_hand(caller, path, scope["query_string"])
                if kept is not None and kept.versions.calendar is not None:
                    try:
                        kept = kept if await self._warm.still_true(caller, kept) else None
                    except Problem as problem:
                        kept, trouble = None, problem
                if kept is not None:
                    answer, request_id = kept.answer, trace_id_of(head.headers)
                    name, status = kept.operation.name, answer.status
                    said, in_bytes = answer_headers(answer, head.plain)
                    whole = scope.get(ANSWER_WHOLE)
                    own = [(TRACE, request_id.encode()), *added]
                    if whole is None or not whole(scope, status, in_bytes + encoded(own), answer.content):
                        await send_messages(send, status, [*said, *own], answer.content)
                    self._requests.answered("rest", name, caller, "GET", status, None, began, request_id)
                    return
            door = self._door_of(path)
            if door is not None:
                arrival = Arrival(began, head, scope, caller, added, trouble)
                await door(scope, receive, send, arrival)
                return
        except Exception as error:
            started = arrival is not None and arrival.started
            await unexpected_error(error, scope, receive, send, self._settings, started=started)
            return
        await self._app(scope, receive, _adding(send, added) if added else send)

    async def _is_preflight(self, scope: Scope, send: Send, head: Head, added: RawHeaders) -> bool:
        """Whether a page asked if it may call, and has its answer. Adds what every other answer says to pages."""
        added.append((b"vary", b"Origin"))
        origin = head.headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return False
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in head.headers:
            await _send(send, 204, b"", _preflight(origin))
            return True
        added += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _EXPOSED)]
        return False

    async def _refuse(
        self, scope: Scope, send: Send, problem: Problem, caller: Caller | None, added: RawHeaders, began: float
    ) -> None:
        headers, body = problem_answer(problem, self._settings, None)
        await _send(send, problem.status, body, [*headers, *added])
        self._requests.answered("gateway", None, caller, scope["method"], problem.status, problem.code, began, None)

    def _find_client(self, scope: Scope) -> None:
        """The nearest address that is none of our proxies'; what stands before it anybody may have written."""
        peer = scope.get("client") or ("", 0)
        address = peer[0]
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        chain = b",".join(forwarded).decode("latin-1").split(",")
        while chain and self._trusts(address):
            address = chain.pop().strip()
        if _is_address(address):
            scope["client"] = (address, 0 if address != peer[0] else peer[1])

    def _is_trusted(self, address: str) -> bool:
        return _is_address(address) and any(ip_address(address) in network for network in self._networks)


def _too_long(head: Head) -> Problem:
    if head.size > LARGEST_HEADERS:
        return Problem("payload_too_large", "The header fields of the request are too large.", status=431)
    return Problem("payload_too_large", "The address of the request is too long.", status=414)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _adding(send: Send, added: RawHeaders) -> Send:
    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *added]
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


async def _send(send: Send, status: int, body: bytes, headers: RawHeaders) -> None:
    if body:
        headers.append((b"content-length", str(len(body)).encode()))
    await send_messages(send, status, headers, body)
