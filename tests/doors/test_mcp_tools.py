"""The tool list: complete, portable, small, the same for everybody, and never changed by accident."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types import Tool

from frontdesk.doors.mcp.tools import tool
from frontdesk.operations import OPERATIONS, Operation
from tests.doors.mcp_speech import EVERY, MODERN, result, send
from tests.doors.tool_snapshots import FOLDER, snapshot, snapshot_file
from tests.support.world import World

MAX_LIST_LENGTH = 40_000
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
every_write = pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if o.kind == "write"], ids=lambda operation: operation.name
)

PROBLEM = {
    "type": "https://desk.example.org/errors.html#not_found",
    "title": "Not found",
    "status": 404,
    "code": "not_found",
    "detail": "There is no such patient.",
    "errors": [{"field": "patientId", "rule": "Binding", "message": "patientId has the wrong type"}],
    "requestId": "0af7651916cd43dd8448eb211c80319c",
}
CHALLENGE = {
    "code": "confirmation_required",
    "confirmationToken": "0123456789abcdef0123456789abcdef",
    "expiresAt": "2026-11-15T08:10:00Z",
    "readBack": {"patientId": "pat_0123456789ABCDEFGHIJKL"},
}


@pytest.mark.parametrize("version", EVERY)
async def test_every_token_sees_the_same_tools_in_order(world: World, version: str) -> None:
    everything = await result(await world.client(), "tools/list", version=version)
    hardly_anything = await result(
        await world.client("other", "integration", scopes=["slots:read"]), "tools/list", version=version
    )
    assert everything == hardly_anything
    assert [found["name"] for found in everything["tools"]] == [operation.name for operation in OPERATIONS]
    assert "nextCursor" not in everything
    if version == MODERN:
        assert everything["cacheScope"] == "public"
        assert everything["ttlMs"] > 0


async def test_the_list_stays_small(world: World) -> None:
    agent = await world.client()
    for version in EVERY:
        assert len((await send(agent, "tools/list", version=version)).content) < MAX_LIST_LENGTH


@every_operation
def test_a_tool_does_not_change_by_accident(operation: Operation) -> None:
    assert snapshot_file(operation).read_text() == snapshot(operation), "see tests/doors/tool_snapshots.py"


def test_there_is_no_snapshot_of_a_tool_that_is_gone() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {operation.name for operation in OPERATIONS}


@every_operation
def test_a_tool_is_completely_described(operation: Operation) -> None:
    found = tool(operation)
    Tool.model_validate(found)
    assert found["title"]
    assert len(found["description"]) > 80
    assert set(found["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    for name, field in found["inputSchema"]["properties"].items():
        assert field.get("description"), f"{name} says nothing about itself"


@every_operation
def test_a_schema_is_one_that_every_client_can_follow(operation: Operation) -> None:
    for schema in (tool(operation)["inputSchema"], tool(operation)["outputSchema"]):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf", "not", "if"} & set(schema)
        for node in _nodes(schema):
            assert "$ref" not in node
            assert isinstance(node.get("type", ""), str), "a list of types is not portable"
            assert node.get("format") in (None, "date", "date-time", "email")


@every_operation
def test_hints_fit_what_the_operation_does(operation: Operation) -> None:
    hints = tool(operation)["annotations"]
    assert hints["readOnlyHint"] == (operation.kind == "read")
    if operation.kind == "read":
        assert (hints["destructiveHint"], hints["idempotentHint"]) == (False, True)
    assert hints["openWorldHint"] is False


def test_only_writes_that_replace_something_are_destructive() -> None:
    destructive = {o.name for o in OPERATIONS if tool(o)["annotations"]["destructiveHint"]}
    assert destructive == {"update_patient", "cancel_appointment", "reschedule_appointment"}


@every_write
def test_a_write_says_that_its_first_call_only_proposes(operation: Operation) -> None:
    found = tool(operation)
    assert "The first call only proposes" in found["description"]
    assert "confirmationToken" in found["inputSchema"]["properties"]
    assert "confirmationToken" not in found["inputSchema"].get("required", [])
    Draft202012Validator(found["outputSchema"]).validate(CHALLENGE)


@every_operation
def test_an_error_passes_clients_that_hold_it_to_the_output_schema(operation: Operation) -> None:
    Draft202012Validator(tool(operation)["outputSchema"]).validate(PROBLEM)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema, itself included."""
    yield schema
    for field in schema.get("properties", {}).values():
        yield from _nodes(field)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])
    for option in schema.get("anyOf", []):
        yield from _nodes(option)
