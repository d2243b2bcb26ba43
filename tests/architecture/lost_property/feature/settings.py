from typing import Annotated

from frontdesk.practice_file.fields import key, within
from frontdesk.practice_file.part import FeaturePart
from frontdesk.texts import N_


class Settings(FeaturePart):
    """What patients have left behind."""

    keep_days: Annotated[int, within(1, 365)] = key(N_("How many days a lost item is kept."), 30, 90)
