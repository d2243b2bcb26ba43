"""`$book` as in IHE ITI Scheduling: books a proposed or pending appointment, or moves or cancels a booked one."""

from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.ids import APPOINTMENT_ID
from frontdesk.doors.fhir.addresses import Resource, our_id, reference_of
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.pending import pending_with
from frontdesk.doors.fhir.writing.appointments import KIND, change_appointment, create_appointment
from frontdesk.doors.fhir.writing.requested_appointment import relative

# The names of IHE ITI Scheduling, Argonaut and Medplum.
_RESOURCES = ("appointment-resource", "appt-resource", "appointment")
_REFERENCES = ("appointment-reference", "appt-id")
_PATIENTS = ("patient-reference", "patient-resource", "patient-id")
_CHANGES = ("booked", "cancelled")


async def book(request: FhirRequest, document: object) -> Reply:
    appointment = proposed_appointment(document, request.base, "$book")
    identity = appointment.get("id")
    if (pending := pending_with(identity)) is not None:
        answer = await pending.book(request, appointment)
    elif isinstance(identity, str) and APPOINTMENT_ID.match(our_id("apt", identity)):
        if appointment.get("status") not in _CHANGES:
            raise Problem("conflict", "The appointment has been booked already.")
        answer = await change_appointment(request, identity, appointment)
    else:
        answer = await create_appointment(request, appointment)
    return answer if answer.resource is None else Reply(answer.status, _bundle(answer.resource, request.base))


def proposed_appointment(document: object, base: str, operation: str) -> Resource:
    """The appointment to hold or book: a resource, or what a reference to a proposed or pending one stands for."""
    if isinstance(document, dict) and document.get("resourceType") == KIND:
        return document
    parameters = document.get("parameter") if isinstance(document, dict) else None
    given = {
        str(each.get("name")): each
        for each in (parameters if isinstance(parameters, list) else ())
        if isinstance(each, dict)
    }
    for name in _RESOURCES:
        if isinstance(resource := given.get(name, {}).get("resource"), dict):
            return resource
    for name in _REFERENCES:
        if name in given:
            _, proposal = relative(_reference(given[name]), base)
            patients = [_reference(given[each]) for each in _PATIENTS if each in given]
            participants = [{"actor": {"reference": patient}, "status": "needs-action"} for patient in patients]
            referred = {"id": proposal} if pending_with(proposal) else {"slot": [{"reference": f"Slot/{proposal}"}]}
            return {"resourceType": KIND, "status": "pending", **referred, "participant": participants}
    message = f"{operation} needs one of the parameters {', '.join((*_RESOURCES, *_REFERENCES))}"
    raise invalid([FieldError("parameter", "required", message)])


def _reference(parameter: dict[str, object]) -> str:
    """The reference that a parameter has: as a Reference, a text or a resource with an id."""
    resource, element = parameter.get("resource"), parameter.get("valueReference")
    if isinstance(resource, dict):
        return f"{resource.get('resourceType')}/{resource.get('id')}"
    if isinstance(element, dict):
        return str(element.get("reference"))
    return str(next((parameter[name] for name in ("valueUri", "valueString", "valueId") if name in parameter), ""))


def _bundle(appointment: Resource, base: str) -> Resource:
    entry = {
        "fullUrl": f"{base}/{reference_of(appointment)}",
        "resource": appointment,
        "search": {"mode": "match"},
    }
    return {"resourceType": "Bundle", "type": "searchset", "total": 1, "entry": [entry]}
