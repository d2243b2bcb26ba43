"""The trace id, problem documents and headers that the answers of doors and console share."""

from collections.abc import Callable, Iterable, Mapping

import orjson
from starlette.responses import Response

from frontdesk.domain.errors import Problem
from frontdesk.engine.sandbox import RETRY_SECONDS, SimulatedByGateway
from frontdesk.settings import Settings
from frontdesk.web.http_request import RawHeaders

TRACE_HEADER = "X-SVC-TRACE-ID"
TRACE = TRACE_HEADER.lower().encode()
PROBLEM_TYPE = "application/problem+json"

Document = Callable[[Problem, Settings, str | None], tuple[str, bytes]]
"""Writes a problem with its request id: returns the Content-Type and the body."""


def www_authenticate(
    settings: Settings, error: str | None = None, resource: str = "", scopes: Iterable[str] = ()
) -> str:
    """The Bearer challenge of RFC 6750, pointing to the resource metadata of RFC 9728."""
    challenge = f'Bearer resource_metadata="{settings.public_url}/.well-known/oauth-protected-resource{resource}"'
    if asked := " ".join(scopes):
        challenge += f', scope="{asked}"'
    return challenge if error is None else f'{challenge}, error="{error}"'


class BodyNotRead(Problem):
    """Closes the connection with the answer: the unread rest must not be taken for the next request."""


def problem_headers(problem: Problem, settings: Settings, request_id: str | None, resource: str = "") -> RawHeaders:
    headers = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    if request_id is not None:
        headers.append((TRACE, request_id.encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", www_authenticate(settings, resource=resource).encode()))
    if problem.retry_after is not None:
        headers.append((b"retry-after", b"%d" % problem.retry_after))
    if isinstance(problem, BodyNotRead) or problem.code == "payload_too_large":
        headers.append((b"connection", b"close"))
    return headers


def problem_document(problem: Problem, settings: Settings, request_id: str | None) -> tuple[str, bytes]:
    return PROBLEM_TYPE, orjson.dumps(problem.document(settings.documentation_url, request_id))


def problem_answer(
    problem: Problem,
    settings: Settings,
    request_id: str | None,
    resource: str = "",
    document: Document = problem_document,
) -> tuple[RawHeaders, bytes]:
    """Headers and body of a problem for a door that sends them without Starlette."""
    media_type, body = document(problem, settings, request_id)
    headers = problem_headers(problem, settings, request_id, resource)
    return [*headers, (b"content-type", media_type.encode()), (b"content-length", b"%d" % len(body))], body


def door_problem(
    problem: Problem,
    settings: Settings,
    request_id: str,
    resource: str,
    methods: Iterable[str],
    document: Document = problem_document,
) -> tuple[RawHeaders, bytes]:
    """Headers and body of a problem that a call was answered with. `methods` are those of its path."""
    if isinstance(problem, SimulatedByGateway):
        headers, body = problem_answer(problem, settings, None, resource, document)
        limit = "quota" if problem.code == "quota_exceeded" else "minute"
        return [*headers, (b"ratelimit", f'"{limit}";r=0;t={RETRY_SECONDS}'.encode())], body
    headers, body = problem_answer(problem, settings, request_id, resource, document)
    if problem.code == "method_not_allowed":
        headers.append((b"allow", ", ".join(sorted(methods)).encode()))
    return headers, body


def problem_response(
    problem: Problem, settings: Settings, request_id: str | None, headers: Mapping[str, str] | None = None
) -> Response:
    document: dict[str, object] = problem.document(settings.documentation_url, request_id)
    response = Response(orjson.dumps(document), status_code=problem.status, media_type=PROBLEM_TYPE)
    for name, value in problem_headers(problem, settings, request_id):
        response.headers[name.decode()] = value.decode()
    response.headers.update(headers or {})
    return response
