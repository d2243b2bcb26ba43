"""The error catalogue: code, status, title, meaning and retry advice.

Texts never repeat what a caller sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.texts import N_, Text


@dataclass(frozen=True, slots=True)
class ErrorKind:
    code: str
    statuses: tuple[int, ...]
    title: str
    meaning: str
    retry: str

    @property
    def status(self) -> int:
        """The default status."""
        return self.statuses[-1]


_KINDS = (
    ErrorKind(
        "unauthorized",
        (401,),
        "Authentication is required",
        "The access token is missing, invalid or expired, or its client has been disabled.",
        "Once, with a new token. If it fails again, the credentials are wrong.",
    ),
    ErrorKind(
        "forbidden_scope",
        (403,),
        "The token lacks the required scope",
        "The token is valid but does not have the scope that this operation needs.",
        "No. GET /api/capabilities lists the scopes of the token.",
    ),
    ErrorKind(
        "forbidden_tenant",
        (403,),
        "The token's practice cannot be used",
        "The practice of the token cannot be resolved or is suspended.",
        "No. Contact the practice's operator and give the requestId.",
    ),
    ErrorKind(
        "consent_required",
        (403,),
        "The practice requires another proof of consent",
        "The practice requires that a person agrees to this operation in a way that this call does not prove. Nothing "
        "was executed. The detail says what is accepted.",
        "Only in a way that the detail names. Before that, an unchanged resend fails again.",
    ),
    ErrorKind(
        "quota_exceeded",
        (403,),
        "The call quota is exceeded",
        "The client has used its quota of calls for 30 days. The gateway sends this error, so there is no requestId.",
        "After the window resets. The RateLimit header contains the time.",
    ),
    ErrorKind(
        "not_found",
        (404,),
        "Not found",
        "The resource does not exist or belongs to another practice. The response does not reveal which.",
        "Only after a new lookup of the resource.",
    ),
    ErrorKind(
        "conflict",
        (409,),
        "The request conflicts with the current state",
        "For example, the appointment is already cancelled, or the patient already exists.",
        "After reading the current state again.",
    ),
    ErrorKind(
        "confirmation_mismatch",
        (409,),
        "The confirmation does not match the request",
        "The confirming request differs from the one that was challenged, or its token belongs to another request. "
        "Nothing was executed; the original challenge stays valid until it expires.",
        "Resend the challenged request unchanged, or start again without a token.",
    ),
    ErrorKind(
        "confirmation_incomplete",
        (409,),
        "The outcome of the confirmed write is unknown",
        "The write was sent to the practice's scheduling system, but its outcome was not recorded.",
        "Check the state with reads first. An identical resend returns the result once the outcome is known.",
    ),
    ErrorKind(
        "slot_unavailable",
        (409,),
        "The slot is no longer available",
        "The slot was booked, or is no longer offered, since the search.",
        "Search again and book another slot.",
    ),
    ErrorKind(
        "validation",
        (400, 422),
        "The request is not valid",
        "400: a value cannot be parsed (wrong type or format, rule Binding). 422: a value violates a rule, or the "
        "scheduling system declined the write. The errors list names every invalid field.",
        "After correcting the named fields. An unchanged resend fails again.",
    ),
    ErrorKind(
        "confirmation_required",
        (428,),
        "Confirmation is required",
        "The first call of every write by an agent. Nothing has changed yet. Read the readBack to the person, then "
        "send the identical request with the confirmationToken.",
        "Resend the identical body plus the confirmationToken before expiresAt.",
    ),
    ErrorKind(
        "rate_limited",
        (429,),
        "Too many requests",
        "The client has exceeded its rate limit per minute or the limit on failed token requests: the gateway sends "
        "these, without a requestId. Or it has read as many patients as it may in an hour or a day, failed too often "
        "to match a person, made as many writes of a kind as it may in an hour, or booked as many upcoming "
        "appointments for one patient as it may: the detail says which, and nothing was executed.",
        "After the seconds in the Retry-After header.",
    ),
    ErrorKind(
        "internal",
        (500,),
        "Something went wrong",
        "An unexpected error, or the audit record of a write could not be stored. A write may have been executed. The "
        "operator can find the details in the log by the requestId.",
        "A read: once, after a delay. A write: check the state first, or resend with the same confirmationToken or "
        "Idempotency-Key.",
    ),
    ErrorKind(
        "upstream_unavailable",
        (502,),
        "The scheduling system cannot be reached",
        "The practice's scheduling system did not respond. The request was not executed, and a confirmation token "
        "stays valid.",
        "After the seconds in the Retry-After header, with the same token. A wait of five minutes means that the "
        "practice's operator has to correct the connection first.",
    ),
    ErrorKind(
        "capability_not_supported",
        (503,),
        "The scheduling system does not support this operation",
        "The practice's scheduling system cannot perform this operation.",
        "Never at this practice. GET /api/practice lists the supported operations.",
    ),
    ErrorKind(
        "method_not_allowed",
        (405,),
        "Method not allowed",
        "The path does not support this method. The Allow header lists the methods that it supports.",
        "With an allowed method.",
    ),
    ErrorKind(
        "not_acceptable",
        (406,),
        "No acceptable response format",
        "Responses are application/json, text/json or text/plain. The Accept header allows none of them.",
        "With a different Accept header.",
    ),
    ErrorKind(
        "payload_too_large",
        (413,),
        "The request is too large",
        "The request body is larger than 64 KiB. Headers or a URL that are too large get the same code with status 431 "
        "or 414.",
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
BY_GATEWAY = frozenset(("quota_exceeded", "rate_limited"))  # sent by the gateway, before a call has a request id


@dataclass(frozen=True, slots=True)
class FieldError:
    """An invalid field: the rule and what is wrong, never its value."""

    field: str
    rule: str
    text: str | Text  # a template has %(field)s where it names the field

    @property
    def message(self) -> str:
        return str(self.text.with_values(field=self.field) if isinstance(self.text, Text) else self.text)

    def as_json(self) -> dict[str, str]:
        return {"field": self.field, "rule": self.rule, "message": self.message}


BINDING = "Binding"


class Problem(Exception):
    """An answer from the catalogue. `extra` are further members of the problem document, such as a challenge's."""

    def __init__(
        self,
        code: str,
        detail: str | Text | None = None,
        *,
        status: int | None = None,
        errors: Sequence[FieldError] = (),
        retry_after: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        kind = CATALOGUE[code]
        super().__init__(code)
        self.kind = kind
        self.code = code
        self.status = status or kind.status
        self.text = detail or kind.meaning
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.extra = dict(extra or {})

    @property
    def detail(self) -> str:
        return str(self.text)

    def document(self, docs_url: str, request_id: str | None) -> dict[str, object]:
        """The RFC 7807 document. Gateway problems have no request id."""
        body: dict[str, object] = {
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
    """400 if a value cannot be parsed, else 422; lists every invalid field."""
    unreadable = any(error.rule == BINDING for error in errors)
    fields = ", ".join(dict.fromkeys(error.field for error in errors))
    text = Text("These fields are invalid: %(fields)s.", fields=fields)
    return Problem("validation", text, status=400 if unreadable else 422, errors=errors)


# What parsers raise for input that they cannot read.
UNREADABLE = (ValueError, ArithmeticError, RecursionError)


def unreadable() -> Problem:
    return invalid([FieldError("$", BINDING, "the request cannot be read")])


# Refusals of operations and of scheduling systems alike.
PATIENT_OVERLAP = N_("The patient already has an appointment that overlaps this time.")
APPOINTMENT_CHANGED = N_("Somebody else has changed the appointment since.")
PATIENT_EXISTS = N_("A patient with this name, date of birth and phone number is already on file.")


def declined(reason: str | Text) -> Problem:
    """The scheduling system declined a write; the reason is in the detail and in the errors."""
    return Problem("validation", reason, status=422, errors=[FieldError("$", "declined", reason)])
