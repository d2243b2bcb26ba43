"""Holds: clients of the FHIR door keep an open slot for a few minutes before they book it.

The core keeps held time closed to others, in every lane, search and calendar.
"""

from frontdesk.feature import Feature
from frontdesk.features.holds.settings import HoldSettings
from frontdesk.texts import N_

FEATURE = Feature(
    name="holds",
    title=N_("Holds"),
    about=N_("FHIR clients may hold an open slot for a few minutes before they book it."),
    settings=HoldSettings,
)
