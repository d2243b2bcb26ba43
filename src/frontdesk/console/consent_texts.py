"""What is known of how a write was agreed to, and who said so."""

from collections.abc import Mapping

from frontdesk.console.language import gettext
from frontdesk.domain.consent import Consent
from frontdesk.texts import N_

_AGREED: Mapping[Consent, str] = {
    "token": N_("confirmed by the agent"),
    "elicitation": N_("agreed when the assistant asked, reported by the host"),
    "card": N_("agreed on a card, reported by the host"),
    "link": N_("agreed by the patient's link"),
    "staff": N_("agreed by a staff member"),
}


def consent_texts() -> dict[str, str]:
    return {consent: gettext(text) for consent, text in _AGREED.items()}
