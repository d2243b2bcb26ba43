"""What patients have left behind: staff write it down, agents may ask for it."""

from frontdesk.feature import Feature
from frontdesk.features.lost_property.settings import Settings
from frontdesk.texts import N_

FEATURE = Feature(
    name="lost_property",
    title=N_("Lost property"),
    about=N_("A list of what patients have left behind."),
    settings=Settings,
    scopes={"lostItems:read": N_("what patients have left behind")},
    events=("lostItem.found",),
)
