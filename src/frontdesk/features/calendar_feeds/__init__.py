"""Calendar feeds: a provider's appointments as iCalendar, under a secret address."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="calendar_feeds",
    title=N_("Calendar feeds"),
    about=N_("Addresses at which calendar programs read the appointments of a provider."),
    has_commands=True,
)
