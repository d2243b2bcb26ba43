"""Replies as they leave: JSON-RPC in one event-stream frame, and tool results that say everything twice.

structuredContent is for programs, the text is for models and for clients that drop structuredContent, so the text
holds the same. Refuses to word a pending write as anything but a change that has not happened.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson

from frontdesk import __version__
from frontdesk.domain.errors import Problem
from frontdesk.doors.mcp.instructions import INSTRUCTIONS
from frontdesk.doors.mcp.messages import HANDSHAKE_VERSIONS, META, VERSIONS, Rejection
from frontdesk.doors.mcp.tools import tool
from frontdesk.engine.answer_cache import Answer
from frontdesk.operations import OPERATIONS, Operation

_SERVER = {"name": "frontdesk", "title": "Practice front desk", "version": __version__}
_CAPABILITIES: dict[str, Any] = {"tools": {}}
_CHALLENGE_FIELDS = ("confirmationToken", "expiresAt", "readBack")
# The same for everybody and as old as this release: clients may share it, and ask again after an hour.
_CACHING = {"ttlMs": 3_600_000, "cacheScope": "public"}
_MODERN = {"resultType": "complete", "_meta": {f"{META}serverInfo": _SERVER}}

DISCOVERED = orjson.Fragment(
    orjson.dumps(
        _MODERN
        | _CACHING
        | {"supportedVersions": VERSIONS, "capabilities": _CAPABILITIES, "instructions": INSTRUCTIONS}
    )
)


def frame(reply: bytes) -> bytes:
    """A reply as the one frame of an event stream."""
    return b"event: message\ndata: " + reply + b"\n\n"


def result_reply(message_id: bytes, result: Any) -> bytes:
    """The id is JSON already."""
    return orjson.dumps({"jsonrpc": "2.0", "id": orjson.Fragment(message_id), "result": result})


@cache
def tools_list(*, modern: bool) -> orjson.Fragment:
    """Made when first sent, so that a start does not wait for the schemas."""
    listed = {"tools": [tool(operation) for operation in OPERATIONS]}
    return orjson.Fragment(orjson.dumps(listed | _MODERN | _CACHING if modern else listed))


def error_reply(rejection: Rejection) -> bytes:
    error: dict[str, Any] = {"code": rejection.code, "message": rejection.message}
    if rejection.data is not None:
        error["data"] = rejection.data
    return orjson.dumps({"jsonrpc": "2.0", "id": rejection.id, "error": error})


def initialized(requested: Any) -> dict[str, Any]:
    """The handshake: the revision asked for where we speak it, else our newest with a handshake."""
    version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
    return {
        "protocolVersion": version,
        "capabilities": _CAPABILITIES,
        "serverInfo": _SERVER,
        "instructions": INSTRUCTIONS,
    }


def executed_frame(message_id: bytes, answer: Answer, *, modern: bool) -> bytes:
    """The frame of an executed operation. Only the id differs between those who get the same answer."""
    kept = ("mcp", modern)
    rest: bytes | None = answer.prepared.get(kept)
    if rest is None:
        content = orjson.Fragment(answer.content)
        result = orjson.dumps(_result(answer.content.decode(), content, modern))
        rest = answer.prepared[kept] = b',"result":%b}\n\n' % result
    return b"".join((b'event: message\ndata: {"jsonrpc":"2.0","id":', message_id, rest))


def pending(operation: Operation, problem: Problem, *, modern: bool) -> dict[str, Any]:
    """A write's first call. Not an error, and not done either."""
    challenge = {"code": problem.code, **{name: problem.extra[name] for name in _CHALLENGE_FIELDS}}
    change = "; ".join(f"{name}: {value}" for name, value in challenge["readBack"].items())
    text = (
        f"NOTHING HAS BEEN CHANGED YET. Proposed: {operation.title}. What would change: {change}.\n"
        "Read this to the person in plain words, without ids, and wait for a clear yes. Then call "
        f"{operation.name} again with exactly the same arguments plus confirmationToken "
        f'"{challenge["confirmationToken"]}", before {challenge["expiresAt"]}. '
        "Without a clear yes, do not call it again.\n"
        f"{orjson.dumps(challenge).decode()}"
    )
    return _result(text, challenge, modern)


def failed(problem: Problem, document: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
    lines = [f"{problem.code} ({problem.status}): {problem.detail}"]
    lines += [f"- {error.field}: {error.message} (rule {error.rule})" for error in problem.errors]
    lines.append(f"Retry: {problem.kind.retry}")
    if problem.retry_after is not None:
        lines.append(f"Retry-After: {problem.retry_after} seconds")
    lines.append(f"requestId: {document['requestId']}")
    return _result("\n".join(lines), document, modern) | {"isError": True}


def _result(text: str, structured: Any, modern: bool) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": False}
    return result | _MODERN if modern else result
