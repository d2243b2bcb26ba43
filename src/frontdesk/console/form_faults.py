"""Errors of a form by field, for the page that shows the form again."""

import re

from frontdesk.console.forms import Form
from frontdesk.domain.errors import Problem

_DIGITS = 18  # more than any valid number has


def faults_of(problem: Problem) -> dict[str, str]:
    """Messages by field; `$` is shown at the top of the form."""
    found: dict[str, str] = {}
    for error in problem.errors:
        found.setdefault(error.field, error.message)
    return found or {"$": problem.detail}


def whole_number(form: Form, name: str, label: str, faults: dict[str, str]) -> int:
    """Accepts spaces and commas between thousands. Anything else is added to `faults` and counts as 1."""
    text = re.sub(r"[\s,]", "", form.get(name))
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    faults[name] = f"{label} must be a whole number."
    return 1
