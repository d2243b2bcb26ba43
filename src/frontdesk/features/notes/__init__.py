"""Notes of staff on patients and appointments, such as "needs an interpreter"; some are marked for clients, too."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="notes",
    scopes={"notes:read": N_("notes that staff have marked for agents")},
)
