"""The OpenAPI document: valid, complete, and true about the operations it is made from."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from schemathesis.specs.openapi.definitions import OPENAPI_31

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.domain.errors import CATALOGUE
from frontdesk.doors.openapi import openapi_document
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.settings import Settings
from tests.support.world import World, patient_id, slots

DOCUMENT = openapi_document(Settings(base_url="https://desk.example", docs_url="https://docs.example"))

each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def entry(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][operation.path][operation.method.lower()]
    return found


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        found: Any = DOCUMENT
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def responses(operation: Operation) -> dict[int, dict[str, Any]]:
    return {int(status): resolved(response) for status, response in entry(operation)["responses"].items()}


def codes(response: dict[str, Any]) -> list[str]:
    """The codes that a problem response enumerates."""
    schema = resolved(response["content"]["application/problem+json"]["schema"])
    found: list[str] = schema["allOf"][1]["properties"]["code"]["enum"]
    return found


def validate(value: Any, schema: dict[str, Any]) -> None:
    """By the rules of 2020-12, formats included, with references into the document."""
    registry: Registry[Any] = Registry().with_resource(
        "urn:doc", Resource(contents=DOCUMENT, specification=DRAFT202012)
    )
    absolute = _absolute(schema)
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(absolute, registry=registry, format_checker=checker).validate(value)


def _absolute(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: f"urn:doc{v}" if k == "$ref" else _absolute(v) for k, v in node.items()}
    return [_absolute(item) for item in node] if isinstance(node, list) else node


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def test_the_document_is_valid_openapi() -> None:
    jsonschema.Draft202012Validator(OPENAPI_31).validate(DOCUMENT)
    assert DOCUMENT["openapi"] == "3.1.0"
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere_and_every_component_is_used() -> None:
    used = set(_references(DOCUMENT))
    for reference in used:
        assert resolved({"$ref": reference})
    kinds = ("schemas", "responses", "examples", "headers")
    assert {f"#/components/{kind}/{name}" for kind in kinds for name in DOCUMENT["components"][kind]} == used


def test_it_names_its_version_its_server_and_its_token_endpoint() -> None:
    assert DOCUMENT["info"]["version"] == "v1"
    assert DOCUMENT["servers"] == [{"url": "https://desk.example/api"}]
    flow = DOCUMENT["components"]["securitySchemes"]["clientCredentials"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == "https://desk.example/oauth/token"
    assert tuple(flow["scopes"]) == SCOPES
    assert "https://desk.example/oauth/token" in DOCUMENT["info"]["description"]


def test_it_lists_exactly_the_operations_without_the_prefix() -> None:
    listed = [
        (method, path, item[method]["operationId"]) for path, item in DOCUMENT["paths"].items() for method in item
    ]
    assert sorted(listed) == sorted((each.method.lower(), each.path, each.operation_id) for each in OPERATIONS)
    assert {"getCapabilities", "findFirstAvailable", "rescheduleAppointment"} <= {name for _, _, name in listed}


def test_records_have_the_names_people_use() -> None:
    names = set(DOCUMENT["components"]["schemas"])
    assert names >= {
        "Practice", "Location", "Provider", "VisitType", "Procedure", "Slot", "SlotDetail", "Patient", "Appointment",
        "AppointmentSummary", "LocationPage", "BookAppointmentRequest", "Problem", "FieldError", "Challenge",
    }  # fmt: skip
    assert not [name for name in names if name.endswith("Record") or name == "Output"]


@each_operation
def test_an_operation_is_described_as_it_is_defined(operation: Operation) -> None:
    found = entry(operation)
    assert found["summary"] == operation.title
    assert found["description"] == operation.description
    assert found["security"] == [{"clientCredentials": [] if operation.scope is None else [operation.scope]}]
    assert found["tags"][0] in [tag["name"] for tag in DOCUMENT["tags"]]
    for parameter in found["parameters"]:
        assert parameter["description"]
        assert parameter["in"] != "path" or (parameter["required"] and "example" in parameter)


@each_operation
def test_examples_of_requests_fit_their_schemas(operation: Operation) -> None:
    found = entry(operation)
    for parameter in found["parameters"]:
        if "example" in parameter:
            validate(parameter["example"], parameter["schema"])
    for media in found.get("requestBody", {"content": {}})["content"].values():
        validate(media["example"], media["schema"])


@each_operation
def test_examples_of_answers_fit_their_schemas(operation: Operation) -> None:
    for status, response in responses(operation).items():
        for media in response["content"].values():
            shown = [resolved(each)["value"] for each in media.get("examples", {}).values()]
            shown += [media["example"]] if "example" in media else []
            assert shown, status
            for value in shown:
                validate(value, media["schema"])
                assert value.get("status") in (status, None) or status < 400


@each_operation
def test_answers_come_in_three_formats_and_problems_in_one(operation: Operation) -> None:
    for status, response in responses(operation).items():
        expected = {"application/json", "text/json", "text/plain"} if status < 400 else {"application/problem+json"}
        assert response["content"].keys() == expected


@each_operation
def test_every_answer_documents_its_headers(operation: Operation) -> None:
    for status, response in responses(operation).items():
        headers = response["headers"].keys()
        assert headers >= {"X-SVC-TRACE-ID", "RateLimit", "RateLimit-Policy"}
        assert ("Retry-After" in headers) == (status in (429, 502))
        assert ("WWW-Authenticate" in headers) == (status == 401)


@each_operation
def test_every_status_enumerates_its_codes_with_an_example_each(operation: Operation) -> None:
    for status, response in responses(operation).items():
        if status >= 400 and status != 428:
            assert all(status in CATALOGUE[code].statuses for code in codes(response))
            assert list(response["content"]["application/problem+json"]["examples"]) == codes(response)


@each_operation
def test_every_operation_can_be_refused_by_token_tenant_scope_and_gateway(operation: Operation) -> None:
    found = responses(operation)
    assert found.keys() >= {400, 401, 403, 406, 422, 429, 500, 502, 503}
    scoped = [] if operation.scope is None else ["forbidden_scope"]
    demanding = ["consent_required"] if operation.kind == "write" else []
    assert codes(found[403]) == [*scoped, "forbidden_tenant", *demanding, "quota_exceeded"]
    assert (404 in found) == ("not_found" in operation.errors)
    assert ({413, 415} <= found.keys()) == (operation.method != "GET")


def test_booking_lists_what_the_specification_lists() -> None:
    booking = next(operation for operation in OPERATIONS if operation.name == "book_appointment")
    found = responses(booking)
    assert found.keys() == {201, 400, 401, 403, 404, 406, 409, 413, 415, 422, 428, 429, 500, 502, 503}
    assert codes(found[409]) == ["conflict", "confirmation_mismatch", "confirmation_incomplete", "slot_unavailable"]


@each_operation
def test_only_writes_have_a_challenge_and_take_an_idempotency_key(operation: Operation) -> None:
    names = [parameter["name"] for parameter in entry(operation)["parameters"]]
    assert ("Idempotency-Key" in names) == (operation.kind == "write")
    assert (428 in responses(operation)) == (operation.kind == "write")


@each_operation
def test_optional_body_fields_may_be_null_and_required_ones_may_not(operation: Operation) -> None:
    found = entry(operation)
    assert ("requestBody" in found) == (operation.method != "GET")
    if operation.method == "GET":
        return
    assert found["requestBody"]["content"].keys() == {"application/json"}, "generators take every type for another body"
    schema = resolved(found["requestBody"]["content"]["application/json"]["schema"])
    assert schema["additionalProperties"] is False
    assert not [name for name in schema["properties"] if f"{{{name}}}" in operation.path]
    assert found["requestBody"]["required"] == bool(schema["required"])
    for name, field in schema["properties"].items():
        assert ("null" in field["type"]) == (name not in schema["required"])


def test_a_patient_number_may_have_ten_digits_and_32_bits() -> None:
    parameters = DOCUMENT["paths"]["/appointments"]["get"]["parameters"]
    schema = next(each["schema"] for each in parameters if each["name"].lower() == "patientid")
    for number in ("0", "1", "0000000001", "999999999", "1999999999", "2000000000", "2000000001"):
        validate(number, schema)
    for number in ("2147483648", "9999999999", "00000000001"):
        with pytest.raises(jsonschema.ValidationError):
            validate(number, schema)


def test_there_is_one_example_answer_per_operation_and_one_read_back_per_write() -> None:
    assert all(operation.example_answer for operation in OPERATIONS)
    assert all(bool(operation.example_read_back) == (operation.kind == "write") for operation in OPERATIONS)
    for operation in OPERATIONS:
        operation.output.model_validate(operation.example_answer)


def test_links_lead_from_what_was_written_to_what_can_be_done_with_it() -> None:
    booked = responses(next(each for each in OPERATIONS if each.name == "book_appointment"))[201]["links"]
    assert set(booked) == {"getAppointment", "cancelAppointment", "confirmAttendance", "rescheduleAppointment"}
    assert booked["getAppointment"]["parameters"] == {"appointmentId": "$response.body#/appointmentId"}


async def test_the_service_publishes_it_for_caches(world: World) -> None:
    anyone = world.anonymous()
    answer = await anyone.get("/openapi/v1.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == openapi_document(world.service.settings)
    again = await anyone.get("/openapi/v1.json", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


async def test_read_backs_are_shown_as_the_service_gives_them(world: World) -> None:
    agent = await world.client()
    integration = await world.client(grant="integration")
    patient, (slot, other, *_) = await patient_id(agent), await slots(agent)
    booking = await integration.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})
    appointment = f"/api/appointments/{booking.json()['appointmentId']}"
    someone = {"firstName": "Katherine", "lastName": "Johnson", "phone": "+1 555 010 0111", "dob": "1988-08-26"}
    requests = {
        "create_patient": ("POST", "/api/patients", someone),
        "update_patient": ("PATCH", f"/api/patients/{patient}", {"phone": "+1 555 010 0143"}),
        "book_appointment": (
            "POST", "/api/appointments", {"patientId": await patient_id(agent, "Alan"), "slotId": other["id"]},
        ),
        "cancel_appointment": ("POST", f"{appointment}/cancel", {"reason": "Travelling that week"}),
        "confirm_attendance": ("POST", f"{appointment}/confirm", {}),
        "reschedule_appointment": ("POST", f"{appointment}/reschedule", {"slotId": other["id"]}),
    }  # fmt: skip
    shown = {operation.name: operation.example_read_back for operation in OPERATIONS if operation.kind == "write"}
    assert requests.keys() == shown.keys()
    for name, (method, path, body) in requests.items():
        challenge = await agent.request(method, path, json=body)
        assert challenge.status_code == 428, challenge.text
        assert challenge.json()["readBack"].keys() == shown[name].keys(), name
        validate(challenge.json(), {"$ref": "#/components/schemas/Challenge"})
