"""Consent receipts: signed statements of what was read back before a write, and of who reported the agreement."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="receipts",
    title=N_("Consent receipts"),
    about=N_("Signed statements of what was read back before a change, and of who reported the agreement."),
    scopes={"receipts:read": N_("receipts of the client's own changes, with what was read back")},
    has_commands=True,
)
