"""Reads from a FHIR server: open slots, patients and appointments."""
