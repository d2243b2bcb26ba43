"""The REST door: wire format only. Every route comes from OPERATIONS; every call goes through the engine.

Transport faults are noticed while the request is taken in but raised where the contract reads the request, after the
token and the scope have been checked.
"""

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

from frontdesk.domain.errors import BINDING, BY_GATEWAY, FieldError, Problem, invalid
from frontdesk.doors.arrival import (
    SIMULATE,
    Arrival,
    Receive,
    Scope,
    Send,
    arrival_of,
    decoded,
    send_answer,
)
from frontdesk.doors.bodies import read_body, require_json_body
from frontdesk.doors.request_log import RequestLog, log_line
from frontdesk.doors.responses import TRACE, answer_headers, problem_answer, trace_id_of
from frontdesk.engine.arguments import Arguments, from_http
from frontdesk.engine.execute import Call, Engine
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.settings import Settings

PREFIX = "/api"
MOST_PARAMETERS = 100


class RestDoor:
    """An ASGI application for everything under /api."""

    def __init__(self, engine: Engine, settings: Settings, requests: RequestLog | None = None) -> None:
        self._engine = engine
        self._settings = settings
        self._requests = requests or RequestLog(log_line)
        self._routes = Routes(OPERATIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, arrival: Arrival | None = None) -> None:
        arrival = arrival or arrival_of(scope)
        caller, request_id = arrival.caller, trace_id_of(arrival.head.headers)
        call: Call | None = None
        operation: Operation | None = None
        code: str | None = None
        try:
            operation, path = self._routes.find(scope["method"], scope["path"])
            if arrival.trouble is not None:
                raise arrival.trouble
            call = await _call(operation, path, scope, receive, arrival, request_id)
            answer = await self._engine.execute(call)
        except Problem as problem:
            status, code = problem.status, problem.code
            await self._send_problem(send, problem, request_id, arrival)
        else:
            status = answer.status
            said, _ = answer_headers(answer, arrival.head.accepted or b"application/json")
            await send_answer(send, arrival, status, [*said, (TRACE, request_id.encode())], answer.content)
        if call is not None:
            caller = call.caller
        name = None if operation is None else operation.name
        self._requests.answered("rest", name, caller, scope["method"], status, code, arrival.began, request_id)

    async def _send_problem(self, send: Send, problem: Problem, request_id: str, arrival: Arrival) -> None:
        told = None if problem.code in BY_GATEWAY else request_id  # only a sandbox's caller asks a door for these
        headers, body = problem_answer(problem, self._settings, told, PREFIX)
        headers.append((b"content-length", b"%d" % len(body)))
        await send_answer(send, arrival, problem.status, headers, body)


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


async def _call(
    operation: Operation, path: dict[str, str], scope: Scope, receive: Receive, arrival: Arrival, request_id: str
) -> Call:
    headers = arrival.head.headers
    faults: list[Problem] = []
    if arrival.head.accepted is None:
        faults.append(Problem("not_acceptable"))
    body, question = b"", None
    if operation.method == "GET":
        question = (scope["path"], scope["query_string"])
    else:
        body = await read_body(headers.get(b"content-length"), receive, faults, scope=scope)
        try:
            require_json_body(headers.get(b"content-type"), body)
        except Problem as problem:
            faults.append(problem)
    return Call(
        operation,
        arrival.head.token,
        lambda: _arguments(operation, path, scope["query_string"], body, faults),
        request_id,
        decoded(headers.get(b"idempotency-key")),
        decoded(headers.get(SIMULATE)),
        arrival.caller,
        question,
    )


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
