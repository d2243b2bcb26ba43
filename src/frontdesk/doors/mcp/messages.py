"""Parses and validates one JSON-RPC message; refuses batches.

Handshake revisions of MCP start with `initialize` and may name their revision in a header. Modern revisions send it in
the `_meta` of every request, with headers that must match the body.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from frontdesk.engine.json_documents import UnreadableJson, read_json
from frontdesk.web.http_request import decoded

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION = -32020, -32022
RESOURCE_NOT_FOUND = -32002  # of handshake revisions

MODERN_VERSIONS = ("2026-07-28",)
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
VERSIONS = (*MODERN_VERSIONS, *HANDSHAKE_VERSIONS)

META = "io.modelcontextprotocol/"
_VERSION_KEY = f"{META}protocolVersion"
CAPABILITIES = f"{META}clientCapabilities"
_VERSION_HEADER, _METHOD_HEADER, _NAME_HEADER = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
_ROUTING_HEADERS = frozenset((_VERSION_HEADER, _METHOD_HEADER, _NAME_HEADER))
_NOTHING: Mapping[str, object] = {}
_ENCODED = re.compile(r"=\?base64\?(.*)\?=\Z", re.DOTALL)


class Rejection(Exception):
    """A JSON-RPC error. `framed`: the HTTP exchange succeeds and carries it in its event stream."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        id: str | int | None = None,
        status: int = 400,
        framed: bool = False,
        data: object = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.id, self.status = code, message, id, status
        self.framed, self.data = framed, data


class Message(NamedTuple):
    method: str
    params: Mapping[str, Any]  # JSON of which only `_meta`, an object, has been checked
    id: str | int | None  # None: a notification, which gets no response
    modern: bool
    repeated: tuple[str, ...] = ()  # properties that are given more than once
    response: Mapping[str, object] | None = None  # the whole message, if it is a response instead of a request

    def rejection(self, code: int, message: str) -> Rejection:
        """Modern revisions give errors an HTTP status of their own."""
        status = 404 if code == METHOD_NOT_FOUND else 400
        return Rejection(code, message, id=self.id, status=status, framed=not self.modern)


def read_message(body: bytes, headers: Mapping[bytes, bytes], raw_headers: Iterable[tuple[bytes, bytes]]) -> Message:
    try:
        document, repeated = read_json(body)
    except UnreadableJson as error:
        raise Rejection(PARSE_ERROR, f"The body {error}.") from None
    if not isinstance(document, dict):
        raise Rejection(INVALID_REQUEST, "The body must be one JSON-RPC message; batches are not accepted.")
    if not repeated and document.get("jsonrpc") == "2.0" and "method" not in document and _is_response(document):
        return Message("", _NOTHING, None, modern=False, response=document)
    message_id, method, params = document.get("id"), document.get("method"), document.get("params", {})
    if document.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise not_a_request()
    if "id" in document and type(message_id) not in (int, str):
        raise Rejection(INVALID_REQUEST, "The id of a request must be a string or an integer.")
    meta = params.get("_meta", _NOTHING) if isinstance(params, dict) else None
    if not isinstance(meta, dict):
        raise Rejection(INVALID_PARAMS, "params and params._meta must be objects.", id=message_id)
    version = decoded(headers.get(_VERSION_HEADER))
    modern = _VERSION_KEY in meta or version in MODERN_VERSIONS
    message = Message(method, params, message_id, modern, tuple(repeated))
    if repeated and method != "tools/call":  # a tool call lists them with the other errors of its arguments
        raise message.rejection(INVALID_REQUEST, "A property of the message is given more than once.")
    if not modern or message_id is None:
        if version is not None and version not in VERSIONS:
            raise _unsupported(message_id, version)
        return message
    _require_agreement(message, meta, headers, raw_headers)
    return message


def not_a_request() -> Rejection:
    return Rejection(INVALID_REQUEST, "The body must be a JSON-RPC 2.0 request or notification.")


def _is_response(document: Mapping[str, object]) -> bool:
    return isinstance(document.get("id"), str) and ("result" in document or "error" in document)


def _require_agreement(
    message: Message,
    meta: Mapping[str, object],
    headers: Mapping[bytes, bytes],
    raw_headers: Iterable[tuple[bytes, bytes]],
) -> None:
    """What a modern request must say about itself, and say alike in body and headers."""
    missing = [key for key in ("protocolVersion", "clientCapabilities") if f"{META}{key}" not in meta]
    if missing:
        names = ", ".join(f"{META}{key}" for key in missing)
        raise message.rejection(INVALID_PARAMS, f"params._meta lacks {names}.")
    version = meta[_VERSION_KEY]
    routing = [name for name, _ in raw_headers if name in _ROUTING_HEADERS]
    if len(routing) != len(set(routing)):
        raise message.rejection(HEADER_MISMATCH, "A routing header appears more than once.")
    if decoded(headers.get(_VERSION_HEADER)) != version:
        raise message.rejection(HEADER_MISMATCH, "The MCP-Protocol-Version header does not match params._meta.")
    if decoded(headers.get(_METHOD_HEADER)) != message.method:
        raise message.rejection(HEADER_MISMATCH, "The Mcp-Method header does not match the method.")
    if message.method == "tools/call" and _plain(decoded(headers.get(_NAME_HEADER))) != message.params.get("name"):
        raise message.rejection(HEADER_MISMATCH, "The Mcp-Name header does not match params.name.")
    if version not in MODERN_VERSIONS:
        raise _unsupported(message.id, version)
    if not isinstance(meta[CAPABILITIES], dict):
        raise message.rejection(INVALID_PARAMS, f"{CAPABILITIES} must be an object.")


def _unsupported(message_id: str | int | None, version: object) -> Rejection:
    data = {"supported": list(VERSIONS), "requested": version}
    return Rejection(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", id=message_id, data=data)


def _plain(value: str | None) -> str | None:
    """A header value; what plain ASCII cannot carry comes as `=?base64?...?=`."""
    encoded = _ENCODED.match(value) if value is not None else None
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded.group(1), validate=True).decode()
    except ValueError:  # not ASCII, not base64, or not UTF-8
        return None
