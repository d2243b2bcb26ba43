"""Finding one's way in the OpenAPI document, and the Python names of what it holds."""

import json
import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_PLAIN = {"string": "str", "integer": "int", "boolean": "bool", "number": "float"}
_OF_PAGES = {"items", "limit", "nextCursor"}


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, entries in document["paths"].items():
        for verb, entry in entries.items():
            yield verb, path, entry


def _answer(entry: Schema) -> str:
    (status,) = (status for status in entry["responses"] if status.startswith("2"))
    return _name(entry["responses"][status]["content"]["application/json"]["schema"])


def _is_page(schema: Schema) -> bool:
    return set(schema["properties"]) == _OF_PAGES


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _snake(wire: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wire).replace("-", "").lower()


def _class_name(code: str) -> str:
    return "".join(word.title() for word in code.split("_"))


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name(schema)
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    kind = schema["type"]
    kind = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
    if kind == "array":
        return f"tuple[{_type(schema['items'])}, ...]"
    if kind == "string" and schema.get("format") in ("date", "date-time"):
        return str(schema["format"]).replace("-", "")
    return _PLAIN[kind]


def _argument(wire: str) -> str:
    name = _snake(wire)
    return f"{name}_" if keyword.iskeyword(name) else name


