"""JSON schemas of inputs and outputs, in a form that every client can read: without titles and unions with null."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypedDict, TypeVar

from pydantic import BaseModel

T = TypeVar("T")


class Schema(TypedDict, total=False):
    """The keywords of JSON Schema that documents look at."""

    type: str | list[str]
    description: str
    properties: dict[str, "Schema"]
    required: list[str]
    items: "Schema"
    enum: list[object]
    format: str
    default: object
    minimum: int
    maximum: int
    maxLength: int
    minProperties: int


_Refer = Callable[[str], dict[str, object]]


@cache
def plain_schema(model: type[BaseModel]) -> Schema:
    """The schema in one piece: the records inside it are written out where they stand."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})

    def written_out(name: str) -> dict[str, object]:
        return _without(_plain(definitions[name], written_out), "description")

    plain: Schema = _plain(_without(schema, "description"), written_out)
    return plain


def linked_schemas(model: type[BaseModel], name: str, address: Callable[[str], str]) -> dict[str, dict[str, object]]:
    """The schema under the name given, and next to it the records it is made of; `address` says where each lies."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})

    def linked(record: str) -> dict[str, object]:
        return {"$ref": address(record)}

    return {each: _plain(found, linked) for each, found in {name: schema, **definitions}.items()}


def _plain(node: object, refer: _Refer) -> Any:  # as deep as the JSON goes
    if isinstance(node, list):
        return [_plain(item, refer) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {**refer(node["$ref"].rpartition("/")[2]), **_plain(_without(node, "$ref"), refer)}
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option != {"type": "null"}]
        assert len(options) == 1, "a field is of one type, or absent"
        return _plain({**options[0], **_without(node, "anyOf")}, refer)
    plain = {}
    for key, value in node.items():
        if key == "properties":
            plain[key] = {name: _plain(field, refer) for name, field in value.items()}
        elif key == "title" or (key == "default" and value is None):
            continue
        else:
            plain[key] = _plain(value, refer)
    return plain


def _without(node: dict[str, T], left_out: str) -> dict[str, T]:
    return {key: value for key, value in node.items() if key != left_out}
