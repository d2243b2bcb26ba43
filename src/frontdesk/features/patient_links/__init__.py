"""Patients' own links: a practice makes one for an appointment and sends it to the patient."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="patient_links",
    title=N_("Patients' links"),
    about=N_("Links with which patients see, confirm and cancel their appointments without an account."),
)
