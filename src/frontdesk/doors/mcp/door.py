"""The MCP door's transport: POST /mcp, one message in, one event-stream frame out, nothing kept in between.

The token is checked before anything else is said about a request. What is wrong with the token or with the HTTP of a
request is a problem document; what is wrong with its JSON-RPC is a JSON-RPC error; what an operation refuses is a tool
result with isError. Every call goes through the engine, as at the REST door.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from frontdesk.domain.errors import BY_GATEWAY, Problem
from frontdesk.doors.arrival import (
    SIMULATE,
    Arrival,
    RawHeaders,
    Receive,
    Scope,
    Send,
    arrival_of,
    decoded,
    send_answer,
)
from frontdesk.doors.bodies import read_body, require_json_body
from frontdesk.doors.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Message, Rejection, read_message
from frontdesk.doors.mcp.origins import Origins
from frontdesk.doors.mcp.repeats import KnownCalls, ToolCall
from frontdesk.doors.mcp.results import (
    DISCOVERED,
    error_reply,
    executed_frame,
    failed,
    frame,
    initialized,
    pending,
    result_reply,
    tools_list,
)
from frontdesk.doors.mcp.tools import TOOLS
from frontdesk.doors.request_log import RequestLog, log_line
from frontdesk.doors.responses import TRACE, problem_answer, trace_id_of
from frontdesk.engine.arguments import Arguments, from_tool
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.simulation import META_KEY
from frontdesk.operations import Operation
from frontdesk.settings import Settings

PATH = "/mcp"
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    _NO_SNIFFING,
]
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), _NO_SNIFFING]
_OF_HTTP = BY_GATEWAY | {"unauthorized", "forbidden_tenant"}  # never a tool's result
_ANY_TOKEN_MAY = TOOLS["get_capabilities"]


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes
    headers: RawHeaders
    outcome: int  # what the log says: the operation's own status, also where HTTP succeeded
    code: str | None = None
    traced: bool = True


@dataclass(slots=True)
class Request:
    """One HTTP request while it is answered. `call` is what the engine was asked, for the log."""

    arrival: Arrival
    request_id: str
    operation: Operation | None = None
    call: Call | None = None

    @property
    def method(self) -> str:
        method: str = self.arrival.scope["method"]
        return method

    @property
    def token(self) -> str | None:
        return self.arrival.head.token


class McpDoor:
    """An ASGI application for one path."""

    def __init__(self, engine: Engine, settings: Settings, requests: RequestLog | None = None) -> None:
        self._engine = engine
        self._requests = requests or RequestLog(log_line)
        self._settings = settings
        self._origins = Origins(settings)
        self._known = KnownCalls()

    async def __call__(self, scope: Scope, receive: Receive, send: Send, arrival: Arrival | None = None) -> None:
        arrival = arrival or arrival_of(scope)
        request = Request(arrival, trace_id_of(arrival.head.headers))
        try:
            reply = await self._answer(request, receive)
        except Problem as problem:
            reply = self._problem(problem, request.request_id)
        except Rejection as rejection:
            reply = _rejected(rejection)
        await send_answer(send, arrival, reply.status, _headers(reply, request.request_id), reply.body)
        self._note(request, reply)

    async def _answer(self, request: Request, receive: Receive) -> Reply:
        self._origins.check(request.arrival.head.headers)
        if request.method != "POST":
            raise Problem("method_not_allowed", headers={"Allow": "POST"})
        try:
            faults: list[Problem] = []
            head = request.arrival.head
            body = await read_body(head.headers.get(b"content-length"), receive, faults, scope=request.arrival.scope)
            call, message_id = self._known.find(head, body)
            if call is None:
                message = _message(request, body, faults)
                call, message_id = _tool_call(message, head.headers), orjson.dumps(message.id)
        except (Problem, Rejection):
            await self._check_token(request)
            raise
        if call is not None:
            reply = await self._call_tool(request, call, message_id)
            if request.call is not None and reply.code is None:  # it was read, and nothing in it was refused
                self._known.keep(head, body, call)
            return reply
        await self._check_token(request)
        if message.id is None:
            return Reply(202, b"", [_NO_SNIFFING], 202)
        return Reply(200, frame(result_reply(message_id, _result_of(message))), _STREAM, 200)

    async def _check_token(self, request: Request) -> None:
        """Whoever may ask for their capabilities may speak here: the engine answers that for any valid token."""
        request.call = Call(_ANY_TOKEN_MAY, request.token, Arguments, request.request_id, caller=request.arrival.caller)
        await self._engine.execute(request.call)

    async def _call_tool(self, request: Request, call: ToolCall, message_id: bytes) -> Reply:
        operation, given, simulate, question, modern = call
        request.operation = operation
        caller, code = request.arrival.caller, None
        try:
            answer = None
            if caller is not None and question is not None:
                kept = self._engine.warm.at_hand(caller, *question)
                if kept and (kept.versions.calendar is None or await self._engine.warm.still_true(caller, kept)):
                    answer = kept.answer
            if answer is None:
                request.call = Call(
                    operation,
                    request.token,
                    lambda: from_tool(operation, given),
                    request.request_id,
                    simulate=simulate,
                    caller=caller,
                    question=question,
                )
                answer = await self._engine.execute(request.call)
            return Reply(200, executed_frame(message_id, answer, modern=modern), _STREAM, answer.status)
        except Problem as problem:
            if problem.code in _OF_HTTP:
                raise
            outcome, code = problem.status, problem.code
            if problem.code == "confirmation_required":
                result = pending(operation, problem, modern=modern)
            else:
                document = problem.document(self._settings.documentation_url, request.request_id)
                result = failed(problem, document, modern=modern)
        return Reply(200, frame(result_reply(message_id, result)), _STREAM, outcome, code)

    def _problem(self, problem: Problem, request_id: str) -> Reply:
        told = None if problem.code in BY_GATEWAY else request_id  # only a sandbox's caller asks a door for these
        headers, body = problem_answer(problem, self._settings, told, PATH)
        return Reply(
            problem.status, body, headers, problem.status, problem.code, traced=False
        )  # or untraced on purpose

    def _note(self, request: Request, reply: Reply) -> None:
        caller = request.arrival.caller if request.call is None else request.call.caller
        name = None if request.operation is None else request.operation.name
        began, request_id = request.arrival.began, request.request_id
        self._requests.answered("mcp", name, caller, request.method, reply.outcome, reply.code, began, request_id)


def _message(request: Request, body: bytes, faults: list[Problem]) -> Message:
    if faults:
        raise faults[0]
    headers = request.arrival.head.headers
    require_json_body(headers.get(b"content-type"), body)
    if not _takes_event_streams(headers.get(b"accept")):
        raise Problem("not_acceptable", "Replies are event streams: Accept must allow text/event-stream.")
    return read_message(body, headers, request.arrival.scope["headers"])


@lru_cache(maxsize=16)
def _takes_event_streams(accept: bytes | None) -> bool:
    ranges = {part.partition(";")[0].strip() for part in (decoded(accept) or "*/*").lower().split(",")}
    return not ranges.isdisjoint(("text/event-stream", "text/*", "*/*"))


def _tool_call(message: Message, headers: Mapping[bytes, bytes]) -> ToolCall | None:
    """None for any other message."""
    if message.method != "tools/call" or message.id is None:
        return None
    name, given = message.params.get("name"), message.params.get("arguments")
    operation = TOOLS.get(name) if isinstance(name, str) else None
    if operation is None:
        raise message.rejection(INVALID_PARAMS, "Unknown tool. tools/list names every tool.")
    if given is not None and not isinstance(given, dict):
        raise message.rejection(INVALID_PARAMS, "params.arguments must be an object.")
    given, simulate = given or {}, _simulated(message, headers)
    question = None
    if operation.depends_on is not None and simulate is None:
        question = (operation.name, orjson.dumps(given, option=orjson.OPT_SORT_KEYS))
    return ToolCall(operation, given, simulate, question, message.modern)


def _simulated(message: Message, headers: Mapping[bytes, bytes]) -> str | None:
    """The code that a caller of a sandbox wants to see: from the call's metadata, or as at the REST door."""
    meta = message.params.get("_meta")
    wanted = None if meta is None else meta.get(META_KEY)
    return decoded(headers.get(SIMULATE)) if wanted is None else str(wanted)


def _result_of(message: Message) -> Any:
    """What is answered without an operation."""
    if message.method == "tools/list":
        if message.params.get("cursor") is not None:
            raise message.rejection(INVALID_PARAMS, "Unknown cursor: all tools are on one page.")
        return tools_list(modern=message.modern)
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


def _headers(reply: Reply, request_id: str) -> RawHeaders:
    headers = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
    if reply.traced:
        headers.append((TRACE, request_id.encode()))
    return headers
