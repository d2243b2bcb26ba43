"""The MCP door's transport: POST /mcp, stateless, one JSON-RPC message in and one event-stream frame out.

The token is checked before any other fault is reported. A bad token or bad HTTP is answered with a problem document,
bad JSON-RPC with a JSON-RPC error, and a refusal of an operation with a tool result that has isError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.tokens import MCP_RESOURCE
from frontdesk.access.clients.validation import ordered
from frontdesk.domain.errors import BINDING, FieldError, Problem
from frontdesk.doors.bodies import read_body, require_json_body
from frontdesk.doors.http_request import (
    SIMULATE,
    HttpRequest,
    RawHeaders,
    Receive,
    Scope,
    Send,
    decoded,
    request_of,
    send_response,
)
from frontdesk.doors.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Message, Rejection, read_message
from frontdesk.doors.mcp.origins import Origins
from frontdesk.doors.mcp.results import (
    discovered,
    error_reply,
    executed,
    failed,
    frame,
    initialized,
    pending,
    result_reply,
    tools_list,
)
from frontdesk.doors.request_log import RequestLog
from frontdesk.doors.responses import TRACE, door_problem, www_authenticate
from frontdesk.engine.answer_cache import CacheKey
from frontdesk.engine.arguments import Arguments, from_tool
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.sandbox import META_KEY, SimulatedByGateway
from frontdesk.operations import BY_NAME, Operation
from frontdesk.settings import Settings

PATH = MCP_RESOURCE
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    _NO_SNIFFING,
]
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), _NO_SNIFFING]
_OF_HTTP = frozenset(("unauthorized", "forbidden_tenant"))  # never a tool's result
_KEY_IN_META = "idempotencyKey"
_ANY_TOKEN_MAY = BY_NAME["get_capabilities"]


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes
    headers: RawHeaders
    outcome: int  # for the request log: the operation's own status, even inside an HTTP 200
    code: str | None = None
    complete: bool = False  # whether `headers` include the length and, if there is one, the trace header


@dataclass(slots=True)
class McpRequest:
    """A request while it is answered. `operation` and `call` are for the request log."""

    http: HttpRequest
    operation: Operation | None = None
    call: Call | None = None


class McpDoor:
    """An ASGI application for one path."""

    def __init__(self, engine: Engine, settings: Settings, requests: RequestLog) -> None:
        self._engine = engine
        self._requests = requests
        self._settings = settings
        self._origins = Origins(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = request_of(scope)
        request = McpRequest(http)
        try:
            reply = await self._answer(request, receive)
        except Problem as problem:
            headers, body = door_problem(problem, self._settings, http.request_id, PATH, ("POST",))
            headers = self._with_challenge(headers, problem, request)
            reply = Reply(problem.status, body, headers, problem.status, problem.code, complete=True)
        except Rejection as rejection:
            reply = _rejected(rejection)
        await send_response(send, http, reply.status, _headers(reply, http.request_id), reply.body)
        self._log(request, reply)

    async def _answer(self, request: McpRequest, receive: Receive) -> Reply:
        self._origins.check(request.http.headers)
        if request.http.method != "POST":
            await self._check_token(request)
            raise Problem("method_not_allowed")
        try:
            message = await _message(request.http, receive)
            operation = _tool(message)
        except (Problem, Rejection):
            await self._check_token(request)
            raise
        if operation is not None:
            return await self._call_tool(request, operation, message)
        await self._check_token(request)
        if message.id is None:
            return Reply(202, b"", [_NO_SNIFFING], 202)
        caller = None if request.call is None else request.call.caller
        result = _result_of(message, caller, self._settings.public_url)
        return Reply(200, frame(result_reply(message, result)), _STREAM, 200)

    def _with_challenge(self, headers: RawHeaders, problem: Problem, request: McpRequest) -> RawHeaders:
        """With the scopes to ask for: all without a valid token, those it needs for an assistant that lacks one."""
        scopes = _scopes_to_ask_for(request, problem)
        if problem.status == 401:
            error, scopes = "invalid_token" if request.http.token else None, SCOPES
        elif scopes is not None:
            error = "insufficient_scope"
        else:
            return headers
        challenge = www_authenticate(self._settings, error, PATH, scopes)
        others = [header for header in headers if header[0] != b"www-authenticate"]
        return [*others, (b"www-authenticate", challenge.encode())]

    async def _check_token(self, request: McpRequest) -> None:
        """Calls the operation that any valid token may call."""
        http = request.http
        request.call = Call(_ANY_TOKEN_MAY, http.token, Arguments, http.request_id, caller=http.caller, resource=PATH)
        await self._engine.execute(request.call)

    async def _call_tool(self, request: McpRequest, operation: Operation, message: Message) -> Reply:
        http, given = request.http, message.params.get("arguments") or {}
        request.operation = operation
        key, key_errors = _idempotency_key(operation, message, http.headers)
        request.call = Call(
            operation,
            http.token,
            lambda: _arguments(operation, message, given, key_errors),
            http.request_id,
            key,
            simulate=_simulated(message, http.headers),
            caller=http.caller,
            resource=PATH,
            cache_key=None if message.repeated else _cache_key(operation, given),
        )
        code: str | None = None
        try:
            answer = await self._engine.execute(request.call)
        except Problem as problem:
            if (
                problem.code in _OF_HTTP
                or isinstance(problem, SimulatedByGateway)
                or _scopes_to_ask_for(request, problem) is not None
            ):
                raise
            status, code = problem.status, problem.code
            if code == "confirmation_required":
                result = pending(operation, problem, modern=message.modern)
            else:
                document = problem.document(self._settings.documentation_url, http.request_id)
                result = failed(problem, document, modern=message.modern)
        else:
            status, result = answer.status, executed(answer, modern=message.modern)
        return Reply(200, frame(result_reply(message, result)), _STREAM, status, code)

    def _log(self, request: McpRequest, reply: Reply) -> None:
        http, call, operation = request.http, request.call, request.operation
        caller = http.caller if call is None else call.caller
        name, method = None if operation is None else operation.name, http.method
        self._requests.answered("mcp", name, caller, method, reply.outcome, reply.code, http.began, http.request_id)


def _scopes_to_ask_for(request: McpRequest, problem: Problem) -> Sequence[str] | None:
    """The scopes that an assistant needs for the refused call, if its staff member can agree to them."""
    call = request.call
    if problem.code != "forbidden_scope" or call is None or call.caller is None or call.operation.scope is None:
        return None
    caller, scope = call.caller, call.operation.scope
    if scope in caller.scopes or scope not in caller.reachable:
        return None
    return ordered(caller.scopes | {scope})


async def _message(request: HttpRequest, receive: Receive) -> Message:
    headers = request.headers
    body = await read_body(request, receive)
    require_json_body(headers.get(b"content-type"), body)
    if not _takes_event_streams(headers.get(b"accept")):
        raise Problem("not_acceptable", "Replies are event streams: Accept must allow text/event-stream.")
    return read_message(body, headers, request.raw_headers)


@lru_cache(maxsize=16)
def _takes_event_streams(accept: bytes | None) -> bool:
    ranges = {part.partition(";")[0].strip() for part in (decoded(accept) or "*/*").lower().split(",")}
    return not ranges.isdisjoint(("text/event-stream", "text/*", "*/*"))


def _tool(message: Message) -> Operation | None:
    """The operation of a tool call; None for any other message."""
    if message.method != "tools/call" or message.id is None:
        return None
    name, given = message.params.get("name"), message.params.get("arguments")
    operation = BY_NAME.get(name) if isinstance(name, str) else None
    if operation is None:
        raise message.rejection(INVALID_PARAMS, "Unknown tool. tools/list names every tool.")
    if given is not None and not isinstance(given, dict):
        raise message.rejection(INVALID_PARAMS, "params.arguments must be an object.")
    return operation


def _cache_key(operation: Operation, given: dict[str, Any]) -> CacheKey | None:
    if operation.depends_on is None:
        return None
    try:
        return operation.name, orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # orjson reads deeper nesting than it writes
        return None


def _arguments(
    operation: Operation, message: Message, given: dict[str, Any], key_errors: list[FieldError]
) -> Arguments:
    arguments = from_tool(operation, given, message.repeated)
    arguments.errors += key_errors
    return arguments


def _idempotency_key(
    operation: Operation, message: Message, headers: Mapping[bytes, bytes]
) -> tuple[str | None, list[FieldError]]:
    """A write's key: from the header, as at the REST door, or from the call's metadata."""
    in_header = decoded(headers.get(b"idempotency-key"))
    in_meta = message.params.get("_meta", {}).get(_KEY_IN_META)
    if operation.kind != "write" or in_meta is None:
        return in_header, []
    if not isinstance(in_meta, str):
        return None, [FieldError(_KEY_IN_META, BINDING, f"{_KEY_IN_META} must be text")]
    if in_header not in (None, in_meta):
        differs = f"{_KEY_IN_META} must equal the header Idempotency-Key"
        return None, [FieldError(_KEY_IN_META, BINDING, differs)]
    return in_meta, []


def _simulated(message: Message, headers: Mapping[bytes, bytes]) -> str | None:
    """The error code to simulate: from the call's metadata, or from the header as at the REST door."""
    meta = message.params.get("_meta")
    wanted = None if meta is None else meta.get(META_KEY)
    return decoded(headers.get(SIMULATE)) if wanted is None else str(wanted)


def _result_of(message: Message, caller: Caller | None, public_url: str) -> Any:
    """The result of a message that calls no tool."""
    if message.method == "tools/list":
        if message.params.get("cursor") is not None:
            raise message.rejection(INVALID_PARAMS, "Unknown cursor: all tools are on one page.")
        reachable = None if caller is None or caller.staff_id is None else caller.reachable
        return tools_list(modern=message.modern, reachable=reachable)
    if message.modern:
        if message.method == "server/discover":
            return discovered(public_url)
    elif message.method == "ping":
        return {}
    elif message.method == "initialize":
        if not isinstance(message.params.get("protocolVersion"), str):
            raise message.rejection(INVALID_PARAMS, "params.protocolVersion must be a string.")
        return initialized(message.params["protocolVersion"], public_url)
    raise message.rejection(METHOD_NOT_FOUND, "Method not found")


def _rejected(rejection: Rejection) -> Reply:
    if rejection.framed:
        return Reply(200, frame(error_reply(rejection)), _STREAM, rejection.status)
    return Reply(rejection.status, error_reply(rejection), _JSON, rejection.status)


def _headers(reply: Reply, request_id: str) -> RawHeaders:
    if reply.complete:
        return reply.headers
    return [*reply.headers, (b"content-length", b"%d" % len(reply.body)), (TRACE, request_id.encode())]
