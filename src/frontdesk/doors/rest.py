"""The REST door: wire format only. Every route comes from OPERATIONS; every call goes through the engine.

Transport faults are noticed while the request is taken in but raised where the contract reads the request, after the
token and the scope have been checked.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import orjson

from frontdesk.domain.errors import BINDING, BY_GATEWAY, FieldError, Problem, invalid
from frontdesk.doors.answers import PROBLEM_TYPE, problem_headers, request_id_of
from frontdesk.doors.bodies import read_body, require_json_body
from frontdesk.doors.negotiation import response_type
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.reading import Arguments, from_http
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

T = TypeVar("T")

PREFIX = "/api"
MOST_PARAMETERS = 100
_log = logging.getLogger("frontdesk.request")


class RestDoor:
    """An ASGI application for everything under /api."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._routes = Routes(OPERATIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers = _headers(scope["headers"])
        request_id = request_id_of(headers.get("traceparent"))
        call: Call | None = None
        try:
            operation, path = self._routes.find(scope["method"], scope["path"])
            faults: list[Problem] = []
            media_type = _noting(faults, lambda: response_type(headers.get("accept")))
            body = b""
            if operation.method != "GET":
                body = await read_body(headers, receive, faults)
                _noting(faults, lambda: require_json_body(headers, body))
            call = Call(
                operation,
                _bearer(headers.get("authorization")),
                lambda: _arguments(operation, path, scope["query_string"], body, faults),
                request_id,
                headers.get("idempotency-key"),
                headers.get("frontdesk-simulate"),
            )
            answer = await self._engine.execute(call)
        except Problem as problem:
            status = problem.status
            await self._send_problem(send, problem, request_id)
        else:
            status = answer.status
            await _send(
                send,
                status,
                orjson.dumps(answer.body),
                [
                    (b"content-type", media_type or b"application/json"),
                    (b"x-svc-trace-id", request_id.encode()),
                    (b"cache-control", b"no-store"),
                    (b"x-content-type-options", b"nosniff"),
                ],
            )
        _log_request(call, scope, status, began, request_id)

    async def _send_problem(self, send: Send, problem: Problem, request_id: str) -> None:
        told = None if problem.code in BY_GATEWAY else request_id  # only a sandbox's caller asks a door for these
        headers = problem_headers(problem, self._settings, told, PREFIX)
        if problem.code == "payload_too_large":
            headers["Connection"] = "close"
        raw = [(b"content-type", PROBLEM_TYPE.encode())]
        raw += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        body = orjson.dumps(problem.document(self._settings.documentation_url, told))
        await _send(send, problem.status, body, raw)


class Routes:
    """Finds the operation of a request: fixed paths by one look-up, paths with ids by one expression each."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._fixed: dict[str, dict[str, Operation]] = {}
        self._with_ids: dict[re.Pattern[str], dict[str, Operation]] = {}
        for operation in operations:
            if "{" in operation.path:
                pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", PREFIX + operation.path) + r"\Z")
                self._with_ids.setdefault(pattern, {})[operation.method] = operation
            else:
                self._fixed.setdefault(PREFIX + operation.path, {})[operation.method] = operation

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        methods, ids = self._fixed.get(path), {}
        if methods is None:
            for pattern, candidates in self._with_ids.items():
                if found := pattern.match(path):
                    methods, ids = candidates, found.groupdict()
                    break
        if methods is None:
            raise Problem("not_found", "There is nothing at this path.")
        if method not in methods:
            raise Problem("method_not_allowed", headers={"Allow": ", ".join(sorted(methods))})
        return methods[method], ids


def _arguments(
    operation: Operation, path: dict[str, str], query: bytes, body: bytes, faults: list[Problem]
) -> Arguments:
    if faults:
        raise faults[0]
    return from_http(operation, path, _query_pairs(query) if query else [], body)


def _query_pairs(query: bytes) -> list[tuple[str, str]]:
    """The parameters as they came; bytes that are not UTF-8 are kept for the reading to refuse."""
    text = query.decode("utf-8", "surrogateescape")
    try:
        return parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_PARAMETERS)
    except ValueError:
        message = f"the query must have at most {MOST_PARAMETERS} parameters"
        raise invalid([FieldError("$", BINDING, message)]) from None


def _noting(faults: list[Problem], check: Callable[[], T]) -> T | None:
    try:
        return check()
    except Problem as problem:
        faults.append(problem)
        return None


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """By lower-case name; of several the last, as the gateway takes it too. Several Accept headers are one list."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name == "accept" and name in headers else value
    return headers


def _bearer(authorization: str | None) -> str | None:
    if authorization is None or authorization[:7].lower() != "bearer ":
        return None
    return authorization[7:].strip()


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _log_request(call: Call | None, scope: Scope, status: int, began: float, request_id: str) -> None:
    caller = None if call is None else call.caller
    _log.info(
        "request",
        extra={
            "door": "rest",
            "operation": None if call is None else call.operation.name,
            "practice": None if caller is None else caller.practice_slug,
            "client": None if caller is None else caller.client_id,
            "method": scope["method"],
            "status": status,
            "milliseconds": round((time.perf_counter() - began) * 1000, 2),
            "requestId": request_id,
        },
    )
