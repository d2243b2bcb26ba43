"""What is wrong with a form, field by field, for the page that shows it again with what was typed."""

import re

from frontdesk.console.forms import Form
from frontdesk.domain.errors import Problem

_DIGITS = 18  # more than any number that is asked for has


def faults_of(problem: Problem) -> dict[str, str]:
    """By field. Whoever has no field to be told at is told at the top."""
    found: dict[str, str] = {}
    for error in problem.errors:
        found.setdefault(error.field, error.message)
    return found or {"$": problem.detail}


def whole_number(form: Form, name: str, label: str, faults: dict[str, str]) -> int:
    """As people type it, with blanks or commas between the thousands. What is no number is noted, and is 1."""
    text = re.sub(r"[\s,]", "", form.get(name))
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    faults[name] = f"{label} must be a whole number."
    return 1
