"""The MCP door's transport: POST /mcp, one message in, one event-stream frame out, nothing kept in between.

The token is checked before anything else is said about a request. What is wrong with the token or with the HTTP of a
request is a problem document; what is wrong with its JSON-RPC is a JSON-RPC error; what an operation refuses is a tool
result with isError. Every call goes through the engine, as at the REST door.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from frontdesk.domain.errors import BY_GATEWAY, Problem
from frontdesk.doors.answers import PROBLEM_TYPE, TRACE_HEADER, problem_headers, request_id_of
from frontdesk.doors.bodies import read_body, require_json_body
from frontdesk.doors.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Message, Rejection, read_message
from frontdesk.doors.mcp.origins import Origins
from frontdesk.doors.mcp.results import (
    DISCOVERED,
    MODERN_TOOLS_LIST,
    TOOLS_LIST,
    error_reply,
    executed,
    failed,
    frame,
    initialized,
    pending,
    result_reply,
)
from frontdesk.doors.mcp.tools import TOOLS
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.reading import Arguments, from_tool
from frontdesk.engine.simulation import META_KEY
from frontdesk.operations import Operation
from frontdesk.settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PATH = "/mcp"
_STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
_JSON = {"Content-Type": "application/json", "Cache-Control": "no-store"}
_OF_HTTP = BY_GATEWAY | {"unauthorized", "forbidden_tenant"}  # never a tool's result
_ANY_TOKEN_MAY = TOOLS["get_capabilities"]
_log = logging.getLogger("frontdesk.request")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str]
    outcome: int  # what the log says: the operation's own status, also where HTTP succeeded
    traced: bool = True


@dataclass(slots=True)
class Request:
    """One HTTP request while it is answered. `call` is what the engine was asked, for the log."""

    method: str
    headers: dict[str, str]
    raw_headers: Iterable[tuple[bytes, bytes]]
    request_id: str
    began: float = field(default_factory=time.perf_counter)
    operation: Operation | None = None
    call: Call | None = None


class McpDoor:
    """An ASGI application for one path."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._origins = Origins(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request = Request(scope["method"], headers, scope["headers"], request_id_of(headers.get("traceparent")))
        try:
            reply = await self._answer(request, receive)
        except Problem as problem:
            reply = self._problem(problem, request.request_id)
        except Rejection as rejection:
            reply = _rejected(rejection)
        await _send(send, reply, request.request_id)
        _log_request(request, reply)

    async def _answer(self, request: Request, receive: Receive) -> Reply:
        self._origins.check(request.headers)
        if request.method != "POST":
            raise Problem("method_not_allowed", headers={"Allow": "POST"})
        try:
            message = await _take_in(request, receive)
            tool = _called_tool(message)
        except (Problem, Rejection):
            await self._check_token(request)
            raise
        if tool is not None:
            return await self._call_tool(request, message, *tool)
        await self._check_token(request)
        if message.id is None:
            return Reply(202, b"", {}, 202)
        return Reply(200, frame(result_reply(message, _result_of(message))), _STREAM, 200)

    async def _check_token(self, request: Request) -> None:
        """Whoever may ask for their capabilities may speak here: the engine answers that for any valid token."""
        request.call = Call(_ANY_TOKEN_MAY, _bearer(request.headers), Arguments, request.request_id)
        await self._engine.execute(request.call)

    async def _call_tool(
        self, request: Request, message: Message, operation: Operation, given: Mapping[str, Any]
    ) -> Reply:
        request.operation = operation
        request.call = Call(
            operation,
            _bearer(request.headers),
            lambda: from_tool(operation, given),
            request.request_id,
            simulate=_simulated(request, message),
        )
        try:
            answer = await self._engine.execute(request.call)
            outcome, result = answer.status, executed(answer.body, modern=message.modern)
        except Problem as problem:
            if problem.code in _OF_HTTP:
                raise
            outcome = problem.status
            if problem.code == "confirmation_required":
                result = pending(operation, problem, modern=message.modern)
            else:
                document = problem.document(self._settings.documentation_url, request.request_id)
                result = failed(problem, document, modern=message.modern)
        return Reply(200, frame(result_reply(message, result)), _STREAM, outcome)

    def _problem(self, problem: Problem, request_id: str) -> Reply:
        told = None if problem.code in BY_GATEWAY else request_id  # only a sandbox's caller asks a door for these
        headers = problem_headers(problem, self._settings, told, PATH)
        if problem.code == "payload_too_large":
            headers["Connection"] = "close"
        document = problem.document(self._settings.documentation_url, told)
        headers["Content-Type"] = PROBLEM_TYPE
        return Reply(problem.status, orjson.dumps(document), headers, problem.status, traced=told is not None)


async def _take_in(request: Request, receive: Receive) -> Message:
    faults: list[Problem] = []
    body = await read_body(request.headers, receive, faults)
    if faults:
        raise faults[0]
    require_json_body(request.headers, body)
    if not _takes_event_streams(request.headers.get("accept")):
        raise Problem("not_acceptable", "Replies are event streams: Accept must allow text/event-stream.")
    return read_message(body, request.headers, request.raw_headers)


@lru_cache(maxsize=16)
def _takes_event_streams(accept: str | None) -> bool:
    ranges = {part.partition(";")[0].strip() for part in (accept or "*/*").lower().split(",")}
    return not ranges.isdisjoint(("text/event-stream", "text/*", "*/*"))


def _called_tool(message: Message) -> tuple[Operation, Mapping[str, Any]] | None:
    """The operation and arguments of a tool call, None for any other message."""
    if message.method != "tools/call" or message.id is None:
        return None
    name, given = message.params.get("name"), message.params.get("arguments")
    operation = TOOLS.get(name) if isinstance(name, str) else None
    if operation is None:
        raise message.rejection(INVALID_PARAMS, "Unknown tool. tools/list names every tool.")
    if given is not None and not isinstance(given, dict):
        raise message.rejection(INVALID_PARAMS, "params.arguments must be an object.")
    return operation, given or {}


def _simulated(request: Request, message: Message) -> str | None:
    """The code that a caller of a sandbox wants to see: from the call's metadata, or as at the REST door."""
    wanted = message.params.get("_meta", {}).get(META_KEY)
    return request.headers.get(META_KEY) if wanted is None else str(wanted)


def _result_of(message: Message) -> Any:
    """What is answered without an operation."""
    if message.method == "tools/list":
        if message.params.get("cursor") is not None:
            raise message.rejection(INVALID_PARAMS, "Unknown cursor: all tools are on one page.")
        return MODERN_TOOLS_LIST if message.modern else TOOLS_LIST
    if message.modern:
        if message.method == "server/discover":
            return DISCOVERED
    elif message.method == "ping":
        return {}
    elif message.method == "initialize":
        if not isinstance(message.params.get("protocolVersion"), str):
            raise message.rejection(INVALID_PARAMS, "params.protocolVersion must be a string.")
        return initialized(message.params["protocolVersion"])
    raise message.rejection(METHOD_NOT_FOUND, "Method not found")


def _rejected(rejection: Rejection) -> Reply:
    if rejection.framed:
        return Reply(200, frame(error_reply(rejection)), _STREAM, rejection.status)
    return Reply(rejection.status, error_reply(rejection), _JSON, rejection.status)


def _bearer(headers: Mapping[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def _send(send: Send, reply: Reply, request_id: str) -> None:
    headers = {**reply.headers, "X-Content-Type-Options": "nosniff"}
    if reply.traced:
        headers[TRACE_HEADER] = request_id
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-length", str(len(reply.body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": reply.body})


def _log_request(request: Request, reply: Reply) -> None:
    caller = None if request.call is None else request.call.caller
    _log.info(
        "request",
        extra={
            "door": "mcp",
            "operation": None if request.operation is None else request.operation.name,
            "practice": None if caller is None else caller.practice_slug,
            "client": None if caller is None else caller.client_id,
            "method": request.method,
            "status": reply.outcome,
            "milliseconds": round((time.perf_counter() - request.began) * 1000, 2),
            "requestId": request.request_id,
        },
    )
