"""How a person's agreement to a write was given, and the least that a practice demands for an operation."""

from collections.abc import Mapping
from typing import Literal, get_args

from frontdesk.domain.errors import Problem

# From the weakest proof to the strongest: a stronger one meets the demand for a weaker one.
Consent = Literal["token", "elicitation", "card", "link", "staff"]
REPORTED_BY_HOST: frozenset[Consent] = frozenset(("elicitation", "card"))  # nobody can check what the host says
CONSENTS: tuple[Consent, ...] = get_args(Consent)
Demand = Literal["token", "elicitation", "card", "staff"]  # no link: it confirms and cancels, and nothing else
Demands = Mapping[str, Consent]  # by operation; an operation that is not listed needs no more than it always did

_TRUSTED = "and that the practice trusts to ask people"
_ACCEPTED: Mapping[Consent, str] = {
    "token": "a caller that confirms its writes with a confirmationToken",
    "elicitation": f"an MCP host that asks its user (elicitation) or shows app cards, {_TRUSTED}",
    "card": f"an MCP host that shows app cards, where a person presses the button, {_TRUSTED}",
    "link": "the patient, by their own link, which the practice sends to them",
    "staff": "a staff member in the console",
}


def meets(given: Consent | None, demanded: Consent | None) -> bool:
    """Whether a write with this consent (None: nobody was asked) may be executed."""
    if demanded is None:
        return True
    return given is not None and CONSENTS.index(given) >= CONSENTS.index(demanded)


def consent_required(demanded: Consent) -> Problem:
    """The refusal of a write whose consent is too weak; says what is accepted."""
    enough = _ACCEPTED[demanded]
    if enough != _ACCEPTED["staff"]:
        enough += "; staff can do it in the console"
    return Problem(
        "consent_required",
        f"Nothing was executed. For this operation the practice requires the consent {demanded!r}. Accepted: {enough}.",
    )
