"""HealthcareService: a procedure under a visit type, which is what can be booked."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, directory_ids, no_such_resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import DURATION, PATIENT_KIND, service_type, tokens
from frontdesk.doors.fhir.parameters import Query, SearchParameter
from frontdesk.doors.fhir.resources.directory import ACTIVE, directory_type
from frontdesk.operations import ALL_PROCEDURES


async def services(calls: Calls, name: str | None = None) -> list[Resource]:
    found = await calls.run(ALL_PROCEDURES, name=name)
    return [_service(each["visitType"], each["procedure"]) for each in found["items"]]


async def _read(calls: Calls, resource_id: str) -> Resource:
    directory_ids(resource_id, 2)
    for service in await services(calls):
        if service["id"] == resource_id:
            return service
    raise no_such_resource()


async def _matching(calls: Calls, query: Query) -> list[Resource]:
    return await services(calls, query.text("name"))


def _service(visit_type: dict[str, Any], procedure: dict[str, Any]) -> Resource:
    described = {
        "visitTypeId": visit_type["id"],
        "visitTypeName": visit_type["name"],
        "procedureId": procedure["id"],
        "procedureName": procedure["name"],
    }
    service = {
        "resourceType": "HealthcareService",
        "id": f"{visit_type['id']}-{procedure['id']}",
        "extension": [{"url": DURATION, "valuePositiveInt": procedure["durationMinutes"]}],
        "active": True,
        "type": service_type(described),
        "name": f"{visit_type['name']}: {procedure['name']}",
        "eligibility": [{"code": {"coding": [{"system": PATIENT_KIND, "code": visit_type["patientKind"]}]}}],
        "appointmentRequired": True,
    }
    texts = [record["description"] for record in (visit_type, procedure) if "description" in record]
    return service | ({"comment": " ".join(texts)} if texts else {})


HEALTHCARE_SERVICE = directory_type(
    "HealthcareService",
    ALL_PROCEDURES,
    ALL_PROCEDURES,
    _read,
    _matching,
    ACTIVE,
    SearchParameter("name", "string"),
    SearchParameter("service-type", "token", lambda service: tokens(service["type"])),
)
