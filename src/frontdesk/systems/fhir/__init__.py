"""Scheduling system of practices whose calendar is in a FHIR R4 server."""

from frontdesk.systems.fhir.practices import FhirSystems

__all__ = ["FhirSystems"]
