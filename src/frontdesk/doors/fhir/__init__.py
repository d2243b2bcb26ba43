"""The FHIR door: the practices as a FHIR R4 server."""

from frontdesk.doors.fhir.addresses import FHIR_PREFIX
from frontdesk.doors.fhir.door import FhirDoor
from frontdesk.doors.fhir.outcomes import outcome_document

__all__ = ["FHIR_PREFIX", "FhirDoor", "outcome_document"]
