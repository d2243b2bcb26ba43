"""Translates what other parts of the service say: why something was refused, and what is wrong with a field.

`make catalogue` collects constant sentences where they are raised. The others are listed here, with %(first)s and
%(second)s in place of their numbers. What the catalogue does not have stays English.
"""

import re
from collections.abc import Collection

from frontdesk.console.language import format_number, gettext
from frontdesk.desk.names import Actor
from frontdesk.domain.booking_rules import RULES
from frontdesk.texts import N_

_NUMBER = re.compile(r"\d+")
_PLACES = ("first", "second")
WHOLE_NUMBER = "must be a whole number"

_SENTENCES = (
    N_("A client's name is one line of %(first)s to %(second)s characters."),
    N_("A staff member has at most %(first)s passkeys. Remove one first."),
    N_("A staff member's name is one line of %(first)s to %(second)s characters."),
    N_("A passkey's name is one line of %(first)s to %(second)s characters."),
    N_("The patient has already arrived."),
    N_("The appointment is already booked."),
    N_("The appointment is already cancelled."),
    N_("The appointment is already completed."),
    N_("The appointment is already confirmed."),
    N_("The appointment has already begun or is over."),
    N_("The daily patient limit must be between %(first)s and %(second)s, or 0 for no limit."),
    N_("The hourly patient limit must be between %(first)s and %(second)s, or 0 for no limit."),
    N_("The number of failed matches must be between %(first)s and %(second)s, or 0 for no limit."),
    N_("The patient did not show up for this appointment."),
    N_("The rate limit (calls a minute) must be between %(first)s and %(second)s."),
    N_("The quota must be between %(first)s and %(second)s."),
    N_("Only the operator can set more than %(first)s, with frontdesk client set-limits."),
    N_("There are %(first)s notes on this patient already. Remove one first."),
    N_("There is no such location."),
    N_("There is no such procedure."),
    N_("This began more than %(first)s minutes ago, and can no longer be booked."),
    N_("This is more than %(first)s days ahead, further than anybody can book."),
    N_("Too many calls are being executed at the moment; this one was not executed."),
    N_("the form cannot be read"),
)
FIELD_ERRORS = frozenset(
    {
        N_("%(field)s has the wrong type"),
        N_("%(field)s is required"),
        N_("%(field)s must be a date and time that exist"),
        N_("%(field)s must be a date in the form yyyy-MM-dd, without a time"),
        N_("%(field)s must be a date like 2026-12-25"),
        N_("%(field)s must be a date that exists"),
        N_("%(field)s must be a local date and time like 2026-12-24T12:00, without an offset"),
        N_("%(field)s must be a time like 09:00"),
        N_("%(field)s must be a whole day: a location closes for whole days"),
        N_("%(field)s must be after from"),
        N_("%(field)s must be an IANA time zone like America/New_York"),
        N_("%(field)s must be an e-mail address"),
        N_("%(field)s must be at most %(first)s characters"),
        N_("%(field)s must be at most %(first)s characters long"),
        N_("%(field)s must be at most %(first)s days after from"),
        N_("%(field)s must be at most a year after from"),
        N_("%(field)s must be chosen"),
        N_("%(field)s must be from %(first)s to %(second)s"),
        N_("%(field)s must be text"),
        N_("%(field)s must contain %(first)s to %(second)s digits"),
        N_("%(field)s must contain a letter"),
        N_("%(field)s must contain at least %(first)s digits"),
        N_("%(field)s must contain at most %(first)s digits"),
        N_("%(field)s must name at least one day"),
        N_("%(field)s must not be before effectiveFrom"),
        N_("%(field)s must not be before from"),
        N_("%(field)s must not be blank"),
        N_("%(field)s must not be in the future"),
        N_("%(field)s must not be in the past"),
        N_("%(field)s must not contain control characters"),
        N_("%(field)s must not contain invisible or direction-changing characters"),
        N_("%(field)s needs part of a name, the last digits of a phone number, a date of birth, or a number"),
    }
)


def translated(sentence: str, **values: object) -> str:
    """A sentence that another part of the service says; English if the catalogue does not have it."""
    found = gettext(sentence)
    if values:
        return found % values
    pattern, numbers = _pattern(sentence)
    return gettext(pattern, **numbers) if numbers and pattern in _SENTENCES else found


def actor_name(actor: Actor) -> str:
    """The name of an actor: a person, a client, or a part of the service."""
    if actor.connected_by is not None:
        return gettext("%(assistant)s for %(staff)s", assistant=actor.name, staff=actor.connected_by)
    return gettext(actor.name) if actor.kind == "other" else actor.name


def rule_names(rules: Collection[str]) -> str:
    """The booking rules that an override set aside."""
    return ", ".join(gettext(text) for rule, text in RULES.items() if rule in rules)


def field_error(label: str, message: str) -> str:
    """What is wrong with a field, such as `must not be blank`, with its label."""
    if message == WHOLE_NUMBER:
        return gettext(
            "%(field)s must be a whole number, such as %(example)s", field=label, example=format_number(1000)
        )
    for pattern, numbers in ((message, {}), _pattern(message)):
        sentence = f"%(field)s {pattern}"
        if sentence in FIELD_ERRORS:
            return gettext(sentence, field=label, **numbers)
    return f"{label} {message}"


def _pattern(text: str) -> tuple[str, dict[str, object]]:
    """The text with placeholders for its first numbers, and these numbers."""
    numbers = dict(zip(_PLACES, _NUMBER.findall(text), strict=False))
    for place, number in numbers.items():
        text = text.replace(number, f"%({place})s", 1)
    return text, dict(numbers)
