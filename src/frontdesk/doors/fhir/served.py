"""The table of what the FHIR door serves."""

from collections.abc import Mapping

from frontdesk.doors.fhir.resource_types import ResourceType
from frontdesk.doors.fhir.resources.practitioners import PRACTITIONER

SERVED: Mapping[str, ResourceType] = {kind.name: kind for kind in (PRACTITIONER,)}
