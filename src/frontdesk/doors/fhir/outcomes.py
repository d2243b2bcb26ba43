"""OperationOutcome resources: how the FHIR door writes problems."""

from collections.abc import Iterable, Mapping

import orjson

from frontdesk.domain.errors import BINDING, FieldError, Problem
from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.codes import CONFIRMATION
from frontdesk.settings import Settings

FHIR_JSON = "application/fhir+json"

_ISSUE_CODES: Mapping[str, str] = {
    "unauthorized": "login",
    "forbidden_scope": "forbidden",
    "forbidden_tenant": "forbidden",
    "consent_required": "forbidden",
    "quota_exceeded": "throttled",
    "not_found": "not-found",
    "conflict": "conflict",
    "confirmation_mismatch": "conflict",
    "confirmation_incomplete": "incomplete",
    "slot_unavailable": "conflict",
    "validation": "invalid",
    "confirmation_required": "business-rule",
    "rate_limited": "throttled",
    "internal": "exception",
    "upstream_unavailable": "transient",
    "capability_not_supported": "not-supported",
    "method_not_allowed": "not-supported",
    "not_acceptable": "not-supported",
    "payload_too_large": "too-long",
    "unsupported_media_type": "not-supported",
}
_RULE_CODES: Mapping[str, str] = {BINDING: "value", "required": "required", "unknown": "not-supported"}


def outcome_document(problem: Problem, settings: Settings, _request_id: str | None) -> tuple[str, bytes]:
    """The Content-Type and the body of a problem. The trace header carries the request id."""
    return FHIR_JSON, orjson.dumps(outcome(problem, settings))


def outcome(problem: Problem, settings: Settings) -> Resource:
    """One issue for the problem, or one for each invalid field."""
    details = {
        "coding": [{"system": f"{settings.documentation_url}/errors.html", "code": problem.code}],
        "text": problem.kind.title,
    }
    issues = [
        {
            "severity": "error",
            "code": _RULE_CODES.get(error.rule, "invalid"),
            "details": details,
            "diagnostics": error.message,
            "expression": [error.field],
        }
        for error in problem.errors
    ]
    whole = {
        "severity": "error",
        "code": _ISSUE_CODES.get(problem.code, "processing"),
        "details": details,
        "diagnostics": problem.detail,
    }
    challenge = {"extension": [_confirmation(problem)]} if "confirmationToken" in problem.extra else {}
    return {"resourceType": "OperationOutcome", **challenge, "issue": issues or [whole]}


def _confirmation(problem: Problem) -> Resource:
    """The token of a challenge, and what to read aloud before the request is sent again with it."""
    read_back = [
        {"url": name, "valueString": value if isinstance(value, str) else orjson.dumps(value).decode()}
        for name, value in problem.extra["readBack"].items()
    ]
    return {
        "url": CONFIRMATION,
        "extension": [
            {"url": "token", "valueString": problem.extra["confirmationToken"]},
            {"url": "expiresAt", "valueInstant": problem.extra["expiresAt"]},
            {"url": "readBack", "extension": read_back},
        ],
    }


def ignored(parameters: Iterable[FieldError]) -> Resource:
    """Warns of parameters that a lenient search ignored."""
    return {
        "resourceType": "OperationOutcome",
        "issue": [
            {"severity": "warning", "code": "not-supported", "diagnostics": each.message, "expression": [each.field]}
            for each in parameters
        ],
    }
