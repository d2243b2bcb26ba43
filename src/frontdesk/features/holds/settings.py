from typing import Annotated

from frontdesk.practice_file.fields import key, within
from frontdesk.practice_file.part import FeaturePart
from frontdesk.texts import N_


class HoldSettings(FeaturePart):
    """Open slots that FHIR clients hold before they book them."""

    minutes: Annotated[int, within(1, 15)] = key(N_("How many minutes a hold lasts. It ends at a whole minute."), 3, 5)
