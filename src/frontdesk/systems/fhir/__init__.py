"""Scheduling system of practices whose calendar is in a FHIR R4 server."""

from frontdesk.systems.fhir.practices import FhirPractices

__all__ = ["FhirPractices"]
