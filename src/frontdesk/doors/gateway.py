"""The gateway: the outermost layer in front of both doors.

Counts every call that carries a valid token against its client's limits, says on every such answer what is left, and
refuses what goes beyond. Decides whose word about the caller's address is believed, and which pages may call at all.
Calls without a valid token pass on uncounted: the door answers them. What the gateway itself answers has no request id
and no trace header.
"""

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

import orjson

from frontdesk.access.caller import Caller
from frontdesk.access.callers import Callers
from frontdesk.access.meter import Meter, Refused
from frontdesk.domain.errors import Problem
from frontdesk.doors.answers import PROBLEM_TYPE, problem_headers
from frontdesk.settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

LONGEST_ADDRESS = 8 * 1024
LARGEST_HEADERS = 32 * 1024
_COUNTED = ("/api/", "/mcp")
_LOOKED_AT = frozenset((b"authorization", b"origin", b"x-forwarded-for", b"access-control-request-method"))
_PREFLIGHT_SECONDS = b"600"
_METHODS = b"GET, POST, PATCH"
_REQUEST_HEADERS = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Frontdesk-Simulate, traceparent, MCP-Protocol-Version, "
    b"Mcp-Method, Mcp-Name"
)
_EXPOSED = b"X-SVC-TRACE-ID, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate"
_log = logging.getLogger("frontdesk.request")


class Gateway:
    """An ASGI application around another."""

    def __init__(self, app: App, callers: Callers, meter: Meter, settings: Settings) -> None:
        self._app = app
        self._callers = callers
        self._meter = meter
        self._settings = settings
        self._origins = frozenset(origin.encode() for origin in settings.allowed_origins)
        self._networks = tuple(ip_network(network) for network in settings.trusted_proxies)
        self._trusts = lru_cache(maxsize=1024)(self._is_trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        authorization = origin = asked_method = None
        forwarded: list[bytes] = []
        size = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name not in _LOOKED_AT:
                continue
            if name == b"authorization":
                authorization = value
            elif name == b"origin":
                origin = value
            elif name == b"x-forwarded-for":
                forwarded.append(value)
            else:
                asked_method = value
        added: RawHeaders = []
        if self._origins:
            added.append((b"vary", b"Origin"))
            if origin in self._origins:
                if asked_method is not None and scope["method"] == "OPTIONS":
                    await _send(send, 204, b"", _preflight(origin))
                    return
                added += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _EXPOSED)]
        if forwarded and self._networks:
            self._find_client(scope, forwarded)

        caller: Caller | None = None
        try:
            if size > LARGEST_HEADERS:
                raise Problem("payload_too_large", "The header fields of the request are too large.", status=431)
            if len(scope["path"]) + len(scope["query_string"]) > LONGEST_ADDRESS:
                raise Problem("payload_too_large", "The address of the request is too long.", status=414)
            if authorization is not None and scope["path"].startswith(_COUNTED):
                scheme, _, token = authorization.decode("latin-1").partition(" ")
                if scheme.lower() == "bearer":
                    caller = await self._callers.recognize(token.strip())
                if caller is not None:
                    added += await self._meter.charge(caller)
        except Refused as refused:
            await self._refuse(scope, send, refused.problem, [*refused.headers, *added], caller, began)
        except Problem as problem:
            await self._refuse(scope, send, problem, added, caller, began)
        except Exception:
            _log.exception("unexpected error")
            await self._refuse(scope, send, Problem("internal"), added, caller, began)
        else:
            await self._app(scope, receive, _adding(send, added) if added else send)

    async def _refuse(
        self, scope: Scope, send: Send, problem: Problem, added: RawHeaders, caller: Caller | None, began: float
    ) -> None:
        named = problem_headers(problem, self._settings, None)
        headers = [(name.lower().encode(), value.encode()) for name, value in named.items()]
        headers += [(b"content-type", PROBLEM_TYPE.encode()), *added]
        await _send(
            send, problem.status, orjson.dumps(problem.document(self._settings.documentation_url, None)), headers
        )
        _log.info(
            "request",
            extra={
                "door": "gateway",
                "practice": None if caller is None else caller.practice_slug,
                "client": None if caller is None else caller.client_id,
                "method": scope["method"],
                "status": problem.status,
                "milliseconds": round((time.perf_counter() - began) * 1000, 2),
            },
        )

    def _find_client(self, scope: Scope, forwarded: list[bytes]) -> None:
        """The nearest address that is none of our proxies'; what stands before it anybody may have written."""
        peer = scope.get("client") or ("", 0)
        address = peer[0]
        chain = b",".join(forwarded).decode("latin-1").split(",")
        while chain and self._trusts(address):
            address = chain.pop().strip()
        if _is_address(address):
            scope["client"] = (address, 0 if address != peer[0] else peer[1])

    def _is_trusted(self, address: str) -> bool:
        return _is_address(address) and any(ip_address(address) in network for network in self._networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _adding(send: Send, added: RawHeaders) -> Send:
    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            # Where a sandbox's caller wants to see a limit reached, the door says so: what is left would contradict it.
            headers = message["headers"]
            if b"ratelimit" in dict(headers):
                headers = [*headers, *(each for each in added if each[0] != b"ratelimit")]
            else:
                headers = [*headers, *added]
            message["headers"] = headers
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
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
