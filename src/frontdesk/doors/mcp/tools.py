"""The tools: one per operation, in the registry's order, then those of extensions whose scopes the token holds.

Schemas are plain: a root object, no combinators, no references. They tell a model what to send; every rule is checked
by the engine, so patterns and integer formats, which some clients cannot read, are left out.

No field of an outputSchema is required at its root, because an answer is one of three: the operation's own, the
challenge of a write's first call, or, with isError, the problem document. Clients that hold errors to the outputSchema,
too, then let them through instead of hiding them from the model.
"""

from typing import Any

from frontdesk.doors.mcp.cards import card_of
from frontdesk.operations import Operation
from frontdesk.operations._fields import NULL_REMOVES
from frontdesk.operations._schemas import plain_schema

_FOR_CHECKING = frozenset(("pattern", "examples"))

_CHALLENGE = {
    "code": {"type": "string", "description": "confirmation_required: nothing has been changed yet."},
    "confirmationToken": {"type": "string", "description": "For the identical second call, after a clear yes."},
    "expiresAt": {"type": "string", "format": "date-time", "description": "The token is valid until then. UTC."},
    "readBack": {"type": "object", "description": "What would change, and whose. Read it aloud, without ids."},
}
_ON_ERROR = "With isError: the problem document instead (code, detail, errors)."
_EITHER = "First call of an agent: code, confirmationToken, expiresAt and readBack. Executed: the other fields. "


def tool_with_card(operation: Operation, icons: list[dict[str, object]]) -> dict[str, object]:
    """A tool for hosts that show icons and app cards."""
    card = card_of(operation)
    return {**tool(operation), "icons": icons, **({} if card is None else {"_meta": card})}


def tool(operation: Operation) -> dict[str, object]:
    """A tool as tools/list describes it."""
    read = operation.kind == "read"
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": _for_a_model(plain_schema(operation.input)),
        "outputSchema": _output_schema(operation),
        "annotations": {
            "readOnlyHint": read,
            "destructiveHint": operation.overwrites,
            "idempotentHint": not operation.creates,
            "openWorldHint": False,
        },
    }


def _output_schema(operation: Operation) -> dict[str, object]:
    properties = _for_a_model(plain_schema(operation.output)["properties"], drop=frozenset(("additionalProperties",)))
    if "status" in properties:  # an appointment's status is a word, a problem's a number
        properties["status"] = {"anyOf": [properties["status"], {"type": "integer"}]}
    description = _ON_ERROR
    if operation.kind == "write":
        properties, description = properties | _CHALLENGE, _EITHER + _ON_ERROR
    return {"type": "object", "description": description, "properties": properties}


def _for_a_model(node: object, drop: frozenset[str] = frozenset()) -> Any:
    if isinstance(node, list):
        return [_for_a_model(item, drop) for item in node]
    if not isinstance(node, dict):
        return node
    if NULL_REMOVES in node:
        field = {key: value for key, value in node.items() if key not in (NULL_REMOVES, "description")}
        return {"anyOf": [_for_a_model(field, drop), {"type": "null"}], "description": node["description"]}
    return {
        key: {name: _for_a_model(field, drop) for name, field in value.items()}
        if key == "properties"
        else _for_a_model(value, drop)
        for key, value in node.items()
        if key not in _FOR_CHECKING and key not in drop and (key, value) != ("format", "int32")
    }
