"""The REST door: routes generated from OPERATIONS, and the wire format of requests and answers.

Transport errors are found when the request is received, but raised where the contract reads the request: after token
and scope have been checked.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from frontdesk.access.clients.resources import API_RESOURCE
from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.engine.arguments import Arguments, from_http
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.sandbox import engine_for
from frontdesk.operations import Operation, published
from frontdesk.settings import Settings
from frontdesk.web.bodies import identify_again, read_body, require_json_body
from frontdesk.web.http_request import SIMULATE, HttpRequest, decoded, request_of, send_response
from frontdesk.web.negotiation import response_type
from frontdesk.web.request_log import RequestLog
from frontdesk.web.responses import TRACE, door_problem

PREFIX = API_RESOURCE
MAX_PARAMETERS = 100
_ID_AT = 3  # among the segments of a path: /api/slots/{slotId}


class RestDoor:
    """An ASGI application for everything under /api."""

    def __init__(self, engine: Engine, settings: Settings, requests: RequestLog) -> None:
        self._engine = engine
        self._settings = settings
        self._requests = requests
        self._routes = Routes(published().values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = request_of(scope)
        request_id = request.request_id
        call: Call | None = None
        operation: Operation | None = None
        code: str | None = None
        try:
            operation, path = self._routes.find(request.method, request.path)
            errors: list[Problem] = []
            media_type = _media_type(request, errors)
            body = b""
            if operation.method != "GET":
                body = await _json_body(request, receive, errors)
                identify_again(request, self._engine.authenticator, PREFIX)
            call = _call(operation, path, request, body, errors)
            answer = await engine_for(call, self._engine).execute(call)
        except Problem as problem:
            status, code = problem.status, problem.code
            methods = self._routes.methods(request.path)
            headers, content = door_problem(problem, self._settings, request_id, PREFIX, methods)
            await send_response(send, request, status, headers, content)
        else:
            status = answer.status
            headers = [
                (b"content-type", media_type),
                (b"cache-control", b"no-store"),
                (b"x-content-type-options", b"nosniff"),
                (b"content-length", b"%d" % len(answer.content)),
                (TRACE, request_id.encode()),
            ]
            await send_response(send, request, status, headers, answer.content)
        caller = request.caller if call is None else call.caller
        name = None if operation is None else operation.name
        self._requests.record("rest", name, caller, request.method, status, code, request.began, request_id)


class Routes:
    """Finds the operation of a request by one look-up: a path has at most one id, always at the same place."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._fixed: dict[str, dict[str, Operation]] = {}
        self._with_id: dict[tuple[str, ...], tuple[str, dict[str, Operation]]] = {}  # by the segments around the id
        for operation in operations:
            path = PREFIX + operation.path
            segments = path.split("/")
            ids = [at for at, segment in enumerate(segments) if segment.startswith("{")]
            if not ids:
                self._fixed.setdefault(path, {})[operation.method] = operation
                continue
            assert ids == [_ID_AT], path
            _, methods = self._with_id.setdefault(_around_id(segments), (segments[_ID_AT][1:-1], {}))
            methods[operation.method] = operation

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        methods, ids = self._at(path)
        if not methods:
            raise Problem("not_found", "There is nothing at this path.")
        if method not in methods:
            raise Problem("method_not_allowed")
        return methods[method], ids

    def methods(self, path: str) -> Iterable[str]:
        return self._at(path)[0]

    def _at(self, path: str) -> tuple[Mapping[str, Operation], dict[str, str]]:
        if (methods := self._fixed.get(path)) is not None:
            return methods, {}
        segments = path.split("/")
        if len(segments) > _ID_AT and segments[_ID_AT]:
            name, methods = self._with_id.get(_around_id(segments), ("", {}))
            return methods, {name: segments[_ID_AT]}
        return {}, {}


def _around_id(segments: list[str]) -> tuple[str, ...]:
    return (*segments[:_ID_AT], *segments[_ID_AT + 1 :])


def _media_type(request: HttpRequest, errors: list[Problem]) -> bytes:
    try:
        return response_type(request.headers.get(b"accept"))
    except Problem as problem:
        errors.append(problem)
        return b""


async def _json_body(request: HttpRequest, receive: Receive, errors: list[Problem]) -> bytes:
    try:
        body = await read_body(request, receive)
        require_json_body(request.headers.get(b"content-type"), body)
    except Problem as problem:
        errors.append(problem)
        return b""
    return body


def _call(operation: Operation, path: dict[str, str], request: HttpRequest, body: bytes, errors: list[Problem]) -> Call:
    headers, query = request.headers, request.query
    return Call(
        operation,
        request.token,
        lambda: _arguments(operation, path, query, body, errors),
        request.request_id,
        decoded(headers.get(b"idempotency-key")),
        decoded(headers.get(SIMULATE)),
        request.caller,
        None if errors else (request.path, query),
        resource=PREFIX,
    )


def _arguments(
    operation: Operation, path: dict[str, str], query: bytes, body: bytes, errors: list[Problem]
) -> Arguments:
    if errors:
        raise errors[0]
    return from_http(operation, path, _query_pairs(query) if query else [], body)


def _query_pairs(query: bytes) -> list[tuple[str, str]]:
    """The parameters as they came; bytes that are not UTF-8 are kept, and refused when the arguments are read."""
    text = query.decode("utf-8", "surrogateescape")
    if "%" not in text and "+" not in text and text.count("&") < MAX_PARAMETERS:  # nothing to decode: much faster
        return [(name, value) for name, _, value in (pair.partition("=") for pair in text.split("&") if pair)]
    try:
        return parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        message = f"the query must have at most {MAX_PARAMETERS} parameters"
        raise invalid([FieldError("$", BINDING, message)]) from None
