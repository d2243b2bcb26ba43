"""Times that a server with `$find` and `$book` proposes, and the bodies of bookings and cancellations of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

from frontdesk.systems.fhir.resources.elements import CLAIMS, INTENTS, Resource, listed, minute, service_references
from frontdesk.systems.fhir.settings import Shape

_BOOKED_AS = {"medplum": "appointment", "ihe": "appointment-resource", "argonaut": "appt-resource"}


@dataclass(frozen=True, slots=True)
class ProposedAppointment:
    starts: int  # minutes since 1970
    ends: int
    resource: Resource  # an Appointment without an id, to be sent back by a booking


def proposals(found: Iterable[Resource]) -> list[ProposedAppointment]:
    return [
        ProposedAppointment(starts, ends, each)
        for each in found
        if each.get("status") == "proposed"
        and (starts := minute(each.get("start"))) is not None
        and (ends := minute(each.get("end"))) is not None
    ]


def proposed_slots(proposal: Resource) -> list[Resource]:
    """The slots that a booking of the proposal makes, with the buffers around it."""
    return [each for each in listed(proposal.get("contained")) if each.get("resourceType") == "Slot"]


def new_slots(proposal: Resource, claim: str) -> list[tuple[str, Resource]]:
    """The slots of the proposal as new records with our claim, each with a urn to refer to it."""
    identifier = [{"system": CLAIMS, "value": claim}]
    return [(uuid4().urn, {**each, "identifier": identifier}) for each in proposed_slots(proposal)]


def in_service(appointment: Resource, proposal: Resource) -> Resource:
    """The appointment with the services as the server names them."""
    theirs = listed(proposal.get("serviceType"))
    ours = [each for each in listed(appointment.get("serviceType")) if each not in theirs]
    return {**appointment, "serviceType": [*theirs, *(each for each in ours if not service_references([each]))]}


def book_parameters(shape: Shape, appointment: Resource, proposal: Resource) -> Resource:
    """The body of `$book` for an appointment at the proposed time."""
    slots = proposed_slots(proposal)
    body = in_service({**appointment, **({"contained": slots} if slots else {})}, proposal)
    if shape == "ihe":
        body["status"] = "pending"
    if not body["serviceType"]:
        del body["serviceType"]
    if not slots and "slot" in proposal:
        body["slot"] = proposal["slot"]
    return {"resourceType": "Parameters", "parameter": [{"name": _BOOKED_AS[shape], "resource": body}]}


def cancel_parameters(intent: str, reason: str | None) -> Resource:
    """The body of another frontdesk's `$cancel`."""
    identifier = {"name": "identifier", "valueIdentifier": {"system": INTENTS, "value": intent}}
    why = [{"name": "reason", "valueString": reason}] if reason else []
    return {"resourceType": "Parameters", "parameter": [identifier, *why]}
