"""THE catalogue of errors: code, status, title, meaning and retry advice.

Problem documents, the OpenAPI document and the errors page are all made from it. Texts never carry what a caller sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ErrorKind:
    code: str
    statuses: tuple[int, ...]
    title: str
    meaning: str
    retry: str

    @property
    def status(self) -> int:
        """The status an error of this kind has unless it says otherwise."""
        return self.statuses[-1]


_KINDS = (
    ErrorKind(
        "unauthorized",
        (401,),
        "Authentication is required",
        "The access token is missing, invalid or expired, or its client has been disabled.",
        "Once, with a fresh token. If it recurs, the credentials are wrong.",
    ),
    ErrorKind(
        "forbidden_scope",
        (403,),
        "The token lacks the required scope",
        "The token is valid but does not hold the scope that this operation needs.",
        "No. GET /api/capabilities lists the scopes that the token holds.",
    ),
    ErrorKind(
        "forbidden_tenant",
        (403,),
        "The token's practice cannot be used",
        "The practice that the token belongs to cannot be resolved, or is suspended.",
        "No. Contact the practice's operator and give the requestId.",
    ),
    ErrorKind(
        "quota_exceeded",
        (403,),
        "The call quota is used up",
        "The client has used its 30-day quota of calls. The gateway says this, so there is no requestId.",
        "Not before the window resets; the RateLimit header says when.",
    ),
    ErrorKind(
        "not_found",
        (404,),
        "Not found",
        "The resource is unknown, or belongs to another practice; which of the two is never revealed.",
        "Only after looking the resource up again.",
    ),
    ErrorKind(
        "conflict",
        (409,),
        "The request contradicts the current state",
        "For example: the appointment is already cancelled, or the patient is already on file.",
        "After reading the current state again.",
    ),
    ErrorKind(
        "confirmation_mismatch",
        (409,),
        "The confirmation does not fit the request",
        "The confirming request differs from the one that was challenged, or its token belongs to another request. "
        "Nothing was executed; the original challenge stays valid until it expires.",
        "Resend exactly what was challenged, or start again without a token.",
    ),
    ErrorKind(
        "confirmation_incomplete",
        (409,),
        "The outcome of this confirmed write is not known",
        "The token was used and the write left for the practice's scheduling system, but the outcome was not recorded.",
        "Check the state through reads first; an identical resend answers once the outcome is known.",
    ),
    ErrorKind(
        "slot_unavailable",
        (409,),
        "The slot is no longer available",
        "The slot was taken, or stopped being offered, between search and booking.",
        "Search again and book another slot.",
    ),
    ErrorKind(
        "validation",
        (400, 422),
        "The request is not valid",
        "400: a value cannot be read (wrong type or format, rule Binding). 422: the values can be read but break a "
        "rule, or the scheduling system declined the write. The errors list names every offending field.",
        "After correcting the named fields. An unchanged resend gets the same answer.",
    ),
    ErrorKind(
        "confirmation_required",
        (428,),
        "Confirmation is required",
        "The first phase of every write of an agent. Nothing has been changed yet. Read the readBack to the person, "
        "then send the identical request with the confirmationToken.",
        "Resend the identical body plus confirmationToken before expiresAt.",
    ),
    ErrorKind(
        "rate_limited",
        (429,),
        "Too many requests",
        "The client's cap of calls per minute, or the cap on failed token calls, is reached. The gateway says this, so "
        "there is no requestId.",
        "After the seconds in the Retry-After header.",
    ),
    ErrorKind(
        "internal",
        (500,),
        "Something went wrong",
        "An unexpected error. On a write, also when the audit record could not be persisted; the write may then have "
        "been executed. The requestId finds the details in the service's log.",
        "A read: once, after a pause. A write: check the state first, or resend with the same confirmationToken.",
    ),
    ErrorKind(
        "upstream_unavailable",
        (502,),
        "The scheduling system cannot be reached",
        "The practice's scheduling system did not answer. The request was not executed and a confirmation token stays "
        "valid.",
        "After the seconds in the Retry-After header, with the same token.",
    ),
    ErrorKind(
        "capability_not_supported",
        (503,),
        "The practice's scheduling system cannot do this",
        "The operation exists, but the scheduling system of this practice cannot perform it at all.",
        "Never at this practice. GET /api/practice lists what it supports.",
    ),
    ErrorKind(
        "method_not_allowed",
        (405,),
        "Method not allowed",
        "The path exists but not with this method; the Allow header lists the methods it has.",
        "With an allowed method.",
    ),
    ErrorKind(
        "not_acceptable",
        (406,),
        "No acceptable response format",
        "Responses are application/json, text/json or text/plain; the Accept header rules all of them out.",
        "With another Accept header.",
    ),
    ErrorKind(
        "payload_too_large",
        (413,),
        "The request is too large",
        "The request body is larger than 64 KiB. Header fields or an address that are too large get the same code with "
        "status 431 or 414.",
        "With a smaller request.",
    ),
    ErrorKind(
        "unsupported_media_type",
        (415,),
        "Unsupported request format",
        "Request bodies are application/json, text/json or application/*+json, in UTF-8.",
        "With a supported Content-Type.",
    ),
)

CATALOGUE: Mapping[str, ErrorKind] = {kind.code: kind for kind in _KINDS}
BY_GATEWAY = frozenset(("quota_exceeded", "rate_limited"))  # said before a call has a request id


@dataclass(frozen=True, slots=True)
class FieldError:
    """One offending field: the rule it breaks and a sentence that names the field, never its value."""

    field: str
    rule: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"field": self.field, "rule": self.rule, "message": self.message}


BINDING = "Binding"


class Problem(Exception):  # noqa: N818 - an RFC 7807 problem, not necessarily a fault
    """An answer from the catalogue. `extra` are further members of the problem document, such as a challenge's;
    `headers` go with it over HTTP."""

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        *,
        status: int | None = None,
        errors: Sequence[FieldError] = (),
        retry_after: int | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        kind = CATALOGUE[code]
        super().__init__(code)
        self.kind = kind
        self.code = code
        self.status = status or kind.status
        self.detail = detail or kind.meaning
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})

    def document(self, docs_url: str, request_id: str | None) -> dict[str, Any]:
        """The RFC 7807 document. Gateway problems have no request id."""
        body: dict[str, Any] = {
            "type": f"{docs_url}/errors.html#{self.code}",
            "title": self.kind.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = [error.as_json() for error in self.errors]
        if request_id is not None:
            body["requestId"] = request_id
        body.update(self.extra)
        return body


def invalid(errors: Sequence[FieldError]) -> Problem:
    """400 when any value cannot be read, else 422; every offending field is listed."""
    unreadable = any(error.rule == BINDING for error in errors)
    fields = ", ".join(dict.fromkeys(error.field for error in errors))
    detail = f"These fields cannot be read or break a rule: {fields}."
    return Problem("validation", detail, status=400 if unreadable else 422, errors=errors)


def declined(reason: str, field: str = "$") -> Problem:
    """The scheduling system said no to a write; the reason is in the detail and in the errors."""
    return Problem("validation", reason, status=422, errors=[FieldError(field, "declined", reason)])
