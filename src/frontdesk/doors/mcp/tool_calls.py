"""Reads a tool call: its operation, its arguments and what comes in headers or metadata."""

from collections.abc import Mapping

import orjson

from frontdesk.domain.errors import BINDING, FieldError
from frontdesk.doors.mcp.messages import INVALID_PARAMS, Message
from frontdesk.engine.answer_cache import CacheKey
from frontdesk.engine.arguments import Arguments, from_tool
from frontdesk.engine.execute import Call
from frontdesk.engine.sandbox import META_KEY
from frontdesk.operations import Operation, published
from frontdesk.web.http_request import SIMULATE, HttpRequest, decoded

_KEY_IN_META = "idempotencyKey"


def tool_of(message: Message) -> Operation | None:
    """The operation of a tool call; None for any other message."""
    if message.method != "tools/call" or message.id is None:
        return None
    name, given = message.params.get("name"), message.params.get("arguments")
    operation = published().get(name) if isinstance(name, str) else None
    if operation is None:
        raise message.rejection(INVALID_PARAMS, "Unknown tool. tools/list names every tool.")
    if given is not None and not isinstance(given, dict):
        raise message.rejection(INVALID_PARAMS, "params.arguments must be an object.")
    return operation


def call_of(operation: Operation, message: Message, http: HttpRequest, resource: str) -> Call:
    given = message.params.get("arguments") or {}
    key, key_errors = _idempotency_key(operation, message, http.headers)
    return Call(
        operation,
        http.token,
        lambda: _arguments(operation, message, given, key_errors),
        http.request_id,
        key,
        simulate=_simulated(message, http.headers),
        caller=http.caller,
        resource=resource,
        cache_key=None if message.repeated else _cache_key(operation, given),
    )


def _cache_key(operation: Operation, given: dict[str, object]) -> CacheKey | None:
    if operation.depends_on is None:
        return None
    try:
        return operation.name, orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # orjson reads deeper nesting than it writes
        return None


def _arguments(
    operation: Operation, message: Message, given: dict[str, object], key_errors: list[FieldError]
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
