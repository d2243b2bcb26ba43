"""The MCP door's transport: POST /mcp, stateless, one JSON-RPC message in and one event-stream frame out.

The token is checked before any other error is reported. A bad token or bad HTTP is answered with a problem document,
bad JSON-RPC with a JSON-RPC error, and a refusal of an operation with a tool result that has isError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import orjson
from starlette.types import Receive, Scope, Send

from frontdesk import tracing
from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.resources import MCP_RESOURCE
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.validation import ordered
from frontdesk.domain.errors import Problem
from frontdesk.doors.mcp.elicitation import (
    SESSION,
    Elicitation,
    agreement,
    declined,
    needs_consent_methods,
    question_of,
)
from frontdesk.doors.mcp.messages import (
    Message,
    Rejection,
    not_a_request,
    read_message,
)
from frontdesk.doors.mcp.methods import result_of
from frontdesk.doors.mcp.origins import Origins
from frontdesk.doors.mcp.results import (
    error_reply,
    executed,
    failed,
    frame,
    input_required,
    pending,
    pending_on_card,
    result_reply,
)
from frontdesk.doors.mcp.tool_calls import call_of, tool_of
from frontdesk.engine.answer_cache import Answer
from frontdesk.engine.arguments import Arguments
from frontdesk.engine.consent import Challenge
from frontdesk.engine.execute import Call, Engine
from frontdesk.engine.sandbox import SimulatedByGateway, engine_for
from frontdesk.operations import BY_NAME, Operation
from frontdesk.settings import Settings
from frontdesk.web.bodies import identify_again, read_body, require_json_body
from frontdesk.web.http_request import HttpRequest, RawHeaders, decoded, request_of, send_response, with_added
from frontdesk.web.negotiation import MAX_ACCEPT_LENGTH
from frontdesk.web.request_log import RequestLog
from frontdesk.web.responses import TRACE, door_problem, www_authenticate

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
_ANY_TOKEN_MAY = BY_NAME["get_capabilities"]


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes
    headers: RawHeaders
    outcome: int  # for the request log: the operation's own status, even inside an HTTP 200
    code: str | None = None
    streamed: bool = False  # the event stream is open, and this is its last frame
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
        self._elicitation = Elicitation(engine)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = request_of(scope)
        request = McpRequest(http)
        try:
            reply = await self._answer(request, receive, send)
        except Problem as problem:
            headers, body = door_problem(problem, self._settings, http.request_id, PATH, ("POST",))
            headers = self._with_challenge(headers, problem, request)
            reply = Reply(problem.status, body, headers, problem.status, problem.code, complete=True)
        except Rejection as rejection:
            reply = _rejected(rejection)
        if reply.streamed:
            await send({"type": "http.response.body", "body": reply.body})
        else:
            await send_response(send, http, reply.status, _headers(reply, http.request_id), reply.body)
        self._log(request, reply)

    async def _answer(self, request: McpRequest, receive: Receive, send: Send) -> Reply:
        self._origins.check(request.http.headers)
        if request.http.method != "POST":
            await self._check_token(request)
            raise Problem("method_not_allowed")
        try:
            message = await self._message(request.http, receive)
            operation = tool_of(message)
        except (Problem, Rejection):
            await self._check_token(request)
            raise
        if operation is not None:
            with tracing.tracer.tool_call(operation.name, message.params.get("_meta", {})):
                return await self._call_tool(request, operation, message, receive, send)
        caller = await self._check_token(request)
        if message.response is not None:
            await self._take_answer(caller, message.response, request.http.request_id)
        if message.id is None:
            return Reply(202, b"", [_NO_SNIFFING], 202)
        result = result_of(message, caller, self._settings.public_url)
        headers = _STREAM
        if message.method == "initialize" and needs_consent_methods(caller):
            headers = [*_STREAM, (SESSION, self._elicitation.session(caller, message.params.get("capabilities")))]
        return Reply(200, frame(result_reply(message, result)), headers, 200)

    async def _message(self, http: HttpRequest, receive: Receive) -> Message:
        body = await read_body(http, receive)
        identify_again(http, self._engine.authenticator, PATH)
        require_json_body(http.headers.get(b"content-type"), body)
        if not _takes_event_streams(http.headers.get(b"accept")):
            raise Problem("not_acceptable", "Replies are event streams: Accept must allow text/event-stream.")
        return read_message(body, http.headers, http.raw_headers)

    async def _take_answer(self, caller: Caller, response: Mapping[str, object], request_id: str) -> None:
        """The answer of a host's user to a question on the stream of a call, here or at another node."""
        token = self._elicitation.verified("question", caller, response["id"])
        if token is None:
            raise not_a_request()
        agreed = agreement(response.get("result")) is True
        await self._elicitation.answer(caller, token, agreed=agreed, request_id=request_id)

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

    async def _check_token(self, request: McpRequest) -> Caller:
        """Calls the operation that any valid token may call."""
        http = request.http
        request.call = Call(_ANY_TOKEN_MAY, http.token, Arguments, http.request_id, caller=http.caller, resource=PATH)
        await self._engine.execute(request.call)
        assert request.call.caller is not None
        return request.call.caller

    async def _call_tool(
        self, request: McpRequest, operation: Operation, message: Message, receive: Receive, send: Send
    ) -> Reply:
        http, request.operation = request.http, operation
        if operation.kind == "write" and http.caller is None:  # the ways to ask a person depend on the caller
            http.caller = await self._check_token(request)
        caller, request.call = http.caller, call_of(operation, message, http, PATH)
        if operation.kind == "write" and caller is not None and needs_consent_methods(caller):
            request.call.host = self._elicitation.ways(message, caller, http.headers.get(SESSION))
            try:
                request.call.agreed = await self._elicitation.agreed_to(message, caller, http.request_id)
            except Problem as problem:
                return self._failed(request, message, problem)
        try:
            answer = await engine_for(request.call, self._engine).execute(request.call)
        except Challenge as challenge:
            if caller is not None and "card" in request.call.host and challenge.asks in ("token", "card"):
                hidden = challenge.asks == "card"
                result = pending_on_card(operation, challenge, hidden_token=hidden, modern=message.modern)
                return _replied(message, result, challenge)
            if challenge.asks != "elicitation" or caller is None:
                of_staff = challenge.asks == "staff"
                result = pending(operation, challenge, of_staff=of_staff, modern=message.modern)
                return _replied(message, result, challenge)
            if not message.modern:
                return await self._ask(request, operation, message, challenge, receive, send)
            state = self._elicitation.signed("state", caller, challenge.extra["confirmationToken"])
            return _replied(message, input_required(question_of(operation, challenge), state), challenge)
        except Problem as problem:
            if (
                problem.code in _OF_HTTP
                or isinstance(problem, SimulatedByGateway)
                or _scopes_to_ask_for(request, problem) is not None
            ):
                raise
            return self._failed(request, message, problem)
        return _executed(message, answer)

    async def _ask(
        self,
        request: McpRequest,
        operation: Operation,
        message: Message,
        challenge: Challenge,
        receive: Receive,
        send: Send,
    ) -> Reply:
        """Asks on the stream of the call, and executes it after a yes."""
        http, call, token = request.http, request.call, challenge.extra["confirmationToken"]
        assert call is not None
        assert call.caller is not None
        caller, asked = call.caller, question_of(operation, challenge)
        question = {"jsonrpc": "2.0", "id": self._elicitation.signed("question", caller, token)}
        try:
            with self._elicitation.asking(caller):
                headers = with_added([*_STREAM, (TRACE, http.request_id.encode())], http, 200)
                http.response_started = True
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                body = frame(orjson.dumps({**question, "method": "elicitation/create", "params": asked}))
                await send({"type": "http.response.body", "body": body, "more_body": True})
                if not await self._elicitation.agreed(caller, token, receive, send, http.request_id):
                    raise declined()
            # The caller is identified again: rights and demands may have changed since the question.
            request.call = replace(call, agreed=token, caller=None)
            reply = _executed(message, await engine_for(request.call, self._engine).execute(request.call))
        except Problem as problem:
            reply = self._failed(request, message, problem)
        reply.streamed = http.response_started
        return reply

    def _failed(self, request: McpRequest, message: Message, problem: Problem) -> Reply:
        document = problem.document(self._settings.documentation_url, request.http.request_id)
        return _replied(message, failed(problem, document, modern=message.modern), problem)

    def _log(self, request: McpRequest, reply: Reply) -> None:
        http, call, operation = request.http, request.call, request.operation
        caller = http.caller if call is None else call.caller
        name, method = None if operation is None else operation.name, http.method
        self._requests.record("mcp", name, caller, method, reply.outcome, reply.code, http.began, http.request_id)


def _executed(message: Message, answer: Answer) -> Reply:
    result = executed(answer, modern=message.modern)
    return Reply(200, frame(result_reply(message, result)), _STREAM, answer.status)


def _replied(message: Message, result: Mapping[str, object], problem: Problem) -> Reply:
    return Reply(200, frame(result_reply(message, result)), _STREAM, problem.status, problem.code)


def _scopes_to_ask_for(request: McpRequest, problem: Problem) -> Sequence[str] | None:
    """The scopes that an assistant needs for the refused call, if its staff member can agree to them."""
    call = request.call
    if problem.code != "forbidden_scope" or call is None or call.caller is None or call.operation.scope is None:
        return None
    caller, scope = call.caller, call.operation.scope
    if scope in caller.scopes or scope not in caller.reachable:
        return None
    return ordered(caller.scopes | {scope})


@lru_cache(maxsize=16)
def _takes_event_streams(accept: bytes | None) -> bool:
    ranges = {
        part.partition(";")[0].strip() for part in (decoded(accept) or "*/*")[:MAX_ACCEPT_LENGTH].lower().split(",")
    }
    return not ranges.isdisjoint(("text/event-stream", "text/*", "*/*"))


def _rejected(rejection: Rejection) -> Reply:
    if rejection.framed:
        return Reply(200, frame(error_reply(rejection)), _STREAM, rejection.status)
    return Reply(rejection.status, error_reply(rejection), _JSON, rejection.status)


def _headers(reply: Reply, request_id: str) -> RawHeaders:
    if reply.complete:
        return reply.headers
    return [*reply.headers, (b"content-length", b"%d" % len(reply.body)), (TRACE, request_id.encode())]
