"""Providers who are away at short notice: their appointments get new times, and patients are called."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="absences",
    title=N_("Absences"),
    about=N_("Finds other times and providers for the appointments of a provider who is away."),
)
