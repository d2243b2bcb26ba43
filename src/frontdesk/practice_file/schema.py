"""Generates the JSON Schema of the practice file from its model; `make generate` stores it next to this module."""

from collections.abc import Iterator
from typing import Any

from frontdesk.practice_file.fhir import FhirPart
from frontdesk.practice_file.model import FilePart, SchedulingSystemPart
from frontdesk.practice_file.part import Part

_NATIVE = {
    "type": "object",
    "properties": {"kind": {"const": "native", "description": "The calendar and the patients are kept by frontdesk."}},
    "required": ["kind"],
    "additionalProperties": False,
}


def generate_schema() -> dict[str, object]:
    document = _schema(FilePart)
    fhir = _schema(FhirPart)
    definitions = {**document.pop("$defs"), **fhir.pop("$defs"), FhirPart.__name__: fhir}
    definitions[SchedulingSystemPart.__name__] = {"anyOf": [_NATIVE, {"$ref": f"#/$defs/{FhirPart.__name__}"}]}
    for part in (document, *definitions.values()):
        _allow_empty_keys(part)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "frontdesk practice file",
        **document,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(part: type[Part]) -> dict[str, Any]:
    schema = part.model_json_schema(by_alias=True)
    for each in _objects(schema):
        if isinstance(each.get("title"), str):
            del each["title"]
        each.pop("discriminator", None)  # of OpenAPI
        if each.get("default", ...) is None:
            del each["default"]
    return schema


def _objects(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(each)


def _allow_empty_keys(part: dict[str, Any]) -> None:
    """A key without a value counts as absent, if it may be."""
    for name, schema in part.get("properties", {}).items():
        if name not in part.get("required", ()):
            about = {key: schema.pop(key) for key in ("description", "examples", "default") if key in schema}
            part["properties"][name] = {**_or_empty(schema), **about}


def _or_empty(schema: dict[str, Any]) -> dict[str, object]:
    """Without alternatives where that is possible: validators tell no place inside of them."""
    match schema:
        case {"anyOf": [of_value, {"type": "null"}]}:
            return _or_empty(of_value)
        case {"enum": values, **others}:
            return {**others, "enum": [*values, None], "type": ["string", "null"]}
        case {"type": str() as kind}:
            return {**schema, "type": [kind, "null"]}
        case {"type": list() as kinds}:
            return {**schema, "type": [*kinds, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
