"""The pending Appointments that stand for holds: `$hold` makes one, `$book` books it."""

from functools import partial
from typing import Any

from frontdesk.domain.errors import Problem
from frontdesk.doors.fhir.addresses import Resource, fhir_id, our_id, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import service_type
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.versions import version_headers, versioned
from frontdesk.doors.fhir.writing.appointments import KIND, create_appointment
from frontdesk.doors.fhir.writing.booking import proposed_appointment
from frontdesk.doors.fhir.writing.requested_appointment import RequestedAppointment, of_slot, read_requested_appointment
from frontdesk.doors.fhir.writing.requests import (
    confirmation_token,
    header_key,
    outdated,
    prefers_minimal,
    refused,
    version_matches,
)
from frontdesk.doors.fhir.writing.slots import require_agreement, wanted_slot
from frontdesk.features.holds.operations import BOOK_HELD, GET_HOLD, HOLD_SLOT, RELEASE_HOLD
from frontdesk.operations import Operation

PREFIX = "held-"
HELD_UNTIL = "urn:frontdesk:held-until"


def held_id(hold_id: str) -> str:
    """The FHIR id of the pending appointment that stands for a hold."""
    return PREFIX + fhir_id(hold_id)


def hold_of(resource_id: str) -> str:
    """What `held_id` was made from."""
    return our_id("hld", resource_id.removeprefix(PREFIX))


async def read(calls: Calls, resource_id: str) -> Resource:
    return await _read_hold(calls, hold_of(resource_id))


async def _read_hold(calls: Calls, hold_id: str) -> Resource:
    return _resource(await calls.run(GET_HOLD, holdId=hold_id))


def _resource(record: dict[str, Any]) -> Resource:
    actors = (
        reference("Practitioner", record["providerId"], record["providerName"]),
        reference("Location", record["locationId"], record["locationName"]),
    )
    return {
        "resourceType": "Appointment",
        "id": held_id(record["holdId"]),
        "meta": {"lastUpdated": record["heldAt"]},
        "extension": [{"url": HELD_UNTIL, "valueInstant": record["heldUntil"]}],
        "status": "pending",
        "serviceType": service_type(record),
        "start": record["start"],
        "end": record["end"],
        "slot": [reference("Slot", fhir_id(record["id"]))],
        "created": record["heldAt"],
        "participant": [{"actor": actor, "status": "needs-action"} for actor in actors],
    }


async def hold(request: FhirRequest, document: object) -> Reply:
    """Holds the time of a proposed appointment. `$book` supplies the patient."""
    calls, appointment = request.calls, proposed_appointment(document, request.base, "$hold")
    if str(appointment.get("id", "")).startswith(PREFIX):
        raise Problem("conflict", "The appointment is held already.")
    wanted, key = read_requested_appointment(appointment, request.base), header_key(request.http)
    token = confirmation_token(request.http, appointment)
    # By time there is no open slot to name once it is held: the key or the token finds the result.
    hold_id = None if wanted.slot is not None else (await calls.result_of(key, token)).get("holdId")
    if hold_id is not None:
        held = await _held_slot(calls, hold_id)
        if held is not None and wanted.differs_from(held):
            raise Problem("conflict", "The Idempotency-Key or the token belongs to another hold.")
    else:
        values = {"slotId": await wanted_slot(calls, wanted), "confirmationToken": token}
        hold_id = (await calls.write(HOLD_SLOT, values, key=key))["holdId"]
    location = (b"location", f"{request.base}/{KIND}/{held_id(hold_id)}".encode())
    try:
        resource = versioned(await _read_hold(calls, hold_id))
    except Problem:  # it was taken, whether or not it can be read now or has ended since
        return Reply(201, None, [location])
    return Reply(201, resource, [*version_headers(resource), location])


async def book(request: FhirRequest, resource: Resource) -> Reply:
    """Books what is held, or releases it if the resource shall be cancelled."""
    resource_id = str(resource["id"])
    if resource.get("status") == "cancelled":
        return await release(request, resource_id, resource)
    return await create_appointment(request, resource, partial(_held_time, hold_of(resource_id)))


async def _held_time(hold_id: str, calls: Calls, wanted: RequestedAppointment) -> tuple[Operation, dict[str, str]]:
    """Time, place and service must be those that are held. The booking checks whether they still are."""
    held = await _held_slot(calls, hold_id)
    if held is not None:
        require_agreement(wanted, held)
    return BOOK_HELD, {"holdId": hold_id}


async def _held_slot(calls: Calls, hold_id: str) -> RequestedAppointment | None:
    """Time, place and service that are held, None if the hold has ended."""
    try:
        return of_slot(await calls.run(GET_HOLD, holdId=hold_id))
    except Problem as problem:
        if problem.code != "not_found":
            raise
        return None


async def release(request: FhirRequest, resource_id: str, resource: Resource) -> Reply:
    """Releases a hold. Its appointment is gone then: the answer is the cancelled one, or nothing to a resend."""
    hold_id = hold_of(resource_id)
    calls, key, token = request.calls, header_key(request.http), confirmation_token(request.http, resource)
    if resource.get("status") != "cancelled":
        raise refused(KIND, "status", "of a held appointment can be changed to cancelled only; $book books it")
    if await calls.result_of(key, token):
        return Reply(200)
    held = versioned(await _read_hold(calls, hold_id))
    if not version_matches(request.http, held):
        raise outdated()
    await calls.write(RELEASE_HOLD, {"holdId": hold_id, "confirmationToken": token}, key=key)
    return Reply(200, None if prefers_minimal(request.http) else {**held, "status": "cancelled"})
