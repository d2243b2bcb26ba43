"""Creates and updates patients."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.doors.fhir.addresses import Resource, fhir_id, our_id
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.served import SERVED
from frontdesk.doors.fhir.versions import versioned
from frontdesk.doors.fhir.writing.answers import WrittenResource, reply
from frontdesk.doors.fhir.writing.requests import (
    condition,
    confirmation_token,
    identifiers,
    key_of_change,
    key_of_create,
    objects,
    outdated,
    refused,
    require_type,
    required_identifier,
    version_matches,
)
from frontdesk.operations import BY_NAME

KIND = "Patient"
CREATE, GET_PATIENT = BY_NAME["create_patient"], BY_NAME["get_patient"]
_UPDATE, _MATCH = BY_NAME["update_patient"], BY_NAME["match_patient"]
_ELEMENTS = {
    "firstName": "Patient.name.given",
    "lastName": "Patient.name.family",
    "phone": "Patient.telecom",
    "dob": "Patient.birthDate",
    "email": "Patient.telecom",
}
_MATCHED = {"given": "firstName", "family": "lastName", "phone": "phone", "birthdate": "dob"}


async def create_patient(request: FhirRequest, document: object) -> Reply:
    resource = require_type(document, KIND)
    given, calls, asked = identifiers(resource), request.calls, condition(request.http)
    details = _details(resource)
    if asked is not None:
        existing = await _matching(calls, asked)
        if existing is not None:
            return await reply(request, WrittenResource(KIND, existing, 200, given))
    key, token = key_of_create(request.http, KIND, given), confirmation_token(request.http, resource)
    stored = await calls.identifiers.find(calls.caller, KIND, given[0]) if given else None
    stored = stored or (await calls.result_of(key, token)).get("patientId")
    if stored is not None:
        await _require_same(calls, details, stored)
        return await reply(request, WrittenResource(KIND, stored, 200, given))
    async with calls.identifiers.noted(calls.caller, KIND, given, key, None):
        with _in_elements():
            created = await calls.write(CREATE, {"confirmationToken": token, **details}, key=key)
    return await reply(request, WrittenResource(KIND, created["patientId"], 201, given))


async def change_patient(request: FhirRequest, resource_id: str, document: object) -> Reply:
    resource, calls = require_type(document, KIND), request.calls
    if resource.get("id", resource_id) != resource_id:
        raise refused(KIND, "id", "must be the id of the address")
    if resource.get("active") is False:
        raise refused(KIND, "active", "cannot be changed")
    given, details = identifiers(resource), _details(resource)
    token, key = confirmation_token(request.http, resource), key_of_change(request.http, KIND, given)
    current = versioned(await SERVED[KIND].read(calls, resource_id))
    if not version_matches(request.http, current) and not await calls.result_of(key, token):
        raise outdated()
    patient_id, before = our_id("pat", resource_id), _details(current)
    changed = {name: value for name, value in details.items() if value not in (None, before[name])}
    removed = ("email",) if details["email"] is None and before["email"] is not None else ()
    if changed or removed:
        values = {"patientId": patient_id, "confirmationToken": token, **changed}
        async with calls.identifiers.noted(calls.caller, KIND, given, key, patient_id):
            with _in_elements():
                await calls.write(_UPDATE, values, key=key, removed=removed)
    return await reply(request, WrittenResource(KIND, patient_id, 200, given, "identifier" in resource))


async def _matching(calls: Calls, asked: list[tuple[str, str]]) -> str | None:
    """The patient that a conditional create asks for: by identifier, or by everything that a match needs."""
    identifier = required_identifier(asked)
    if identifier is not None:
        return await calls.identifiers.find(calls.caller, KIND, identifier)
    arguments = {_MATCHED[name]: value for name, value in asked if name in _MATCHED}
    if len(arguments) < len(_MATCHED) or len(asked) > len(_MATCHED):
        message = f"If-None-Exist of a patient must be an identifier, or {', '.join(_MATCHED)}"
        raise invalid([FieldError("If-None-Exist", "unknown", message)])
    try:
        found = (await calls.run(_MATCH, **arguments))["items"]
    except Problem as problem:
        if problem.code == "not_found":
            return None
        raise
    if len(found) > 1:
        raise Problem("conflict", "Several patients match If-None-Exist.", status=412)
    return str(found[0]["id"])


async def _require_same(calls: Calls, details: dict[str, str | None], patient_id: str) -> None:
    """Refuses an identifier or a key that belongs to another patient."""
    if _details(await SERVED[KIND].read(calls, fhir_id(patient_id))) != details:
        raise Problem("conflict", "The identifier or Idempotency-Key belongs to another patient.")


def _details(resource: Resource) -> dict[str, str | None]:
    """The fields of a patient that we store; None for one that the resource does not have."""
    names = [each for each in objects(resource.get("name")) if each.get("use") != "old"]
    name = _first(names, "use", ("official", "usual"))
    given = name.get("given")
    spelt = [part for part in given if isinstance(part, str)] if isinstance(given, list) else []
    contacts = [each for each in objects(resource.get("telecom")) if each.get("use") != "old"]
    phone = _first([each for each in contacts if each.get("system") == "phone"], "use", ("mobile", "home"))
    email = next((each for each in contacts if each.get("system") == "email"), {})
    return {
        "firstName": " ".join(spelt) or None,
        "lastName": name.get("family"),
        "phone": phone.get("value"),
        "dob": resource.get("birthDate"),
        "email": email.get("value"),
    }


def _first(elements: object, member: str, preferred: tuple[str, ...]) -> dict[str, Any]:
    """The element that is preferred, or the first; an empty one if there is none."""
    found = objects(elements)
    by_preference = [each for value in preferred for each in found if each.get(member) == value]
    return next(iter([*by_preference, *found]), {})


@contextmanager
def _in_elements() -> Iterator[None]:
    """Names the elements of the resource in place of our fields."""
    try:
        yield
    except Problem as problem:
        problem.errors = tuple(
            FieldError(_ELEMENTS.get(each.field, each.field), each.rule, each.message) for each in problem.errors
        )
        raise
