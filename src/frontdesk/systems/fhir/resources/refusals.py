"""Explains refusals in sentences of our own, chosen by the issue codes of an OperationOutcome.

Its texts are never used, because they may quote data of any patient in any form.
"""

from frontdesk.systems.fhir.resources.elements import Resource, listed
from frontdesk.texts import N_

DECLINED = N_("The scheduling system declined this.")
_INVALID = N_("The scheduling system found a value missing or invalid.")
_CONFLICT = N_("This conflicts with another record in the scheduling system.")
_FORBIDDEN = N_("The scheduling system does not permit this.")
_NOT_FOUND = N_("A record that this refers to does not exist in the scheduling system.")

# https://hl7.org/fhir/R4/valueset-issue-type.html
_REASONS = {
    "invalid": _INVALID,
    "structure": _INVALID,
    "required": _INVALID,
    "value": _INVALID,
    "invariant": _INVALID,
    "too-long": _INVALID,
    "code-invalid": _INVALID,
    "extension": _INVALID,
    "security": _FORBIDDEN,
    "forbidden": _FORBIDDEN,
    "suppressed": _FORBIDDEN,
    "not-supported": N_("The scheduling system does not support this."),
    "duplicate": _CONFLICT,
    "multiple-matches": _CONFLICT,
    "conflict": _CONFLICT,
    "not-found": _NOT_FOUND,
    "deleted": _NOT_FOUND,
    "business-rule": N_("A rule of the practice's scheduling system does not allow this."),
}


def refusal_reason(resource: Resource | None) -> str:
    """The reason of the first error with a known code, DECLINED if none is known, empty if there is no error."""
    issues = listed((resource or {}).get("issue"))
    errors = [issue for issue in issues if issue.get("severity") in ("error", "fatal", None)]
    known = (_REASONS[code] for issue in errors if isinstance(code := issue.get("code"), str) and code in _REASONS)
    return next(known, DECLINED) if errors else ""
