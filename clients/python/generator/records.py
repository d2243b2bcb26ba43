"""Records: a frozen dataclass for everything that a success can hold."""

_RECORD_IMPORTS = """
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from frontdesk_client._reading import optional
"""


def _records(document: Schema) -> dict[str, str]:
    """The classes of everything that a success can hold, in the order in which they need each other."""
    schemas = document["components"]["schemas"]
    found: dict[str, str] = {}

    def add(name: str) -> None:
        if name in found:
            return
        for used in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schemas[name])):
            add(used)
        if not _is_page(schemas[name]):
            found[name] = _record(name, schemas[name])

    add("FieldError")
    for _, _, entry in _operations(document):
        add(_answer(entry))
    return found


def _record(name: str, schema: Schema) -> str:
    required = schema.get("required", [])
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}:"]
    reads = []
    if "description" in schema:
        lines += [_docstring(schema["description"], 4), ""]
    for wire, field in schema["properties"].items():
        given, kind = wire in required, _type(field)
        options = [] if given else ["default=None"]
        if wire in _PROTECTED.get(name, ()):
            options.append("repr=False")
        default = "" if not options else " = None" if options == ["default=None"] else f" = field({', '.join(options)})"
        lines.append(f"    {_snake(wire)}: {kind if given else f'{kind} | None'}{default}")
        if "description" in field:
            lines.append(_docstring(field["description"], 4))
        reads.append(f"            {_snake(wire)}={_read(field, wire, given)},")
    lines += ["", "    @classmethod", f'    def from_json(cls, data: Mapping[str, Any]) -> "{name}":']
    return "\n".join([*lines, "        return cls(", *reads, "        )", ""])


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


def _read(schema: Schema, wire: str, given: bool) -> str:
    value = f'data["{wire}"]' if given else f'data.get("{wire}")'
    if schema.get("type") == "array":
        each = _reader(schema["items"])
        return f"tuple({value})" if each is None else f"tuple({each}(each) for each in {value})"
    reader = _reader(schema)
    if reader is None:
        return value
    return f"{reader}({value})" if given else f"optional({reader}, {value})"


def _reader(schema: Schema) -> str | None:
    return f"{_name(schema)}.from_json" if "$ref" in schema else _READERS.get(_type(schema))


