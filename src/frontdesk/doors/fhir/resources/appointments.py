"""Appointment: a booked time of a patient with a provider at a location."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import PATIENT_ID
from frontdesk.doors.fhir.addresses import Resource, directory_id, fhir_id, our_id, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import PROCEDURE, VISIT_TYPE, service_type, tokens
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.pending import pending_with
from frontdesk.doors.fhir.resource_types import LAST_UPDATED, Position, ResourceType, SearchPage
from frontdesk.doors.fhir.resources.directory import ID
from frontdesk.operations import APPOINTMENTS_IN_FULL, BY_NAME

_GET_APPOINTMENT = BY_NAME["get_appointment"]
_STATUSES = {
    "booked": "booked",
    "confirmed": "booked",
    "cancelled": "cancelled",
    "arrived": "arrived",
    "completed": "fulfilled",
    "noShow": "noshow",
}
_ARGUMENTS = {
    "Practitioner": "providerId",
    "Location": "locationId",
    VISIT_TYPE: "visitTypeId",
    PROCEDURE: "procedureId",
}
_FILTERED = (("practitioner", "Practitioner"), ("location", "Location"), ("actor", ""), ("service-type", ""))


async def _read(calls: Calls, resource_id: str) -> Resource:
    pending = pending_with(resource_id)
    if pending is not None:
        return await pending.read(calls, resource_id)
    return appointment(await calls.run(_GET_APPOINTMENT, appointmentId=our_id("apt", resource_id)))


async def _search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
    """Lists the appointments of one patient after the other. A position is the patient and the cursor of the list."""
    first, last = query.days("date")
    patients, filters = _patients(query), _filters(query)
    if not patients or filters is None or (first is not None and last is not None and first > last):
        return SearchPage([])
    patient, cursor = (patients[0], None) if after is None else after
    try:
        found = await calls.run(
            APPOINTMENTS_IN_FULL,
            patientId=patient,
            limit=query.count,
            cursor=cursor,
            **{"from": first and first.isoformat(), "to": last and last.isoformat()},
            **filters,
        )
    except Problem as problem:
        if problem.code != "not_found":
            raise
        found = {"items": []}
    appointments = [appointment(each) for each in found["items"]]
    if "nextCursor" in found:
        return SearchPage(appointments, [patient, found["nextCursor"]])
    following = patients[patients.index(patient) + 1 :]
    return SearchPage(appointments, [following[0], None] if following else None)


def _patients(query: Query) -> list[str | None]:
    """The ids of the patients whose appointments are listed; None stands for all, an empty list for nobody."""
    asked = query.alternatives("patient")
    asked += [values for values in query.alternatives("actor") if all(each.startswith("Patient/") for each in values)]
    if not asked:
        return [None]
    ids = [our_id("pat", value.removeprefix("Patient/")) for value in asked[0]]
    return list(dict.fromkeys(each for each in ids if PATIENT_ID.match(each)))


def _filters(query: Query) -> dict[str, int] | None:
    """The filters of the list that parameters with one value stand for; None if nothing can match."""
    filters: dict[str, int] = {}
    for name, kind in _FILTERED:
        for value in (values[0] for values in query.alternatives(name) if len(values) == 1):
            system, _, code = value.rpartition("|" if name == "service-type" else "/")
            argument = _ARGUMENTS.get(system or kind)
            if argument is None:
                continue
            number = directory_id(code)
            if number is None:
                return None
            filters[argument] = number
    return filters


def appointment(record: dict[str, Any]) -> Resource:
    # A scheduling system may know that a patient has confirmed, but not when.
    confirmed = record["status"] == "confirmed" or "attendanceConfirmedAt" in record
    resource: Resource = {
        "resourceType": "Appointment",
        "id": fhir_id(record["id"]),
        "meta": {"lastUpdated": record["updatedAt"]},
        "status": _STATUSES[record["status"]],
        "serviceType": service_type(record),
        "start": record["start"],
        "end": record["end"],
        "created": record["createdAt"],
        "participant": [
            _participant("Patient", fhir_id(record["patientId"]), None, accepted=confirmed),
            _participant("Practitioner", record["providerId"], record["providerName"], accepted=True),
            _participant("Location", record["locationId"], record["locationName"], accepted=True),
        ],
    }
    if (minutes := _minutes(record)) > 0:
        resource["minutesDuration"] = minutes
    if "cancellationReason" in record:
        resource["cancelationReason"] = {"text": record["cancellationReason"]}
    return resource


def _minutes(record: dict[str, Any]) -> int:
    start, end = (datetime.fromisoformat(record[key]) for key in ("start", "end"))
    return int((end - start).total_seconds()) // 60


def _participant(kind: str, resource_id: object, name: str | None, *, accepted: bool) -> Resource:
    status = "accepted" if accepted else "needs-action"
    return {"actor": reference(kind, resource_id, name), "status": status}


def _actors(*kinds: str) -> Callable[[Resource], list[str]]:
    """Finds the participants of an appointment that are of these types."""

    def found(resource: Resource) -> list[str]:
        actors = [each["actor"]["reference"] for each in resource["participant"]]
        return [actor for actor in actors if actor.partition("/")[0] in kinds]

    return found


def _by_actor(name: str, *kinds: str) -> SearchParameter:
    return SearchParameter(name, "reference", _actors(*kinds), kinds)


APPOINTMENT = ResourceType(
    name="Appointment",
    read_by=_GET_APPOINTMENT,
    search_by=APPOINTMENTS_IN_FULL,
    read=_read,
    search=_search,
    parameters=(
        ID,
        LAST_UPDATED,
        SearchParameter("date", "date", lambda resource: [resource["start"]]),
        SearchParameter("status", "token", lambda resource: [resource["status"]]),
        SearchParameter("service-type", "token", lambda resource: tokens(resource["serviceType"])),
        _by_actor("patient", "Patient"),
        _by_actor("practitioner", "Practitioner"),
        _by_actor("location", "Location"),
        _by_actor("actor", "Patient", "Practitioner", "Location"),
    ),
    includes=("patient", "practitioner", "location", "actor"),
    has_last_updated=True,
    order=lambda query: "date" if len(_patients(query)) == 1 else None,
)
