"""Reads the OpenAPI document and maps its names and types to Python."""

import json
import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_PLAIN = {"string": "str", "integer": "int", "boolean": "bool", "number": "float"}
_OF_PAGES = {"items", "limit", "nextCursor"}


def operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, entries in document["paths"].items():
        for verb, entry in entries.items():
            yield verb, path, entry


def answer_name(entry: Schema) -> str:
    (status,) = (status for status in entry["responses"] if status.startswith("2"))
    return name_of(entry["responses"][status]["content"]["application/json"]["schema"])


def name_of(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def is_page(schema: Schema) -> bool:
    return set(schema["properties"]) == _OF_PAGES


def type_of(schema: Schema) -> str:
    if "$ref" in schema:
        return name_of(schema)
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    kind = schema["type"]
    kind = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
    if kind == "array":
        return f"tuple[{type_of(schema['items'])}, ...]"
    if kind == "string" and schema.get("format") in ("date", "date-time"):
        return str(schema["format"]).replace("-", "")
    return _PLAIN[kind]


def snake(wire: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wire).replace("-", "_").lower()


def argument(wire: str) -> str:
    name = snake(wire)
    return f"{name}_" if keyword.iskeyword(name) else name
