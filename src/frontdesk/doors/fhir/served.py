"""The table of what the FHIR door serves."""

from collections.abc import Mapping

from frontdesk.doors.fhir.resource_types import ResourceType
from frontdesk.doors.fhir.resources.appointments import APPOINTMENT
from frontdesk.doors.fhir.resources.dated import dated
from frontdesk.doors.fhir.resources.healthcare_services import HEALTHCARE_SERVICE
from frontdesk.doors.fhir.resources.identified import identified
from frontdesk.doors.fhir.resources.locations import LOCATION
from frontdesk.doors.fhir.resources.patients import PATIENT
from frontdesk.doors.fhir.resources.practitioner_roles import PRACTITIONER_ROLE
from frontdesk.doors.fhir.resources.practitioners import PRACTITIONER
from frontdesk.doors.fhir.resources.schedules import SCHEDULE
from frontdesk.doors.fhir.resources.slots import SLOT

SERVED: Mapping[str, ResourceType] = {
    kind.name: kind
    for kind in (
        dated(PRACTITIONER),
        dated(PRACTITIONER_ROLE),
        dated(LOCATION),
        dated(HEALTHCARE_SERVICE),
        dated(SCHEDULE),
        SLOT,
        identified(APPOINTMENT, "apt"),
        identified(PATIENT, "pat"),
    )
}
