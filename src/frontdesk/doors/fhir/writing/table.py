"""The table of what can be written, and of the scheduling operations."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.resource_types import ListedOperation
from frontdesk.doors.fhir.writing.appointments import BOOK, GET_APPOINTMENT, change_appointment, create_appointment
from frontdesk.doors.fhir.writing.patients import CREATE, GET_PATIENT, change_patient, create_patient
from frontdesk.operations import Operation


class ResourceWrites(NamedTuple):
    """Writes of a resource type. A change reads the resource first and needs the scope of that, too."""

    kind: str
    create_by: Operation
    create: Callable[[FhirRequest, object], Awaitable[Reply]]
    change_by: Operation
    change: Callable[[FhirRequest, str, object], Awaitable[Reply]]


WRITTEN: Mapping[str, ResourceWrites] = {
    writes.kind: writes
    for writes in (
        ResourceWrites("Appointment", BOOK, create_appointment, GET_APPOINTMENT, change_appointment),
        ResourceWrites("Patient", CREATE, create_patient, GET_PATIENT, change_patient),
    )
}
IHE = "https://profiles.ihe.net/ITI/Scheduling/OperationDefinition"
OPERATIONS: Mapping[str, Mapping[str, ListedOperation]] = {  # by resource type and name
    "Appointment": {
        "find": ListedOperation(f"{IHE}/appointment-find"),
        "book": ListedOperation(f"{IHE}/appointment-book"),
        "cancel": ListedOperation("urn:frontdesk:appointment-cancel"),
    },
    "Schedule": {
        "find": ListedOperation(
            "http://www.fhir.org/guides/argonaut-scheduling/OperationDefinition/appointment-availability"
        )
    },
}
