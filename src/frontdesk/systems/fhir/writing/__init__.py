"""Writes to a FHIR server: their steps, and the settling of writes whose answer was lost."""
