"""Translates FHIR R4 resources to domain records and back."""
