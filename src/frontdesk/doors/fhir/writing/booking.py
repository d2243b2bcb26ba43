"""`$hold` and `$book` as in IHE ITI Scheduling: hold or book a proposed appointment, or move or cancel a booked one."""

from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.ids import APPOINTMENT_ID
from frontdesk.doors.fhir.addresses import Resource, held_id, hold_of, our_id, reference_of
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.resources.held_appointments import read_held
from frontdesk.doors.fhir.versions import version_headers, versioned
from frontdesk.doors.fhir.writing.appointments import KIND, change_appointment, create_appointment, release
from frontdesk.doors.fhir.writing.requested_appointment import read_requested_appointment, relative
from frontdesk.doors.fhir.writing.requests import confirmation_token, header_key
from frontdesk.doors.fhir.writing.slots import held_slot, wanted_slot
from frontdesk.operations import HOLD_SLOT

# The names of IHE ITI Scheduling, Argonaut and Medplum.
_RESOURCES = ("appointment-resource", "appt-resource", "appointment")
_REFERENCES = ("appointment-reference", "appt-id")
_PATIENTS = ("patient-reference", "patient-resource", "patient-id")
_CHANGES = ("booked", "cancelled")


async def hold(request: FhirRequest, document: object) -> Reply:
    """Holds the time of a proposed appointment. Whom it is for is said by `$book`."""
    calls, appointment = request.calls, _appointment(document, request.base, "$hold")
    if hold_of(appointment.get("id")) is not None:
        raise Problem("conflict", "The appointment is held already.")
    wanted, key = read_requested_appointment(appointment, request.base), header_key(request.http)
    token = confirmation_token(request.http, appointment)
    # By time there is no open slot to name once it is held: the key or the token finds the result.
    hold_id = None if wanted.slot is not None else (await calls.result_of(key, token)).get("holdId")
    if hold_id is not None:
        held = await held_slot(calls, hold_id)
        if held is not None and wanted.differs_from(held):
            raise Problem("conflict", "The Idempotency-Key or the token belongs to another hold.")
    else:
        values = {"slotId": await wanted_slot(calls, wanted), "confirmationToken": token}
        hold_id = (await calls.write(HOLD_SLOT, values, key=key))["holdId"]
    location = (b"location", f"{request.base}/{KIND}/{held_id(hold_id)}".encode())
    try:
        resource = versioned(await read_held(calls, hold_id))
    except Problem:  # it was taken, whether or not it can be read now or has ended since
        return Reply(201, None, [location])
    return Reply(201, resource, [*version_headers(resource), location])


async def book(request: FhirRequest, document: object) -> Reply:
    appointment = _appointment(document, request.base, "$book")
    identity = appointment.get("id")
    if (hold_id := hold_of(identity)) is not None:
        if appointment.get("status") == "cancelled":
            answer = await release(request, hold_id, appointment)
        else:
            answer = await create_appointment(request, appointment, hold_id)
    elif isinstance(identity, str) and APPOINTMENT_ID.match(our_id("apt", identity)):
        if appointment.get("status") not in _CHANGES:
            raise Problem("conflict", "The appointment has been booked already.")
        answer = await change_appointment(request, identity, appointment)
    else:
        answer = await create_appointment(request, appointment)
    return answer if answer.resource is None else Reply(answer.status, _bundle(answer.resource, request.base))


def _appointment(document: object, base: str, operation: str) -> Resource:
    """The appointment to hold or book: a resource, or what a reference to a proposed or held one stands for."""
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
            referred = {"id": proposal} if hold_of(proposal) else {"slot": [{"reference": f"Slot/{proposal}"}]}
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
