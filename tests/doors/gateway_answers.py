"""How the gateway answers, for the tests of everything it refuses."""

from typing import Any

import httpx


def check_gateway_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """As the gateway answers: a problem document that nobody can look up by a request id."""
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "x-svc-trace-id" not in answer.headers
    body: dict[str, Any] = answer.json()
    assert "requestId" not in body
    assert body["type"] == f"http://test/errors.html#{code}"
    return body
