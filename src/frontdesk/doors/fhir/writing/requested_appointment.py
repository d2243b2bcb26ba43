"""What an Appointment resource asks for, read from its elements."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from frontdesk.domain.errors import BINDING, FieldError, invalid
from frontdesk.doors.fhir.addresses import Resource, directory_id
from frontdesk.doors.fhir.codes import PROCEDURE, VISIT_TYPE
from frontdesk.doors.fhir.writing.requests import objects

_SERVICES = {VISIT_TYPE: "visitTypeId", PROCEDURE: "procedureId"}
_OTHER_ACTORS = ("PractitionerRole", "RelatedPerson")  # they change nothing
_YEARS = range(1900, 9000)
_PLACES = {"Practitioner": "providerId", "Location": "locationId"}


class RequestedAppointment(NamedTuple):
    """None stands for an element that the resource does not have. Ids are those of FHIR; `place` and `service` have
    our names and ids."""

    status: str | None
    start: datetime | None
    end: datetime | None
    slot: str | None
    patient: str | None
    attends: bool
    place: dict[str, int]
    service: dict[str, int]
    reason: str | None

    def differs_from(self, other: "RequestedAppointment") -> list[str]:
        """The elements of time, place and service that say something else than another appointment's or a slot's."""
        differing = [
            name
            for name, mine, theirs in (("start", self.start, other.start), ("end", self.end, other.end))
            if mine not in (None, theirs)
        ]
        if not self.place.items() <= other.place.items():
            differing.append("participant")
        if not self.service.items() <= other.service.items():
            differing.append("serviceType")
        return differing


def read_requested_appointment(resource: Resource, base: str) -> RequestedAppointment:
    """Reads the elements that we know; a problem lists all that cannot be read."""
    errors: list[FieldError] = []
    start, end = (_moment(resource, name, errors) for name in ("start", "end"))
    slots = [_reference(each, base) for each in objects(resource.get("slot"))]
    if len(slots) > 1 or any(kind != "Slot" for kind, _ in slots):
        errors.append(FieldError("Appointment.slot", BINDING, "Appointment.slot must be one Slot of this server"))
    place: dict[str, int] = {}
    service = _coded_service(resource)
    patients: dict[str, bool] = {}  # by id, whether they accepted
    for participant in objects(resource.get("participant")):
        kind, identity = _reference(participant.get("actor"), base)
        number = directory_id(identity)
        if kind == "Patient":
            patients[identity] = participant.get("status") == "accepted"
        elif kind in _PLACES and number is not None and place.setdefault(_PLACES[kind], number) == number:
            continue
        elif kind == "HealthcareService" and (known := _service_of(identity)) is not None:
            service = known
        elif _has_reference(participant.get("actor")) and kind not in _OTHER_ACTORS:
            message = "Appointment.participant must refer to one provider and location of this server"
            errors.append(FieldError("Appointment.participant", BINDING, message))
    if len(patients) > 1:
        message = "Appointment.participant must have at most one Patient"
        errors.append(FieldError("Appointment.participant", BINDING, message))
    patient, attends = next(iter(patients.items()), (None, False))
    status = resource.get("status")
    if errors:
        raise invalid(errors)
    return RequestedAppointment(
        status if isinstance(status, str) else None,
        start,
        end,
        slots[0][1] if slots else None,
        patient,
        attends,
        place,
        service,
        reason_of(resource.get("cancelationReason")),
    )


def of_slot(record: Mapping[str, Any]) -> RequestedAppointment:
    """Time, place and service of a slot."""
    start, end = (datetime.fromisoformat(record[name]) for name in ("start", "end"))
    place = {name: record[name] for name in _PLACES.values()}
    service = {name: record[name] for name in _SERVICES.values()}
    return RequestedAppointment(None, start, end, None, None, False, place, service, None)


def relative(reference: object, base: str) -> tuple[str, str]:
    """The type and id that a reference of this server names; empty texts for anything else."""
    if not isinstance(reference, str):
        return "", ""
    kind, separator, identity = reference.removeprefix(f"{base}/").partition("/")
    identity = identity.partition("/_history/")[0]
    return (kind, identity) if separator and identity and "/" not in identity and ":" not in kind else ("", "")


def _has_reference(element: object) -> bool:
    return isinstance(element, dict) and "reference" in element


def _reference(element: object, base: str) -> tuple[str, str]:
    return relative(element.get("reference"), base) if isinstance(element, dict) else ("", "")


def _coded_service(resource: Resource) -> dict[str, int]:
    service = {}
    for concept in objects(resource.get("serviceType")):
        for coding in objects(concept.get("coding")):
            name, number = _SERVICES.get(str(coding.get("system"))), directory_id(str(coding.get("code")))
            if name is not None and number is not None:
                service[name] = number
    return service


def _service_of(identity: str) -> dict[str, int] | None:
    """The visit type and procedure of a HealthcareService."""
    numbers = [directory_id(part) for part in identity.split("-")]
    match numbers:
        case [int(visit_type), int(procedure)]:
            return {"visitTypeId": visit_type, "procedureId": procedure}
    return None


def _moment(resource: Resource, name: str, errors: list[FieldError]) -> datetime | None:
    text = resource.get(name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and moment.year in _YEARS:
            return moment
    except (ValueError, TypeError):
        pass
    errors.append(FieldError(f"Appointment.{name}", BINDING, f"Appointment.{name} must be an instant"))
    return None


def reason_of(concept: object) -> str | None:
    """The text of a CodeableConcept."""
    if not isinstance(concept, dict):
        return None
    spelt = [concept.get("text"), *(coding.get("display") for coding in objects(concept.get("coding")))]
    return next((text for text in spelt if isinstance(text, str) and text.strip()), None)
