"""Generates a frozen dataclass for every record of a response."""

import json
import re

from generator.document import Schema, answer_name, is_page, name_of, operations, snake, type_of
from generator.writing import docstring, head

_DOCUMENTATION = "What the service answers with. Fields that have nothing to say are None."
_IMPORTS = """
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from frontdesk_client._reading import optional
"""
_PROTECTED = {  # patient data, kept out of reprs and therefore out of logs
    "Patient": {"firstName", "lastName", "dob", "phone", "email"},
    "Appointment": {"cancellationReason"},
}
_READERS = {"date": "date.fromisoformat", "datetime": "datetime.fromisoformat"}


def record_names(document: Schema) -> list[str]:
    """The records in dependency order."""
    schemas = document["components"]["schemas"]
    found: list[str] = []

    def add(name: str) -> None:
        for used in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schemas[name])):
            add(used)
        if name not in found and not is_page(schemas[name]):
            found.append(name)

    add("FieldError")
    for _, _, entry in operations(document):
        add(answer_name(entry))
    return found


def records(document: Schema) -> str:
    schemas = document["components"]["schemas"]
    return "\n\n".join([head(_DOCUMENTATION, _IMPORTS), *(_record(n, schemas[n]) for n in record_names(document))])


def _record(name: str, schema: Schema) -> str:
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}:"]
    reads = []
    if "description" in schema:
        lines += [docstring(4, schema["description"]), ""]
    for wire, field in schema["properties"].items():
        required = wire in schema["required"]
        lines.append(f"    {snake(wire)}: {_declared(field, required, wire in _PROTECTED.get(name, ()))}")
        if "description" in field:
            lines.append(docstring(4, field["description"]))
        reads.append(f"            {snake(wire)}={_read(field, wire, required)},")
    lines += ["", "    @classmethod", f'    def from_json(cls, data: Mapping[str, Any]) -> "{name}":']
    return "\n".join([*lines, "        return cls(", *reads, "        )", ""])


def _declared(field: Schema, required: bool, protected: bool) -> str:
    kind = type_of(field) if required else f"{type_of(field)} | None"
    if protected:
        return f"{kind} = field({'' if required else 'default=None, '}repr=False)"
    return kind if required else f"{kind} = None"


def _read(field: Schema, wire: str, required: bool) -> str:
    value = f'data["{wire}"]' if required else f'data.get("{wire}")'
    if field.get("type") == "array":
        reader = _reader(field["items"])
        assert required, "an empty list is sent as one"
        return f"tuple({value})" if reader is None else f"tuple({reader}(each) for each in {value})"
    reader = _reader(field)
    if reader is None:
        return value
    return f"{reader}({value})" if required else f"optional({reader}, {value})"


def _reader(field: Schema) -> str | None:
    return f"{name_of(field)}.from_json" if "$ref" in field else _READERS.get(type_of(field))
