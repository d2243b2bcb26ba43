"""A practice's calendar in a FHIR R4 server: its slots, patients and appointments, spoken to over HTTP."""

from frontdesk.systems.fhir.practices import FhirPractices

__all__ = ["FhirPractices"]
