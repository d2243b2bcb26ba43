"""The table of what the FHIR door serves."""

from collections.abc import Mapping

from frontdesk.doors.fhir.resource_types import ResourceType
from frontdesk.doors.fhir.resources.appointments import APPOINTMENT
from frontdesk.doors.fhir.resources.healthcare_services import HEALTHCARE_SERVICE
from frontdesk.doors.fhir.resources.identifiers import with_identifiers
from frontdesk.doors.fhir.resources.locations import LOCATION
from frontdesk.doors.fhir.resources.patients import PATIENT
from frontdesk.doors.fhir.resources.practitioners import PRACTITIONER, PRACTITIONER_ROLE
from frontdesk.doors.fhir.resources.schedules import SCHEDULE
from frontdesk.doors.fhir.resources.slots import SLOT

SERVED: Mapping[str, ResourceType] = {
    kind.name: kind
    for kind in (
        PRACTITIONER,
        PRACTITIONER_ROLE,
        LOCATION,
        HEALTHCARE_SERVICE,
        SCHEDULE,
        SLOT,
        with_identifiers(APPOINTMENT, "apt"),
        with_identifiers(PATIENT, "pat"),
    )
}
