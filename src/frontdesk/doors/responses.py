"""What every answer of every door has in common: the trace id, problem documents, and the headers that go with them."""

import os
import re
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from frontdesk.domain.errors import Problem
from frontdesk.doors.arrival import RawHeaders, decoded, encoded
from frontdesk.engine.answer_cache import Answer
from frontdesk.settings import Settings

TRACE_HEADER = "X-SVC-TRACE-ID"
TRACE = TRACE_HEADER.lower().encode()
PROBLEM_TYPE = "application/problem+json"

# Version 00 has exactly four parts; what later versions add behind them is for those who know it.
_TRACEPARENT = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?\Z"
)


def request_id_of(traceparent: str | None) -> str:
    """The W3C trace id of a valid incoming traceparent, else a fresh one."""
    found = _TRACEPARENT.match(traceparent.strip()) if traceparent else None
    return found.group(1) if found else os.urandom(16).hex()


def trace_id_of(headers: Mapping[bytes, bytes]) -> str:
    return request_id_of(decoded(headers.get(b"traceparent")))


def answer_headers(answer: Answer, media_type: bytes) -> tuple[RawHeaders, bytes]:
    """What a REST answer says about itself, and the same encoded; made once for all who get it."""
    made: tuple[RawHeaders, bytes] | None = answer.prepared.get(media_type)
    if made is not None:
        return made
    headers: RawHeaders = [
        (b"content-type", media_type),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-length", b"%d" % len(answer.content)),
    ]
    answer.prepared[media_type] = made = headers, encoded(headers)
    return made


def www_authenticate(settings: Settings, error: str | None = None, resource: str = "") -> str:
    """The Bearer challenge of RFC 6750, pointing to the resource metadata of RFC 9728."""
    challenge = f'Bearer resource_metadata="{settings.public_url}/.well-known/oauth-protected-resource{resource}"'
    return challenge if error is None else f'{challenge}, error="{error}"'


def problem_headers(problem: Problem, settings: Settings, request_id: str | None, resource: str = "") -> dict[str, str]:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if request_id is not None:
        headers[TRACE_HEADER] = request_id
    if problem.status == 401:
        headers["WWW-Authenticate"] = www_authenticate(settings, resource=resource)
    if problem.retry_after is not None:
        headers["Retry-After"] = str(problem.retry_after)
    return headers | problem.headers


def problem_answer(
    problem: Problem, settings: Settings, request_id: str | None, resource: str = ""
) -> tuple[RawHeaders, bytes]:
    """Headers and body of a problem where a door sends them itself."""
    named = problem_headers(problem, settings, request_id, resource) | {"Content-Type": PROBLEM_TYPE}
    raw = [(name.lower().encode(), value.encode()) for name, value in named.items()]
    return raw, orjson.dumps(problem.document(settings.documentation_url, request_id))


def problem_response(
    problem: Problem, settings: Settings, request_id: str | None, headers: Mapping[str, str] | None = None
) -> Response:
    document: dict[str, Any] = problem.document(settings.documentation_url, request_id)
    return Response(
        orjson.dumps(document),
        status_code=problem.status,
        media_type=PROBLEM_TYPE,
        headers={**problem_headers(problem, settings, request_id), **(headers or {})},
    )
