"""Chooses how a person is asked to agree to a write, and keeps the tokens of each way apart.

A token names its way in its first characters, and only the hash of the whole text is stored: a token of one way cannot
be passed off as one of another.
"""

import secrets
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.consent import Consent, consent_required, meets
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import iso_utc
from frontdesk.operations import Operation

# Staff have a patient in front of them: they get half a working day, not the minutes of a call.
APPROVAL_LIFETIME = timedelta(hours=4)
_APPROVAL_NEEDED = (
    "Nothing was executed. A staff member of the practice must approve this change in the console. After that, send "
    "the identical request with the confirmationToken; until then it is refused with consent_required. Webhooks of "
    "the practice tell of the decision."
)
_PREFIXES: Mapping[Consent, str] = {"token": "", "elicitation": "elicitation-", "card": "card-"}
_APPROVAL_PENDING = (
    "Nothing was executed. A staff member has not approved this change yet. The confirmationToken stays valid: resend "
    "after that."
)
_APPROVAL_REFUSED = (
    "Nothing was executed. A staff member has refused this change. Do not propose it again unless the person wants it."
)


class Challenge(Problem):
    """Asks for an agreement. `asks` is the way: the token must reach only those who take part in it."""

    def __init__(self, asks: Consent, token: str, expires_at: datetime, read_back: Mapping[str, object]) -> None:
        extra = {"confirmationToken": token, "expiresAt": iso_utc(expires_at), "readBack": read_back}
        super().__init__("confirmation_required", _APPROVAL_NEEDED if asks == "staff" else None, extra=extra)
        self.asks = asks


def choose_consent(operation: Operation, caller: Caller, host: Collection[Consent]) -> Consent:
    """The way in which a person is asked; `consent_required` if there is none that the practice accepts.

    Clients with credentials of their own get the token of the contract unless the practice demands more.
    """
    demanded = caller.demands.get(operation.name)
    if demanded in caller.approvals:
        return demanded
    wanted: tuple[Consent, ...] = ("elicitation", "card")
    if meets("token", demanded):
        wanted = ("elicitation", "token") if caller.staff_id is not None else ("token",)
    for way in wanted:
        if (way == "token" or way in host) and meets(way, demanded):
            return way
    assert demanded is not None
    raise consent_required(demanded)


def approval_required(approval: str) -> Problem:
    """The refusal of a write that a staff member has not approved yet, or has refused."""
    details = {"pending": _APPROVAL_PENDING, "refused": _APPROVAL_REFUSED}
    return Problem("consent_required", details[approval])


def new_token(way: Consent) -> str:
    return _PREFIXES.get(way, "") + secrets.token_hex(16)


def consent_of(token: str) -> Consent:
    """What a confirmationToken among the arguments proves. Agreement by elicitation never comes this way."""
    return "card" if token.startswith(_PREFIXES["card"]) else "token"


def is_recognized(token: str, host: Collection[Consent] = ()) -> bool:
    """Whether a token among the arguments can confirm a call whose host asks in these ways.

    The token of a card comes from a host that shows cards, that of an elicitation never among the arguments.
    """
    return not token.startswith(_PREFIXES["elicitation"]) and (consent_of(token) == "token" or "card" in host)
