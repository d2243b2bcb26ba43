"""Patient: found by name, phone and date of birth, as match_patient finds them, or by id. Patients are not listed."""

from dataclasses import replace
from typing import Any

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.doors.fhir.addresses import Resource, fhir_id, our_id
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import PATIENT_KIND, PATIENT_NUMBER
from frontdesk.doors.fhir.parameters import Query, SearchParameter, Span
from frontdesk.doors.fhir.resource_types import Position, ResourceType, SearchPage
from frontdesk.doors.fhir.resources.directory import ID
from frontdesk.operations import BY_NAME, MATCHES_IN_FULL

_GET_PATIENT = BY_NAME["get_patient"]
_ARGUMENTS = {"given": "firstName", "family": "lastName", "phone": "phone", "birthdate": "dob"}
_NAMES = {argument: name for name, argument in _ARGUMENTS.items()}


async def _read(calls: Calls, resource_id: str) -> Resource:
    return _patient(await calls.run(_GET_PATIENT, patientId=our_id("pat", resource_id)))


async def _search(calls: Calls, query: Query, _after: Position | None) -> SearchPage:
    try:
        matched = await calls.run(MATCHES_IN_FULL, **_arguments(query))
    except Problem as problem:
        if problem.code == "not_found":
            return SearchPage([])
        if problem.errors:
            raise invalid([_renamed(error) for error in problem.errors]) from None
        raise
    return SearchPage([_patient(each) for each in matched["items"]])


def _arguments(query: Query) -> dict[str, str]:
    """The four fields that must match; a problem lists those that are missing or have several values."""
    arguments, errors = dict[str, str](), list[FieldError]()
    for name, argument in _ARGUMENTS.items():
        asked = query.alternatives(name)
        if not asked:
            errors.append(FieldError(name, "required", f"{name} is required: a patient must match all of {_ALL}"))
        elif len(asked) > 1 or len(asked[0]) > 1:
            errors.append(FieldError(name, BINDING, f"{name} must have one value"))
        elif (text := _text(asked[0][0])) is None:
            errors.append(FieldError(name, BINDING, f"{name} must be a whole date"))
        else:
            arguments[argument] = text
    if errors:
        raise invalid(errors)
    return arguments


def _text(value: str | Span) -> str | None:
    return value if isinstance(value, str) else value.whole_day


def _renamed(error: FieldError) -> FieldError:
    return replace(error, field=_NAMES.get(error.field, error.field))


def _patient(record: dict[str, Any]) -> Resource:
    contacts = [{"system": kind, "value": record[kind]} for kind in ("phone", "email") if record.get(kind)]
    patient: Resource = {
        "resourceType": "Patient",
        "id": fhir_id(record["id"]),
        "extension": [{"url": PATIENT_KIND, "valueCode": record["patientKind"]}],
        "identifier": [{"system": PATIENT_NUMBER, "value": str(record["number"])}],
        "active": True,
        "name": [{"use": "official", "family": record["lastName"], "given": [record["firstName"]]}],
        "birthDate": record["dob"],
    }
    return patient | ({"telecom": contacts} if contacts else {})


_ALL = ", ".join(_ARGUMENTS)

PATIENT = ResourceType(
    name="Patient",
    read_by=_GET_PATIENT,
    search_by=MATCHES_IN_FULL,
    read=_read,
    search=_search,
    parameters=(
        ID,
        SearchParameter("family", "string", is_personal=True),
        SearchParameter("given", "string", is_personal=True),
        SearchParameter("phone", "token", is_personal=True),
        SearchParameter("birthdate", "date", is_personal=True),
    ),
)
