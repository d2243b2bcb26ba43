"""Notes of staff on patients and appointments, such as "needs an interpreter"; some are marked for clients, too."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="notes",
    title=N_("Notes"),
    about=N_("Notes of staff on patients and appointments; agents may read those that are marked for them."),
    scopes={"notes:read": N_("notes that staff have marked for agents")},
)
