"""OPERATIONS itself: the table of the contract, and what every definition must have so that all else can follow it."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from frontdesk.access.clients.scopes import SCOPES, extension_scopes
from frontdesk.domain.errors import CATALOGUE
from frontdesk.engine.arguments import Arguments, read_arguments
from frontdesk.operations import GROUPS, OPERATIONS, Operation, extensions, published
from frontdesk.operations._records import Record
from frontdesk.operations._schemas import plain_schema
from tests.support.world import NOW

# name, method, path, scope, kind, status of success
TABLE = """
get_capabilities       GET   /capabilities                             any                   read  200
get_practice           GET   /practice                                 practices:read        read  200
list_locations         GET   /locations                                practices:read        read  200
get_location           GET   /locations/{locationId}                   practices:read        read  200
list_providers         GET   /providers                                practices:read        read  200
get_provider           GET   /providers/{providerId}                   practices:read        read  200
list_visit_types       GET   /visit-types                              practices:read        read  200
get_visit_type         GET   /visit-types/{visitTypeId}                practices:read        read  200
list_procedures        GET   /visit-types/{visitTypeId}/procedures     practices:read        read  200
search_slots           GET   /slots                                    slots:read            read  200
find_first_available   GET   /slots/first-available                    slots:read            read  200
get_slot               GET   /slots/{slotId}                           slots:read            read  200
match_patient          POST  /patients/match                           patients:read         read  200
get_patient            GET   /patients/{patientId}                     patients:read         read  200
create_patient         POST  /patients                                 patients:write        write 201
update_patient         PATCH /patients/{patientId}                     patients:write        write 200
list_appointments      GET   /appointments                             appointments:read     read  200
get_appointment        GET   /appointments/{appointmentId}             appointments:read     read  200
book_appointment       POST  /appointments                             appointments:book     write 201
cancel_appointment     POST  /appointments/{appointmentId}/cancel      appointments:cancel   write 200
confirm_attendance     POST  /appointments/{appointmentId}/confirm     appointments:confirm  write 200
reschedule_appointment POST  /appointments/{appointmentId}/reschedule  appointments:book     write 200
"""

# The fields of every answer, flat: what the contract's table of records says, and nothing else.
PAGE = {"limit", "nextCursor"}
NAMES = {"providerName", "locationName", "visitTypeName", "procedureName", "timeZone"}
IDS = {"providerId", "locationId", "visitTypeId", "procedureId"}
ADDRESS = {f"address.{name}" for name in ("line1", "line2", "city", "state", "postalCode", "country")}
LOCATION = {"id", "name", "aliases", "timeZone", "phone", *ADDRESS}
PROVIDER = {"id", "name", "aliases", "specialty", "locationIds", "acceptsNewPatients"}
VISIT_TYPE = {"id", "name", "aliases", "description", "patientKind"}
PROCEDURE = {"id", "name", "aliases", "description", "durationMinutes"}
SLOT = {"id", "start", "end", *IDS}
SUMMARY = {"id", "status", "start", "end", "patientId", *IDS}
HISTORY = {
    "createdAt", "updatedAt", "attendanceConfirmedAt", "cancelledAt", "cancellationReason", "rescheduledFrom",
}  # fmt: skip
STEP = {"appointmentId", "status"}
ANSWERS = {
    "get_capabilities": {"capabilities"},
    "get_practice": {"id", "name", "timeZone", "phone", "schedulingSystem", "supports"},
    "list_locations": PAGE | {f"items.{name}" for name in LOCATION},
    "get_location": LOCATION,
    "list_providers": PAGE | {f"items.{name}" for name in PROVIDER},
    "get_provider": PROVIDER,
    "list_visit_types": PAGE | {f"items.{name}" for name in VISIT_TYPE},
    "get_visit_type": VISIT_TYPE,
    "list_procedures": PAGE | {f"items.{name}" for name in PROCEDURE},
    "search_slots": PAGE | {f"items.{name}" for name in SLOT},
    "find_first_available": PAGE | {f"items.{name}" for name in SLOT},
    "get_slot": SLOT | NAMES | {"available"},
    "match_patient": {"items.id", "items.patientKind"},
    "get_patient": {"id", "number", "firstName", "lastName", "dob", "phone", "email", "patientKind"},
    "create_patient": {"patientId"},
    "update_patient": {"patientId"},
    "list_appointments": PAGE | {f"items.{name}" for name in SUMMARY},
    "get_appointment": SUMMARY | NAMES | HISTORY,
    "book_appointment": {"appointmentId"},
    "cancel_appointment": STEP,
    "confirm_attendance": STEP,
    "reschedule_appointment": STEP,
}

each_operation = pytest.mark.parametrize("operation", published().values(), ids=lambda operation: operation.name)


def test_the_registry_is_the_table_of_the_contract_in_its_order() -> None:
    rows = [
        (each.name, each.method, each.path, each.scope or "any", each.kind, str(each.success)) for each in OPERATIONS
    ]
    assert rows == [tuple(line.split()) for line in TABLE.strip().splitlines()]


def test_every_scope_is_needed_by_some_operation() -> None:
    assert {operation.scope for operation in OPERATIONS} == {None, *SCOPES}
    assert {operation.scope for operation in extensions()} == set(extension_scopes())


def test_a_read_that_discloses_patients_is_audited() -> None:
    ids_and_data = {"patientId", "items.patientId", "dob"}
    disclosing = {"match_patient"} | {name for name, fields in ANSWERS.items() if fields & ids_and_data}
    reads = {operation.name for operation in OPERATIONS if operation.kind == "read"}
    assert {operation.name for operation in OPERATIONS if operation.reads_phi} == disclosing & reads


def test_the_groups_of_the_documents_are_in_one_piece_each() -> None:
    groups = [operation.group for operation in OPERATIONS]
    assert [group for group, before in zip(groups, [None, *groups], strict=False) if group != before] == list(GROUPS)


def test_no_two_operations_share_a_route() -> None:
    operations = published().values()
    assert len({(operation.method, operation.path) for operation in operations}) == len(operations)


@each_operation
def test_an_operation_lives_in_the_file_of_its_name(operation: Operation) -> None:
    assert Path(inspect.getfile(operation.run)).name == f"{operation.name}.py"


@each_operation
def test_a_name_is_a_verb_and_a_noun(operation: Operation) -> None:
    verb, *noun = operation.name.split("_")
    assert verb in {
        "get", "list", "search", "find", "match", "create", "update", "book", "cancel", "confirm", "reschedule",
    }  # fmt: skip
    assert noun
    assert operation.name.isascii()
    assert operation.name.islower()


@each_operation
def test_a_description_says_what_is_done_in_whole_sentences(operation: Operation) -> None:
    assert 60 <= len(operation.description) <= 500
    assert operation.description[0].isupper()
    assert operation.description.endswith(".")
    assert operation.title[0].isupper()
    assert not operation.title.endswith(".")
    if operation.kind == "write":
        assert "first call only proposes" in operation.description
        assert "confirmationToken" in operation.description


@each_operation
def test_every_input_field_is_described(operation: Operation) -> None:
    for name, schema in plain_schema(operation.input).get("properties", {}).items():
        assert schema.get("description"), name


@each_operation
@pytest.mark.parametrize("side", ["input", "output"])
def test_schemas_keep_to_what_every_client_can_follow(operation: Operation, side: str) -> None:
    schema = plain_schema(getattr(operation, side))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not {"oneOf", "anyOf", "allOf", "not", "enum"} & schema.keys()
    for node in _nodes(schema):
        assert not {"$ref", "$defs", "oneOf", "anyOf", "allOf"} & node.keys()
        assert node.get("type") != "null"
        assert not isinstance(node.get("type"), list)
        assert node.get("default", 0) is not None


@each_operation
def test_path_parameters_are_required_input_fields(operation: Operation) -> None:
    names = [part.strip("{}") for part in operation.path.split("/") if part.startswith("{")]
    schema = plain_schema(operation.input)
    assert set(names) <= set(schema.get("required", []))


@each_operation
def test_the_example_is_a_request_that_would_be_read(operation: Operation) -> None:
    read_arguments(operation, Arguments(dict(operation.example)), NOW.date())
    jsonschema.validate(dict(operation.example), plain_schema(operation.input))


@each_operation
def test_every_listed_error_is_in_the_catalogue_and_listed_once(operation: Operation) -> None:
    assert set(operation.errors) <= CATALOGUE.keys()
    assert len(set(operation.errors)) == len(operation.errors)


@each_operation
def test_an_answer_is_a_record(operation: Operation) -> None:
    assert issubclass(operation.output, Record)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_answer_has_the_fields_of_the_contract_and_no_other(operation: Operation) -> None:
    assert set(_fields(plain_schema(operation.output))) == ANSWERS[operation.name]


@each_operation
def test_an_operation_on_a_patient_or_an_appointment_is_a_write_or_audited(operation: Operation) -> None:
    if operation.path.startswith(("/patients", "/appointments")):
        assert operation.kind == "write" or operation.reads_phi


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema. A property may be called like a keyword, so properties are entered by name."""
    yield schema
    for field in schema.get("properties", {}).values():
        yield from _nodes(field)
    if "items" in schema:
        yield from _nodes(schema["items"])


def _fields(schema: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, field in schema["properties"].items():
        inner = field.get("items", field)
        if inner.get("type") == "object":
            yield from _fields(inner, f"{before}{name}.")
        else:
            yield before + name
