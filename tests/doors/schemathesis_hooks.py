"""Checks that schemathesis runs beside its own."""

import re
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response

# Rules that a schema cannot state: they look at two fields, at today's date, at who made a cursor, at the calendar.
UNSTATABLE = {
    ("cursor", "cursor"),
    ("to", "order"),
    ("to", "maxWindow"),
    ("dob", "notFuture"),
    ("$", "required"),  # a patient's update names something to change
    ("$", "declined"),
}


@schemathesis.check
def only_unstatable_rules(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """Valid data is refused with 422 only for reasons that no schema can state."""
    mode = case.meta.generation.mode if case.meta else None
    if response.status_code != 422 or mode is None or not mode.is_positive:
        return None
    broken = {(error["field"], error["rule"]) for error in response.json()["errors"]}
    assert broken <= UNSTATABLE, f"valid data was refused: {sorted(broken - UNSTATABLE)}"
    return None


@schemathesis.check
def every_problem_is_complete(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """Also for methods that do not exist: a problem document of our own, with the trace id of its header."""
    if response.status_code < 400:
        return None
    document: dict[str, Any] = response.json()
    (content_type,) = response.headers["content-type"]
    assert content_type == "application/problem+json"
    assert document["status"] == response.status_code
    assert document["type"].endswith(f"/errors.html#{document['code']}")
    (trace,) = response.headers["x-svc-trace-id"]
    assert re.fullmatch("[0-9a-f]{32}", trace)
    assert document["requestId"] == trace
    return None
