"""The table of what can be written, and of the scheduling operations."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.writing.appointments import BOOK, GET_APPOINTMENT, change_appointment, create_appointment
from frontdesk.doors.fhir.writing.patients import CREATE, GET_PATIENT, change_patient, create_patient
from frontdesk.operations import Operation


class ListedOperation(NamedTuple):
    """An operation as the CapabilityStatement lists it."""

    definition: str
    documentation: str | None = None


class Writes(NamedTuple):
    """Writes of a resource type. A change reads the resource first and needs the scope of that, too."""

    kind: str
    create_by: Operation
    create: Callable[[FhirRequest, object], Awaitable[Reply]]
    change_by: Operation
    change: Callable[[FhirRequest, str, object], Awaitable[Reply]]


WRITTEN: Mapping[str, Writes] = {
    writes.kind: writes
    for writes in (
        Writes("Appointment", BOOK, create_appointment, GET_APPOINTMENT, change_appointment),
        Writes("Patient", CREATE, create_patient, GET_PATIENT, change_patient),
    )
}
_IHE = "https://profiles.ihe.net/ITI/Scheduling/OperationDefinition"
_ONLY_NATIVE = "Refused with 503 (capability_not_supported) at a practice whose calendar is on another FHIR server."
OPERATIONS: Mapping[str, Mapping[str, ListedOperation]] = {  # by resource type and name
    "Appointment": {
        "find": ListedOperation(f"{_IHE}/appointment-find"),
        "hold": ListedOperation(f"{_IHE}/appointment-hold", _ONLY_NATIVE),
        "book": ListedOperation(f"{_IHE}/appointment-book"),
        "cancel": ListedOperation("urn:frontdesk:appointment-cancel"),
    },
    "Schedule": {
        "find": ListedOperation(
            "http://www.fhir.org/guides/argonaut-scheduling/OperationDefinition/appointment-availability"
        )
    },
}
