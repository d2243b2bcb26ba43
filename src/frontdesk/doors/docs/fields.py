"""Renders schemas as tables: one row per field with its type, limits and description."""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from frontdesk.doors.docs.markup import linked, prose
from frontdesk.operations._schemas import Schema

_FORMATS = {"date": "date", "date-time": "date-time", "email": "e-mail", "int32": "integer"}


def table(label: str, rows: str) -> str:
    return f'<table class="fields" aria-label="{escape(label)}"><tbody>{rows}</tbody></table>'


def named_rows(entries: Mapping[str, str]) -> str:
    return "".join(
        f'<tr><th scope="row"><code>{name}</code></th><td>{prose(text)}</td></tr>' for name, text in entries.items()
    )


def parameter_rows(parameters: Iterable[Mapping[str, Any]]) -> str:  # of an OpenAPI document
    return "".join(
        _row(each["name"], each["schema"], each.get("description", ""), each["in"], required=each["required"])
        for each in parameters
    )


def body_rows(schema: Schema) -> str:
    """The fields of a request body, confirmationToken last."""
    properties = sorted(schema["properties"].items(), key=lambda member: member[0] == "confirmationToken")
    return "".join(
        _row(name, field, field.get("description", ""), "body", required=name in schema["required"])
        for name, field in properties
    )


def answer_rows(schema: Schema) -> str:
    return "".join(
        _row(name, field, field.get("description", ""), "", required=always)
        for name, field, always in _flat(schema, "", always=True)
    )


def _flat(schema: Schema, before: str, *, always: bool) -> Iterator[tuple[str, Schema, bool]]:
    """The fields of a record and of nested records, by path; lists last because they are the longest."""
    members = sorted(schema["properties"].items(), key=lambda member: member[1].get("type") == "array")
    for name, field in members:
        present = always and name in schema.get("required", [])
        if field.get("type") == "object":
            yield from _flat(field, f"{before}{name}.", always=present)
        elif field.get("items", {}).get("type") == "object":
            yield from _flat(field["items"], f"{before}{name}[].", always=present)
        else:
            yield f"{before}{name}", field, present


def _row(name: str, schema: Schema, description: str, place: str, *, required: bool) -> str:
    if place:
        need = '<em class="need">required</em>' if required else ""
    else:
        need = "" if required else "<em>may be absent</em>"
    where = f"<em>{place}</em>" if place not in ("", "body", "query") else ""
    return (
        f'<tr><th scope="row"><code>{escape(name)}</code>{need}{where}</th>'
        f'<td><span class="kind">{escape(_kind(schema))}</span> {linked(description)}</td></tr>'
    )


def _kind(schema: Schema) -> str:
    """The type of a value and its limits."""
    kinds = [kind for kind in _listed(schema.get("type", "string")) if kind != "null"]
    if kinds == ["array"]:
        return f"list of {_kind(schema['items'])}"
    if "enum" in schema:
        return ", ".join(str(value) for value in schema["enum"])
    words = [_FORMATS.get(schema.get("format", ""), kinds[0])]
    if "minimum" in schema and schema.get("maximum", 2**31 - 1) < 2**31 - 1:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    if "maxLength" in schema:
        words.append(f"at most {schema['maxLength']} characters")
    if "default" in schema:
        words.append(f"default {schema['default']}")
    return ", ".join(words)


def _listed(kind: str | list[str]) -> list[str]:
    return kind if isinstance(kind, list) else [kind]
