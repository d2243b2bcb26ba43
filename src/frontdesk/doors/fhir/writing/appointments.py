"""Creates, moves, confirms and cancels appointments."""

from collections.abc import Awaitable, Callable, Iterable

from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.doors.fhir.addresses import Resource, fhir_id, our_id
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.pending import pending_with
from frontdesk.doors.fhir.served import SERVED
from frontdesk.doors.fhir.versions import versioned
from frontdesk.doors.fhir.writing.answers import WrittenResource, reply
from frontdesk.doors.fhir.writing.requested_appointment import (
    RequestedAppointment,
    read_requested_appointment,
    reason_of,
)
from frontdesk.doors.fhir.writing.requests import (
    condition,
    confirmation_token,
    identifiers,
    key_of_change,
    key_of_create,
    outdated,
    parameters_of,
    refused,
    require_type,
    required_identifier,
    version_matches,
)
from frontdesk.doors.fhir.writing.slots import referred_slot, slot_of_move, wanted_slot
from frontdesk.operations import BY_NAME, Operation

KIND = "Appointment"
BOOK, GET_APPOINTMENT = BY_NAME["book_appointment"], BY_NAME["get_appointment"]
CANCEL = BY_NAME["cancel_appointment"]
_MOVE, _CONFIRM = BY_NAME["reschedule_appointment"], BY_NAME["confirm_attendance"]
_NEW = (None, "proposed", "pending", "booked")
_LIVE = (None, "pending", "booked")

ChooseTime = Callable[[Calls, RequestedAppointment], Awaitable[tuple[Operation, dict[str, str]]]]
"""The operation that books, and its arguments that say the time."""


async def _open_slot(calls: Calls, wanted: RequestedAppointment) -> tuple[Operation, dict[str, str]]:
    return BOOK, {"slotId": await wanted_slot(calls, wanted)}


async def create_appointment(request: FhirRequest, document: object, choose_time: ChooseTime = _open_slot) -> Reply:
    """Books the slot that the resource asks for, or a time that is chosen otherwise."""
    resource = require_type(document, KIND)
    wanted, given, calls = read_requested_appointment(resource, request.base), identifiers(resource), request.calls
    asked = condition(request.http)
    if asked is not None:
        identifier = required_identifier(asked)
        if identifier is None:
            message = "If-None-Exist of an appointment must be identifier=system|value"
            raise invalid([FieldError("If-None-Exist", "unknown", message)])
        given = [identifier, *(each for each in given if each != identifier)]
    if wanted.status not in _NEW:
        raise refused(KIND, "status", "must be booked, pending or proposed in a new appointment")
    if wanted.patient is None:
        raise invalid([FieldError(f"{KIND}.participant", "required", f"{KIND}.participant needs a Patient")])
    key, token = key_of_create(request.http, KIND, given), confirmation_token(request.http, resource)
    existing = await calls.identifiers.find(calls.caller, KIND, given[0]) if given else None
    is_condition_met = asked is not None and existing is not None
    existing = existing or (await calls.result_of(key, token)).get("appointmentId")
    # With a slot the operation itself recognizes a resend, also of a client that may not read appointments.
    may_compare = wanted.slot is None or GET_APPOINTMENT.scope in calls.caller.scopes
    if existing is not None and (is_condition_met or may_compare):
        if not is_condition_met:
            await _require_same(calls, wanted, existing, request.base)
        return await reply(request, WrittenResource(KIND, existing, 200, given))
    operation, time = await choose_time(calls, wanted)
    booking = {"patientId": our_id("pat", wanted.patient), **time, "confirmationToken": token}
    async with calls.identifiers.noted(calls.caller, KIND, given, key, None):
        booked = await calls.write(operation, booking, key=key)
    return await reply(request, WrittenResource(KIND, booked["appointmentId"], 201, given))


async def change_appointment(request: FhirRequest, resource_id: str, document: object) -> Reply:
    """Does what makes the appointment as the resource is: cancels, moves or confirms it, or nothing."""
    resource, calls = require_type(document, KIND), request.calls
    if resource.get("id", resource_id) != resource_id:
        raise refused(KIND, "id", "must be the id of the address")
    if (pending := pending_with(resource_id)) is not None:
        return await pending.cancel(request, resource_id, resource)
    given, wanted = identifiers(resource), read_requested_appointment(resource, request.base)
    key, token = key_of_change(request.http, KIND, given), confirmation_token(request.http, resource)
    current = await _current(request, resource_id, key, token)
    appointment_id = our_id("apt", resource_id)
    operation, arguments = await _difference(calls, wanted, read_requested_appointment(current, request.base))
    if operation is not None:
        arguments |= {"appointmentId": appointment_id, "confirmationToken": token}
        async with calls.identifiers.noted(calls.caller, KIND, given, key, appointment_id):
            await calls.write(operation, arguments, key=key)
    return await reply(request, WrittenResource(KIND, appointment_id, 200, given, "identifier" in resource))


async def cancel_appointment(request: FhirRequest, resource_id: str, document: object) -> Reply:
    """`$cancel`. An appointment that is cancelled already is a conflict."""
    if (pending := pending_with(resource_id)) is not None:
        return await pending.cancel(request, resource_id, {"status": "cancelled"})
    calls, parameters = request.calls, parameters_of(document)
    named = [each.get("valueIdentifier") for each in parameters if each.get("name") == "identifier"]
    given = identifiers({"resourceType": "Parameters", "identifier": named})
    key, token = key_of_change(request.http, KIND, given), confirmation_token(request.http, {})
    if b"if-match" in request.http.headers:
        await _current(request, resource_id, key, token)
    appointment_id = our_id("apt", resource_id)
    arguments = {"appointmentId": appointment_id, "reason": _reason(parameters), "confirmationToken": token}
    async with calls.identifiers.noted(calls.caller, KIND, given, key, appointment_id):
        await calls.write(CANCEL, arguments, key=key)
    return await reply(request, WrittenResource(KIND, appointment_id, 200, given))


async def _current(request: FhirRequest, resource_id: str, key: str | None, token: str | None) -> Resource:
    """The appointment, in the version of If-Match unless the write was executed already."""
    current = versioned(await SERVED[KIND].read(request.calls, resource_id))
    if not version_matches(request.http, current) and not await request.calls.result_of(key, token):
        raise outdated()
    return current


async def _difference(
    calls: Calls, wanted: RequestedAppointment, current: RequestedAppointment
) -> tuple[Operation | None, dict[str, str | None]]:
    """The operation that makes an appointment as it is wanted, and its arguments; None if it is so already."""
    if wanted.patient not in (None, current.patient):
        raise refused(KIND, "participant", "must keep the patient of the appointment")
    if wanted.status == "cancelled":
        return (None, {}) if current.status == "cancelled" else (CANCEL, {"reason": wanted.reason})
    if wanted.status not in _LIVE:
        raise refused(KIND, "status", "can be changed to cancelled only")
    if current.status != "booked":
        raise Problem("conflict", "The appointment has been cancelled or has taken place.")
    slot_id = await _moves_to(calls, wanted, current)
    if slot_id is not None:
        return _MOVE, {"slotId": slot_id}
    if wanted.patient is None or wanted.attends == current.attends:
        return None, {}
    if not wanted.attends:
        raise refused(KIND, "participant", "cannot take back the patient's acceptance")
    return _CONFIRM, {}


async def _moves_to(calls: Calls, wanted: RequestedAppointment, current: RequestedAppointment) -> str | None:
    """The slot that the appointment is to move to, None if it stays where it is."""
    if wanted.slot is None:
        moved = current._replace(
            start=wanted.start or current.start,
            end=wanted.end if wanted.end != current.end else None,
            place=current.place | wanted.place,
            service=current.service | wanted.service,
        )
        return await slot_of_move(calls, moved) if wanted.differs_from(current) else None
    slot = await referred_slot(calls, wanted)
    return our_id("slt", wanted.slot) if slot.differs_from(current) else None


async def _require_same(calls: Calls, wanted: RequestedAppointment, appointment_id: str, base: str) -> None:
    """Refuses an identifier or a key that belongs to another appointment."""
    existing = read_requested_appointment(await SERVED[KIND].read(calls, fhir_id(appointment_id)), base)
    stated = wanted if wanted.slot is None else await referred_slot(calls, wanted)
    if wanted.patient != existing.patient or stated.differs_from(existing):
        raise Problem("conflict", "The identifier or Idempotency-Key belongs to another appointment.")


def _reason(parameters: Iterable[Resource]) -> str | None:
    """Why an appointment is cancelled, as a text or a CodeableConcept."""
    given = next((each for each in parameters if each.get("name") == "reason"), {})
    text = given.get("valueString")
    return text if isinstance(text, str) else reason_of(given.get("valueCodeableConcept"))
