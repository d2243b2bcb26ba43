"""Generates the error responses of the OpenAPI document from the error catalogue, one per status."""

from collections.abc import Sequence

from frontdesk.domain.errors import BINDING, BY_GATEWAY, CATALOGUE, FieldError, Problem, invalid
from frontdesk.operations import Operation, book_appointment
from frontdesk.web.responses import PROBLEM_TYPE, TRACE_HEADER

REQUEST_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CONFIRMATION_TOKEN = "9f86d081884c7d659a2feaa0c55ad015"  # noqa: S105 - an example
EXPIRES_AT = "2026-11-15T08:10:00Z"

_EVERYWHERE = frozenset(
    ("unauthorized", "forbidden_tenant", "quota_exceeded", "validation", "not_acceptable", "rate_limited", "internal",
     "upstream_unavailable", "capability_not_supported")
)  # fmt: skip
_OF_BODIES = frozenset(("payload_too_large", "unsupported_media_type"))
_OF_WRITES = frozenset(
    ("consent_required", "confirmation_required", "confirmation_mismatch", "confirmation_incomplete", "conflict")
)
_WITH_RETRY_AFTER = (429, 502)

_VALIDATION = {
    400: FieldError("limit", BINDING, "limit has the wrong type"),
    422: FieldError("confirmation_token", "unknown", "confirmation_token is not a field of this operation"),
}

HEADERS: dict[str, object] = {
    "TraceId": {
        "description": "The W3C trace id of this call: from the `traceparent` header, or new. Equals `requestId`.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    },
    "TraceIdUnlessGateway": {
        "description": "The trace id of this call. Absent in responses of the gateway.",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    },
    "RateLimit": {
        "description": "Remaining calls of each limit, and seconds until it resets. Absent without a valid token.",
        "schema": {"type": "string"},
        "example": '"minute";r=599;t=60, "quota";r=999999;t=2592000',
    },
    "RateLimitPolicy": {
        "description": "The client's limits: calls per minute, and calls in 30 days. Absent without a valid token.",
        "schema": {"type": "string"},
        "example": '"minute";q=600;w=60, "quota";q=1000000;w=2592000',
    },
    "RetryAfter": {
        "description": "Seconds to wait before retrying.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "Challenge": {
        "description": "The Bearer challenge of RFC 6750, with `resource_metadata` (RFC 9728).",
        "required": True,
        "schema": {"type": "string"},
    },
}

SCHEMAS: dict[str, object] = {
    "FieldError": {
        "type": "object",
        "description": "An invalid field. The message names the field, never its value.",
        "required": ["field", "rule", "message"],
        "properties": {
            "field": {"type": "string", "description": "The field, or `$` for the request as a whole."},
            "rule": {"type": "string", "description": "`Binding` for a value that cannot be parsed."},
            "message": {"type": "string"},
        },
    },
    "Problem": {
        "type": "object",
        "description": "An RFC 7807 problem document. Branch on `code`, not on the texts.",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": {"type": "string", "format": "uri", "description": "Address of the description of the code."},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string", "enum": list(CATALOGUE)},
            "detail": {"type": "string"},
            "errors": {"type": "array", "items": {"$ref": "#/components/schemas/FieldError"}},
            "requestId": {"type": "string", "description": "The trace id; absent in responses of the gateway."},
        },
    },
    "Challenge": {
        "description": "Nothing has changed yet. The identical request plus `confirmationToken` executes the write.",
        "allOf": [
            {"$ref": "#/components/schemas/Problem"},
            {
                "type": "object",
                "required": ["confirmationToken", "expiresAt", "readBack"],
                "properties": {
                    "code": {"type": "string", "enum": ["confirmation_required"]},
                    "confirmationToken": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                    "expiresAt": {"type": "string", "format": "date-time"},
                    "readBack": {"type": "object", "description": "What to read aloud before the write is confirmed."},
                },
            },
        ],
    },
}


def error_codes(operation: Operation) -> list[str]:
    """The error codes that an operation can return, in the catalogue's order."""
    codes = _EVERYWHERE | set(operation.errors)
    if operation.scope is not None:
        codes |= {"forbidden_scope"}
    if operation.method != "GET":
        codes |= _OF_BODIES
    if operation.kind == "write":
        codes |= _OF_WRITES
    return [code for code in CATALOGUE if code in codes]


def codes_by_status(codes: Sequence[str]) -> dict[int, list[str]]:
    statuses = sorted({status for code in codes for status in CATALOGUE[code].statuses})
    return {status: [code for code in codes if status in CATALOGUE[code].statuses] for status in statuses}


def response_name(status: int, codes: Sequence[str]) -> str:
    """The component name of a response."""
    names = "Or".join("".join(word.title() for word in code.split("_")) for code in codes)
    return f"{names}{status}" if len(CATALOGUE[codes[0]].statuses) > 1 else names


def problem_name(status: int, codes: Sequence[str]) -> str:
    """The schema name of a response body."""
    return response_name(status, codes) + "Problem"


def problem_schema(status: int, codes: Sequence[str]) -> dict[str, object]:
    # enum instead of const: common generators cannot narrow a type by const.
    narrowed = {"status": {"type": "integer", "enum": [status]}, "code": {"type": "string", "enum": list(codes)}}
    return {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "object", "properties": narrowed}]}


def problem_response_entry(status: int, codes: Sequence[str], docs_url: str) -> dict[str, object]:
    kinds = [CATALOGUE[code] for code in codes]
    return {
        "description": "\n".join(f"- `{kind.code}`: {kind.meaning}" for kind in kinds),
        "headers": _headers(status, codes),
        "content": {
            PROBLEM_TYPE: {
                "schema": {"$ref": f"#/components/schemas/{problem_name(status, codes)}"},
                "examples": {
                    kind.code: {"summary": kind.title, "value": example_problem(kind.code, status, docs_url)}
                    for kind in kinds
                },
            }
        },
    }


def challenge_entry(operation: Operation, docs_url: str) -> dict[str, object]:
    return {
        "description": CATALOGUE["confirmation_required"].meaning,
        "headers": _headers(428, ["confirmation_required"]),
        "content": {
            PROBLEM_TYPE: {
                "schema": {"$ref": "#/components/schemas/Challenge"},
                "example": example_challenge(operation, docs_url),
            }
        },
    }


def example_problem(code: str, status: int, docs_url: str) -> dict[str, object]:
    if code == "confirmation_required":
        return example_challenge(book_appointment.OPERATION, docs_url)
    problem = invalid([_VALIDATION[status]]) if code == "validation" else Problem(code, status=status)
    return problem.document(docs_url, None if code in BY_GATEWAY else REQUEST_ID)


def example_challenge(operation: Operation, docs_url: str) -> dict[str, object]:
    challenge = {
        "confirmationToken": CONFIRMATION_TOKEN,
        "expiresAt": EXPIRES_AT,
        "readBack": dict(operation.example_read_back),
    }
    return Problem("confirmation_required", extra=challenge).document(docs_url, REQUEST_ID)


def header_references(trace: str = "TraceId") -> dict[str, object]:
    """The headers of every response."""
    names = {TRACE_HEADER: trace, "RateLimit": "RateLimit", "RateLimit-Policy": "RateLimitPolicy"}
    return {header: {"$ref": f"#/components/headers/{name}"} for header, name in names.items()}


def _headers(status: int, codes: Sequence[str]) -> dict[str, object]:
    headers = header_references("TraceIdUnlessGateway" if BY_GATEWAY.intersection(codes) else "TraceId")
    if status in _WITH_RETRY_AFTER:
        headers["Retry-After"] = {"$ref": "#/components/headers/RetryAfter"}
    if status == 401:
        headers["WWW-Authenticate"] = {"$ref": "#/components/headers/Challenge"}
    return headers
